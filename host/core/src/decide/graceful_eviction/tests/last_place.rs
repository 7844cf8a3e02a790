//! Failed applications that no other cluster takes.

use super::*;

/// A result of the scheduler: none, because no cluster fits.
const UNPLACED: (bool, &str) = (false, "False");

fn plan(task: &Value, sources: &[Cluster], options: GracefulEvictionOptions, now_s: i64) -> GracefulEvictionPlan {
    let mut whole = json!({"reason": "ApplicationFailure", "gracePeriodSeconds": 30});
    for (field, value) in task.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let (seen, scheduled) = UNPLACED;
    let mut binding = binding(json!([]), seen, scheduled, &whole);
    let ill = json!([{"clusterName": "m1", "health": "Unhealthy"}, {"clusterName": "m2", "health": "Unhealthy"}]);
    binding.status.aggregated_status = serde_json::from_value(ill).unwrap();
    let snapshot = GracefulEvictionSnapshot {
        sources,
        options,
        ..snapshot(&binding, &CONFIRMED, now_s)
    };
    decide(snapshot, &policies(hold))
}

#[test]
fn an_application_that_failed_everywhere_becomes_a_target_again_after_its_grace_period() {
    let (well, lost) = (cluster("m1", "True", json!([])), cluster("m1", "False", json!([])));
    let options = GracefulEvictionOptions::default();
    let check = |task: Value, source: &Cluster, options, now_s, expected: &str| {
        let plan = plan(&task, std::slice::from_ref(source), options, now_s);
        assert_eq!(summary(&plan), expected, "{task} {source:?} {options:?} {now_s}");
        let clusters = plan.clusters.map(|clusters| serde_json::to_value(clusters).unwrap());
        let kept = json!([{"name": "m1", "replicas": 1}]);
        assert_eq!(clusters, (expected == "called off: LastPlace").then_some(kept));
    };
    check(json!({}), &well, options, 30, "held: Ill");
    check(json!({}), &well, options, 31, "called off: LastPlace");
    check(json!({}), &lost, options, 31, "held: NoReplacement");
    check(json!({"reason": "other"}), &well, options, 31, "held: NoReplacement");
    check(
        json!({"suppressDeletion": true}),
        &well,
        options,
        31,
        "held: DeletionSuppressed",
    );
    let no_execute = cluster("m1", "True", json!([{"key": "k", "effect": "NoExecute"}]));
    check(json!({}), &no_execute, options, 31, "held: NoReplacement");
    let never = GracefulEvictionOptions {
        restore_source: RestoreSource::Never,
        ..options
    };
    check(json!({}), &well, never, 31, "held: NoReplacement");
    let before_the_rule = GracefulEvictionOptions {
        keeps_last_place: false,
        ..options
    };
    check(json!({}), &well, before_the_rule, 31, "held: NoReplacement");
    let as_karmada = GracefulEvictionOptions {
        purge_without_replacement: PurgeWithoutReplacement::AfterGracePeriod,
        ..options
    };
    check(json!({}), &well, as_karmada, 31, "released: GracePeriodExceeded");
    let by_policy = GracefulEvictionOptions {
        purge_without_replacement: PurgeWithoutReplacement::OnlyByPolicy,
        ..options
    };
    check(
        json!({"gracePeriodSeconds": null}),
        &well,
        by_policy,
        601,
        "called off: LastPlace",
    );
}

#[test]
fn every_cluster_of_a_failed_application_gets_its_replicas_back() {
    let sources = [cluster("m1", "True", json!([])), cluster("m2", "True", json!([]))];
    let (seen, scheduled) = UNPLACED;
    let mut binding = binding(json!([]), seen, scheduled, &json!({"reason": "ApplicationFailure"}));
    let mut second = binding.spec.graceful_eviction_tasks[0].clone();
    second.from_cluster = "m2".to_owned();
    second.replicas = Some(2);
    binding.spec.graceful_eviction_tasks.push(second);
    let snapshot = GracefulEvictionSnapshot {
        sources: &sources,
        ..snapshot(&binding, &CONFIRMED, 601)
    };
    let plan = decide(snapshot, &policies(hold));
    let clusters = serde_json::to_value(plan.clusters.unwrap()).unwrap();
    assert_eq!(
        clusters,
        json!([{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 2}])
    );
    assert_eq!((plan.tasks, plan.called_off.len()), (Some(Vec::new()), 2));
}
