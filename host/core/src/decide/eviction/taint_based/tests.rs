use super::*;
use serde_json::{Value, json};

use crate::model::TargetCluster;

fn taint(key: &str, added_s: Option<i64>) -> Taint {
    Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoExecute,
        time_added: added_s.map(|seconds| Time::from_millis(seconds * 1000)),
    }
}

fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
    Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        toleration_seconds: seconds,
        ..Toleration::default()
    }
}

#[test]
fn tolerations_follow_karmada() {
    let now = Time::from_millis(100_000);
    let check = |taints: &[Taint], tolerations: &[Toleration], expected: Tolerance| {
        assert_eq!(
            tolerance(taints, tolerations, now),
            expected,
            "{taints:?} {tolerations:?}"
        );
    };
    let for_ms = |remaining_ms| Tolerance::For { remaining_ms };
    check(&[], &[], Tolerance::Untainted);
    check(&[taint("a", Some(90))], &[], Tolerance::Not(taint("a", Some(90))));
    check(&[taint("a", Some(90))], &[tolerates("a", None)], Tolerance::Forever);
    check(&[taint("a", Some(90))], &[tolerates("a", Some(30))], for_ms(20_000));
    check(&[taint("a", Some(90))], &[tolerates("a", Some(5))], for_ms(0));
    // The first matching toleration is used.
    check(
        &[taint("a", Some(90))],
        &[tolerates("", None), tolerates("a", Some(5))],
        Tolerance::Forever,
    );
    // A used toleration counts for every taint that it matches.
    check(
        &[taint("a", Some(90)), taint("b", Some(80))],
        &[tolerates("a", None), tolerates("", Some(30))],
        for_ms(10_000),
    );
    check(&[taint("a", None)], &[tolerates("a", Some(5))], Tolerance::Forever);
}

#[test]
fn the_entry_goes_even_if_a_task_is_there() {
    let mut spec = BindingSpec {
        clusters: vec![TargetCluster::new("member1", 1), TargetCluster::new("member2", 2)],
        ..BindingSpec::default()
    };
    graceful_evict(&mut spec, "member2", GracefulEvictionTask::default());
    assert_eq!(spec.clusters, [TargetCluster::new("member1", 1)]);
    assert_eq!(spec.graceful_eviction_tasks[0].replicas, Some(2));
    spec.clusters.push(TargetCluster::new("member2", 3));
    graceful_evict(&mut spec, "member2", GracefulEvictionTask::default());
    assert_eq!((spec.clusters.len(), spec.graceful_eviction_tasks.len()), (1, 1));
    graceful_evict(&mut spec, "member9", GracefulEvictionTask::default());
    assert_eq!(spec.graceful_eviction_tasks.len(), 1);
}

const ALL: EvictOptions = EvictOptions {
    no_execute: true,
    prefer_no_execute: true,
    default_purge_mode: PurgeMode::Gracefully,
    preserve_state: true,
};

/// Returns a binding on member1 with these tolerations and this `failover.cluster`, and member1 with these taints.
fn on_tainted(taints: &Value, tolerations: &Value, failover: &Value) -> (Binding, Cluster) {
    let cluster = json!({"name": "member1", "spec": {"syncMode": "Push", "taints": taints}});
    let cluster: Cluster = serde_json::from_value(cluster).unwrap();
    let placement = json!({"clusterTolerations": tolerations}).to_string();
    let binding: Binding = serde_json::from_value(json!({
        "namespace": "default", "name": "a",
        "annotations": {"policy.karmada.io/applied-placement": placement},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"},
            "clusters": [{"name": "member1", "replicas": 2}],
            "failover": {"cluster": failover},
        },
    }))
    .unwrap();
    (binding, cluster)
}

/// Decides at 100 s.
fn decided(taints: &Value, tolerations: &Value, failover: &Value, options: EvictOptions) -> EvictPlan {
    let (binding, cluster) = on_tainted(taints, tolerations, failover);
    decide((&binding).into(), Some(&cluster), options, Time::from_millis(100_000)).unwrap()
}

/// Returns `keep`, `in N` for milliseconds, or the reason of the eviction.
fn in_short(plan: &EvictPlan) -> String {
    match plan {
        EvictPlan::Keep => "keep".to_owned(),
        EvictPlan::KeepFor { remaining_ms } => format!("in {remaining_ms}"),
        EvictPlan::Evict { attribution, .. } => attribution.reason.code.clone(),
    }
}

