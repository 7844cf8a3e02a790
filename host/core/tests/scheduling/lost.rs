//! Replicas of an evicted workload, and clusters that are not ready.

use super::*;

/// Returns a cluster with room for 50 replicas. A lost one has the taint of a cluster that is not ready.
fn cluster(name: &str, lost: bool) -> Arc<Cluster> {
    let resources = json!([{"name": "deployments", "kind": "Deployment"}]);
    let status = json!({
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": resources}],
        "resourceSummary": {"allocatable": {"cpu": "40", "pods": "50"}},
        "conditions": [{"type": "Ready", "status": if lost { "False" } else { "True" }}],
    });
    let taints = if lost {
        json!([{"key": "not-ready", "effect": "NoSchedule"}])
    } else {
        json!([])
    };
    let spec = json!({"syncMode": "Push", "taints": taints});
    Arc::new(serde_json::from_value(json!({"name": name, "spec": spec, "status": status})).unwrap())
}

/// Returns the result for a workload with these targets that leaves `m1`, and that tolerates every taint if `tolerant`.
/// `m1` and `m2` are lost, `m3` is ready if `third`.
fn placed_at(scheduling: &Value, targets: &[(&str, i32)], tolerant: bool, third: bool, spares: bool) -> SchedulePlan {
    let tolerations = if tolerant {
        json!([{"operator": "Exists"}])
    } else {
        json!([])
    };
    let clusters = [cluster("m1", true), cluster("m2", true), cluster("m3", !third)];
    placed_among(clusters, scheduling, targets, &tolerations, spares)
}

/// Returns the result for a workload with these targets and tolerations that leaves `m1`.
fn placed_among(
    clusters: [Arc<Cluster>; 3],
    scheduling: &Value,
    targets: &[(&str, i32)],
    tolerations: &Value,
    spares: bool,
) -> SchedulePlan {
    let placement = json!({"clusterTolerations": tolerations, "replicaScheduling": scheduling});
    let targets: Vec<_> = targets
        .iter()
        .map(|(name, replicas)| TargetCluster::new(*name, *replicas))
        .collect();
    let binding: Binding = serde_json::from_value(json!({
        "namespace": "ns", "name": "b",
        "annotations": {"policy.karmada.io/applied-placement": placement.to_string()},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "replicas": 6,
            "clusters": targets, "placement": placement,
            "gracefulEvictionTasks": [{"fromCluster": "m1", "reason": "TaintUntolerated", "producer": "p"}],
        },
    }))
    .unwrap();
    let options = SchedulerOptions {
        spares_lost: spares,
        ..SchedulerOptions::default()
    };
    let clusters = Arc::new(ClusterSnapshot::new(clusters));
    let (peers, accurate, now, assumed) = (&[][..], None, Time::from_millis(5_000), &BTreeMap::new());
    let snapshot = SchedulingSnapshot {
        binding: &binding,
        clusters: &clusters,
        peers,
        accurate,
        assumed,
        options: &options,
        now,
    };
    decide(snapshot, &policies(&IN_TREE))
}

/// Returns the replicas by cluster, or nothing if no place was found.
fn replicas(plan: &SchedulePlan) -> Vec<(&str, i32)> {
    let targets = placed(plan).unwrap_or_default().iter();
    targets.map(|target| (target.name.as_str(), target.replicas)).collect()
}

#[test]
fn replicas_that_leave_a_lost_cluster_do_not_go_to_another_one() {
    let weighted = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    let aggregated = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    let dynamic = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    });
    for scheduling in [&weighted, &aggregated, &dynamic] {
        // The replicas on m2 stay until it is left too.
        let plan = placed_at(scheduling, &[("m2", 1)], false, true, true);
        assert_eq!(replicas(&plan), [("m2", 1), ("m3", 5)], "{scheduling}");
        let plan = placed_at(scheduling, &[], true, true, true);
        assert_eq!(replicas(&plan), [("m3", 6)], "{scheduling}, all taints are tolerated");
        let plan = placed_at(scheduling, &[("m2", 1)], true, false, true);
        assert!(
            plan.error().is_some() && replicas(&plan).is_empty(),
            "{scheduling}: {:?}",
            plan.outcome
        );
    }
    // Karmada's result, which the vectors compare with.
    assert_eq!(
        replicas(&placed_at(&weighted, &[("m2", 1)], false, true, false)),
        [("m2", 3), ("m3", 3)]
    );
}

#[test]
fn a_duplicated_copy_on_a_lost_cluster_stays_and_no_new_one_is_made_there() {
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let plan = placed_at(&duplicated, &[("m2", 6)], true, true, true);
    assert_eq!(replicas(&plan), [("m2", 6), ("m3", 6)]);
    let plan = placed_at(&duplicated, &[("m3", 6)], true, true, true);
    assert_eq!(replicas(&plan), [("m3", 6)]);
    let rejected: Vec<_> = plan
        .rejections
        .iter()
        .map(|(name, reason)| (name, reason.reason.code.as_str()))
        .collect();
    assert!(rejected.contains(&("m2", "ClusterLost")), "{rejected:?}");
}

/// Karmada's filter accepts the toleration, so the workload would pass to and fro between two such clusters.
#[test]
fn an_evicted_workload_does_not_move_to_a_cluster_whose_toleration_has_expired() {
    // The evaluation is at 5 s, the taint of `m2` is from 2 s.
    let tainted = |seconds: i64| {
        let taint = json!({"key": "not-ready", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:02Z"});
        let mut m2 = Cluster::clone(&cluster("m2", false));
        m2.spec.taints = serde_json::from_value(json!([taint])).unwrap();
        let tolerations = json!([{"operator": "Exists", "tolerationSeconds": seconds}]);
        ([cluster("m1", true), Arc::new(m2), cluster("m3", true)], tolerations)
    };
    let weighted = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    let (clusters, tolerations) = tainted(3);
    let plan = placed_among(clusters, &weighted, &[], &tolerations, true);
    assert!(
        plan.error().is_some() && replicas(&plan).is_empty(),
        "{:?}",
        plan.outcome
    );
    let rejected: Vec<_> = plan
        .rejections
        .iter()
        .map(|(name, reason)| (name, reason.reason.code.as_str()))
        .collect();
    assert!(rejected.contains(&("m2", "TolerationExpired")), "{rejected:?}");
    let (clusters, tolerations) = tainted(4);
    assert_eq!(
        replicas(&placed_among(clusters, &weighted, &[], &tolerations, true)),
        [("m2", 6)]
    );
    // Karmada's result.
    let (clusters, tolerations) = tainted(3);
    assert_eq!(
        placed_among(clusters, &weighted, &[], &tolerations, false)
            .error()
            .map(|_| ()),
        None
    );
}
