//! Issues of Karmada.

use serde_json::json;

use super::*;

#[test]
fn karmada_3747_a_workload_that_fits_nowhere_is_neither_stuck_nor_lost() {
    let binding = binding(json!([]), false, "False", &json!({"replicas": 3}));
    let decide_at = |source: &Cluster, now_s, options| {
        let sources = std::slice::from_ref(source);
        decide(
            GracefulEvictionSnapshot {
                sources,
                options,
                ..snapshot(&binding, &CONFIRMED, now_s)
            },
            &policies(hold),
        )
    };
    let (well, lost) = (cluster("m1", "True", json!([])), cluster("m1", "False", json!([])));
    let options = GracefulEvictionOptions::default();
    assert_eq!(summary(&decide_at(&lost, 10_000, options)), "held: NoReplacement");
    assert_eq!(
        summary(&decide_at(&well, 10_000, options)),
        "called off: SourceRecovered"
    );
    // Karmada's behavior since the issue was closed: the end of the grace period always ends the task.
    let as_karmada = GracefulEvictionOptions {
        purge_without_replacement: PurgeWithoutReplacement::AfterGracePeriod,
        restore_source: RestoreSource::Never,
        ..options
    };
    assert_eq!(summary(&decide_at(&well, 600, as_karmada)), "held: Ill");
    assert_eq!(
        summary(&decide_at(&well, 601, as_karmada)),
        "released: GracePeriodExceeded"
    );
}

#[test]
fn karmada_7455_the_old_copy_stays_when_no_other_cluster_fits() {
    let binding = binding(json!([]), true, "False", &json!({}));
    let plan = decide(snapshot(&binding, &CONFIRMED, 100_000), &policies(hold));
    assert_eq!(summary(&plan), "held: NoReplacement");
}

#[test]
fn karmada_5150_configuration_that_is_placed_by_cluster_name_outlives_a_lost_connection() {
    let mut binding = binding(json!([]), false, "False", &json!({"replicas": null}));
    binding.spec.replicas = 0;
    let decide_at = |source: Cluster| {
        decide(
            GracefulEvictionSnapshot {
                sources: &[source],
                ..snapshot(&binding, &CONFIRMED, 50_000)
            },
            &policies(hold),
        )
    };
    assert_eq!(
        summary(&decide_at(cluster("m1", "False", json!([])))),
        "held: NoReplacement"
    );
    let plan = decide_at(cluster("m1", "True", json!([])));
    assert_eq!(
        (plan.clusters, plan.tasks),
        (Some(vec![TargetCluster::new("m1", 0)]), Some(Vec::new()))
    );
}

#[test]
fn karmada_7201_a_grace_period_of_one_task_is_not_that_of_the_next() {
    let mut binding = binding(elsewhere(), true, "True", &json!({"gracePeriodSeconds": 30}));
    let mut second = binding.spec.graceful_eviction_tasks[0].clone();
    (second.from_cluster, second.grace_period_seconds) = ("m3".to_owned(), None);
    binding.spec.graceful_eviction_tasks.push(second);
    let plan = decide(snapshot(&binding, &CONFIRMED, 100), &policies(hold));
    let from = |list: &[(GracefulEvictionTask, Attribution)]| {
        list.iter().map(|(t, _)| t.from_cluster.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (from(&plan.released), from(&plan.held)),
        (vec!["m1".to_owned()], vec!["m3".to_owned()])
    );
}

#[test]
fn karmada_4951_tasks_of_cluster_scoped_resources_end_too() {
    let mut binding = binding(json!([{"name": "m2"}]), true, "True", &json!({"replicas": null}));
    (binding.namespace, binding.spec.replicas) = (None, 0);
    binding.spec.placement = None;
    let decide_at = |now_s, say| decide(snapshot(&binding, &CONFIRMED, now_s), &policies(say));
    assert_eq!(summary(&decide_at(1, release)), "released: Well");
    assert_eq!(summary(&decide_at(601, hold)), "released: GracePeriodExceeded");
}

/// Karmada pull request 7129: two of three replicas were on the cluster, the third moved there from `m1`, and the
/// report still shows the first two.
#[test]
fn karmada_7129_a_healthy_report_from_before_the_move_lets_nothing_go() {
    let check = |available: i64, rule, expected: &str| {
        let mut binding = binding(elsewhere(), true, "True", &json!({}));
        let reported = json!([{"clusterName": "m2", "health": "Healthy", "status": {"availableReplicas": available}}]);
        binding.status.aggregated_status = serde_json::from_value(reported).unwrap();
        let options = GracefulEvictionOptions {
            replacement_health: rule,
            ..GracefulEvictionOptions::default()
        };
        let plan = decide(
            GracefulEvictionSnapshot {
                options,
                ..snapshot(&binding, &CONFIRMED, 1)
            },
            &asking(trusting),
        );
        let (_, attribution) = plan.held.iter().chain(&plan.released).next().unwrap();
        assert_eq!(attribution.reason.to_string(), expected, "{available} {rule:?}");
    };
    let stale = "Ill: m2 is Unknown (m2 reports Healthy with 2 of 3 replicas)";
    check(2, ReplacementHealth::Covering, stale);
    check(3, ReplacementHealth::Covering, "Well: m2 is Healthy");
    check(2, ReplacementHealth::Reported, "Well: m2 is Healthy");
}

/// Karmada applies no replica elsewhere while the Work of a cluster that is to be purged directly exists, and the Work
/// stays while that cluster is not ready.
#[test]
fn a_direct_purge_of_a_lost_cluster_does_not_wait_for_replicas_that_wait_for_it() {
    let stale = "Ill: m2 is Unknown (m2 reports Healthy with 2 of 3 replicas)";
    for (purge_mode, ready, expected) in [
        ("Directly", "False", "Well: m2 is Healthy"),
        ("Directly", "True", stale),
        ("Gracefully", "False", stale),
    ] {
        let mut binding = binding(elsewhere(), true, "True", &json!({"purgeMode": purge_mode}));
        let reported = json!([{"clusterName": "m2", "health": "Healthy", "status": {"availableReplicas": 2}}]);
        binding.status.aggregated_status = serde_json::from_value(reported).unwrap();
        let source: Cluster = serde_json::from_value(json!({
            "name": "m1",
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap();
        let plan = decide(
            GracefulEvictionSnapshot {
                sources: std::slice::from_ref(&source),
                ..snapshot(&binding, &CONFIRMED, 1)
            },
            &asking(trusting),
        );
        let (_, attribution) = plan.held.iter().chain(&plan.released).next().unwrap();
        assert_eq!(attribution.reason.to_string(), expected, "{purge_mode} {ready}");
    }
}