fn at(second: u32) -> String {
    format!("1970-01-01T00:{:02}:{:02}Z", second / 60, second % 60)
}

#[test]
fn prefer_no_execute_evicts_only_what_has_a_cluster_failover_and_after_its_time() {
    let check = |added: Option<u32>, failover: Value, expected: &str| {
        let mut taint = json!({"key": "k", "effect": "PreferNoExecute"});
        if let Some(added) = added {
            taint["timeAdded"] = json!(at(added));
        }
        // A toleration for all taints has no effect on `PreferNoExecute`.
        let plan = decided(&json!([taint]), &json!([{"operator": "Exists"}]), &failover, ALL);
        assert_eq!(in_short(&plan), expected, "{added:?} {failover}");
    };
    check(Some(0), json!(null), "keep");
    check(Some(0), json!({}), "in 200000");
    check(Some(0), json!({"tolerationSeconds": 100}), "TaintUntolerated");
    check(Some(1), json!({"tolerationSeconds": 100}), "in 1000");
    check(Some(99), json!({"tolerationSeconds": 0}), "TaintUntolerated");
    check(None, json!({"tolerationSeconds": 0}), "keep");
    // The clock was set back: the taint is in the future and waits for its time.
    check(Some(400), json!({"tolerationSeconds": 10}), "in 310000");
}

#[test]
fn a_binding_that_stays_without_end_has_a_reason() {
    let check = |effect: &str, tolerations: Value, failover: Value, options: EvictOptions, expected: Option<&str>| {
        let taints = json!([{"key": "k", "effect": effect, "timeAdded": at(0)}]);
        let (mut binding, cluster) = on_tainted(&taints, &tolerations, &failover);
        let code = |binding: &Binding| {
            let reason = stays(binding.into(), &cluster, options, Time::from_millis(100_000));
            reason.map(|attribution| attribution.reason.code)
        };
        assert_eq!(code(&binding).as_deref(), expected, "{effect} {tolerations} {failover}");
        binding.spec.clusters = Vec::new();
        assert_eq!(code(&binding), None, "it is elsewhere");
    };
    let (none, forever) = (|| json!([]), || json!([{"operator": "Exists"}]));
    let limited = || json!([{"operator": "Exists", "tolerationSeconds": 300}]);
    let (hard, soft) = ("NoExecute", "PreferNoExecute");
    check(hard, none(), json!(null), ALL, None);
    check(hard, limited(), json!(null), ALL, None);
    check(hard, forever(), json!(null), ALL, Some("ToleratedWithoutEnd"));
    check(soft, none(), json!(null), ALL, Some("NoClusterFailover"));
    check(soft, none(), json!({}), ALL, None);
    check("NoSchedule", none(), json!(null), ALL, None);
    let off = EvictOptions {
        no_execute: false,
        prefer_no_execute: false,
        ..ALL
    };
    check(hard, none(), json!(null), off, Some("EvictionOff"));
    check(soft, none(), json!({}), off, Some("EvictionOff"));
    check(soft, none(), json!(null), off, Some("EvictionOff"));
    check(
        hard,
        none(),
        json!(null),
        EvictOptions {
            no_execute: false,
            ..ALL
        },
        Some("EvictionOff"),
    );
}

#[test]
fn a_taint_of_unknown_age_keeps_a_binding_without_a_reason() {
    let taints = json!([{"key": "k", "effect": "PreferNoExecute"}]);
    let (binding, cluster) = on_tainted(&taints, &json!([]), &json!({}));
    assert_eq!(
        stays((&binding).into(), &cluster, ALL, Time::from_millis(100_000)),
        None
    );
}

#[test]
fn taints_do_what_the_options_say_and_a_drain_does_it_always() {
    let taint = |key: &str, effect: &str| json!([{"key": key, "effect": effect, "timeAdded": at(0)}]);
    let check = |taints: Value, tolerations: Value, options: EvictOptions, expected: &str| {
        let plan = decided(&taints, &tolerations, &json!({"tolerationSeconds": 0}), options);
        assert_eq!(in_short(&plan), expected, "{taints} {tolerations} {options:?}");
    };
    let off = EvictOptions::default();
    let all = json!([{"operator": "Exists"}]);
    let named = json!([{"key": keys::DRAIN_TAINT, "operator": "Exists"}]);
    check(taint("k", "NoExecute"), json!([]), ALL, "TaintUntolerated");
    check(taint("k", "NoExecute"), json!([]), off, "keep");
    check(taint("k", "PreferNoExecute"), json!([]), off, "keep");
    check(taint("k", "NoSchedule"), json!([]), ALL, "keep");
    check(taint("k", "PreferNoSchedule"), json!([]), ALL, "keep");
    check(taint(keys::DRAIN_TAINT, "NoExecute"), json!([]), off, "ClusterDrained");
    check(
        taint(keys::DRAIN_TAINT, "NoExecute"),
        all.clone(),
        off,
        "ClusterDrained",
    );
    check(taint(keys::DRAIN_TAINT, "NoExecute"), named, off, "keep");
    check(taint("k", "NoExecute"), all, ALL, "keep");
}

#[test]
fn odd_tolerations_have_one_meaning_each() {
    let check = |tolerations: Value, expected: &str| {
        let taints = json!([{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": at(0)}]);
        assert_eq!(
            in_short(&decided(&taints, &tolerations, &json!(null), ALL)),
            expected,
            "{tolerations}"
        );
    };
    check(
        json!([{"key": "k", "operator": "Lt", "value": "v"}]),
        "TaintUntolerated",
    );
    check(json!([{"key": "k", "operator": "exists"}]), "TaintUntolerated");
    check(
        json!([{"key": "k", "operator": "Exists", "tolerationSeconds": -5}]),
        "TaintUntolerated",
    );
    check(
        json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 100}]),
        "TaintUntolerated",
    );
    check(
        json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 101}]),
        "in 1000",
    );
    check(
        json!([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]),
        "TaintUntolerated",
    );
    check(json!([{"key": "k", "value": "v"}]), "keep");
    check(json!([{"key": "k", "operator": null, "value": "v"}]), "keep");
    check(json!(null), "TaintUntolerated");
    let forever = decided(
        &json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(0)}]),
        &json!([{"key": "k", "operator": "Exists", "tolerationSeconds": i64::MAX}]),
        &json!(null),
        ALL,
    );
    assert!(matches!(forever, EvictPlan::KeepFor { remaining_ms } if remaining_ms > 1_000_000_000_000));
}

/// Karmada issue 7612: bindings that tolerate a taint forever filled the eviction queue and took its slots.
#[test]
fn karmada_7612_an_unlimited_toleration_is_never_due() {
    let taints = json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(0)}]);
    assert_eq!(
        decided(&taints, &json!([{"operator": "Exists"}]), &json!(null), ALL),
        EvictPlan::Keep
    );
}

#[test]
fn a_binding_whose_placement_cannot_be_read_is_not_decided() {
    let cluster = Cluster {
        name: "member1".to_owned(),
        spec: crate::model::ClusterSpec {
            taints: vec![taint("a", Some(0))],
            ..Default::default()
        },
        ..Cluster::default()
    };
    for annotation in [
        None,
        Some(""),
        Some("["),
        Some("7"),
        Some(r#"{"clusterTolerations": 7}"#),
    ] {
        let mut binding = Binding::default();
        binding.spec.clusters = vec![TargetCluster::new("member1", 1)];
        let text = annotation.map(|text| (keys::APPLIED_PLACEMENT.to_owned(), text.to_owned()));
        binding.annotations.extend(text);
        let decided = decide((&binding).into(), Some(&cluster), ALL, Time::from_millis(0));
        assert!(decided.is_err(), "{annotation:?}: {decided:?}");
    }
}

#[test]
fn the_task_says_what_the_policy_says() {
    let check = |failover: Value, purge_mode: PurgeMode, grace_s: Option<i32>, suppressed: Option<bool>| {
        let taints = json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(0)}]);
        let plan = decided(&taints, &json!([]), &failover, ALL);
        let EvictPlan::Evict { task, spec, .. } = plan else {
            panic!("{plan:?}")
        };
        let actual = (task.purge_mode, task.grace_period_seconds, task.suppress_deletion);
        assert_eq!(actual, (Some(purge_mode), grace_s, suppressed), "{failover}");
        assert_eq!(
            (task.replicas, task.creation_timestamp),
            (Some(2), Some(Time::from_millis(100_000)))
        );
        assert_eq!(
            (task.reason.as_str(), task.producer.as_str()),
            ("TaintUntolerated", "TaintManager")
        );
        assert!(spec.clusters.is_empty() && spec.is_evicting("member1"));
    };
    check(json!(null), PurgeMode::Gracefully, None, None);
    check(json!({}), PurgeMode::Gracefully, None, None);
    check(json!({"purgeMode": "Directly"}), PurgeMode::Directly, None, None);
    check(
        json!({"purgeMode": "Immediately", "gracePeriodSeconds": 9}),
        PurgeMode::Directly,
        None,
        None,
    );
    check(
        json!({"purgeMode": "Graciously", "gracePeriodSeconds": 100}),
        PurgeMode::Gracefully,
        Some(100),
        None,
    );
    check(
        json!({"purgeMode": "Gracefully", "gracePeriodSeconds": 100}),
        PurgeMode::Gracefully,
        Some(100),
        None,
    );
    check(json!({"purgeMode": "Never"}), PurgeMode::Never, None, Some(true));
}

#[test]
fn state_is_carried_over_or_the_workload_stays() {
    let check = |status: Value, options: EvictOptions, expected: Result<(&[&str], &[&str]), &str>| {
        let cluster =
            json!({"name": "m1", "spec": {"syncMode": "Push", "taints": [{"key": "k", "effect": "NoExecute"}]}});
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let rules = json!([{"aliasLabelName": "job", "jsonPath": "{.job.id}"}]);
        let binding: Binding = serde_json::from_value(json!({
            "namespace": "default", "name": "a",
            "annotations": {"policy.karmada.io/applied-placement": "{}"},
            "spec": {
                "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"},
                "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}],
                "failover": {"cluster": {"purgeMode": "Directly", "statePreservation": {"rules": rules}}},
            },
            "status": {"aggregatedStatus": [{"clusterName": "m1", "status": status}]},
        }))
        .unwrap();
        let plan = decide((&binding).into(), Some(&cluster), options, Time::from_millis(0));
        let actual = plan.map(|plan| match plan {
            EvictPlan::Evict { task, .. } => (
                task.preserved_label_state.into_values().collect::<Vec<_>>(),
                task.clusters_before_failover,
            ),
            other => panic!("{other:?}"),
        });
        let actual = actual.map_err(|error| match error {
            EvictError::Preserve { source, .. } => source.to_string(),
            EvictError::NoAppliedPlacement(error) => panic!("{error}"),
        });
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let expected = expected
            .map(|(labels, before)| (owned(labels), owned(before)))
            .map_err(str::to_owned);
        assert_eq!(actual, expected, "{status}");
    };
    check(json!({"job": {"id": "f00"}}), ALL, Ok((&["f00"], &["m1", "m2"])));
    let missing = "the application status has not yet been collected from Cluster(m1)";
    check(json!(null), ALL, Err(missing));
    check(
        json!(null),
        EvictOptions {
            preserve_state: false,
            ..ALL
        },
        Ok((&[], &[])),
    );
}

#[test]
fn an_unknown_effect_evicts_nothing() {
    let taints = json!([{"key": "k", "effect": "NoExecuteEver", "timeAdded": at(0)}]);
    assert_eq!(decided(&taints, &json!([]), &json!({}), ALL), EvictPlan::Keep);
}

#[test]
fn the_applied_placement_is_read_from_its_annotation() {
    let applied = |text: Option<&str>| {
        let mut binding = Binding::default();
        let entry = text.map(|text| (keys::APPLIED_PLACEMENT.to_owned(), text.to_owned()));
        binding.annotations.extend(entry);
        applied_placement(&binding).map(|placement| placement.cluster_tolerations.len())
    };
    assert_eq!(
        applied(Some(r#"{"clusterTolerations": [{"key": "k", "operator": "Exists"}]}"#)),
        Some(1)
    );
    assert_eq!(applied(Some("{")), None);
    assert_eq!(applied(None), None);
}

#[test]
fn a_binding_that_is_deleted_or_elsewhere_is_not_due() {
    let taints = json!([{"key": "k", "effect": "NoExecute", "timeAdded": at(0)}]);
    let (mut binding, cluster) = on_tainted(&taints, &json!([]), &json!(null));
    let now = Time::from_millis(100_000);
    let is_due = |binding: &Binding| due(binding.into(), &cluster, ALL, now).unwrap() != Due::Never;
    assert!(is_due(&binding));
    binding.deletion_timestamp = Some(now);
    assert!(!is_due(&binding));
    assert_eq!(stays((&binding).into(), &cluster, ALL, now), None);
    binding.deletion_timestamp = None;
    binding.spec.clusters = vec![TargetCluster::new("member2", 2)];
    assert!(!is_due(&binding));
}
