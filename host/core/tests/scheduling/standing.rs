//! Copies on clusters that are not in a new scheduling result.

use bulkhead_core::decide::reasons::{PRODUCER_SCHEDULER, REASON_RESCHEDULED};

use super::*;

fn cluster(name: &str, tier: &str) -> Arc<Cluster> {
    let resources = json!([{"name": "deployments", "kind": "Deployment"}]);
    let status = json!({
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": resources}],
        "resourceSummary": {"allocatable": {"cpu": "40", "pods": "50"}},
    });
    let cluster = json!({"name": name, "labels": {"tier": tier}, "spec": {"syncMode": "Push"}, "status": status});
    Arc::new(serde_json::from_value(cluster).unwrap())
}

/// Returns a binding whose copies run on these clusters, with a policy that selects tier gold. `applied` is true if
/// the policy was the same at the last scheduling.
fn binding(clusters: &[(&str, i32)], replicas: i32, scheduling: &Value, applied: bool) -> Binding {
    let placement = json!({
        "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}, "replicaScheduling": scheduling,
    });
    let targets: Vec<_> = clusters
        .iter()
        .map(|(name, replicas)| TargetCluster::new(*name, *replicas))
        .collect();
    let before = if applied {
        placement.to_string()
    } else {
        "{}".to_owned()
    };
    serde_json::from_value(json!({
        "namespace": "ns", "name": "b",
        "annotations": {"policy.karmada.io/applied-placement": before},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "replicas": replicas,
            "clusters": targets, "placement": placement,
        },
    }))
    .unwrap()
}

fn decided(binding: &Binding, clusters: &[Arc<Cluster>], evicts_standing: bool) -> SchedulePlan {
    let options = SchedulerOptions {
        evicts_standing,
        ..SchedulerOptions::default()
    };
    let clusters = Arc::new(ClusterSnapshot::new(clusters.iter().cloned()));
    let (peers, accurate, now, assumed) = (&[][..], None, Time::from_millis(5_000), &BTreeMap::new());
    let snapshot = SchedulingSnapshot {
        binding,
        clusters: &clusters,
        peers,
        accurate,
        assumed,
        options: &options,
        now,
    };
    decide(snapshot, &policies(&IN_TREE))
}

fn left(plan: &SchedulePlan) -> Vec<(&str, Option<i32>)> {
    plan.displaced
        .iter()
        .map(|task| (task.from_cluster.as_str(), task.replicas))
        .collect()
}

#[test]
fn a_copy_on_a_cluster_that_fits_no_more_leaves_through_an_eviction() {
    let clusters = [cluster("m1", "silver"), cluster("m2", "gold"), cluster("m3", "gold")];
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let moved = binding(&[("m1", 2), ("m2", 2)], 2, &duplicated, true);
    let plan = decided(&moved, &clusters, true);
    assert_eq!(placed(&plan).map(<[_]>::len), Some(2), "{:?}", plan.outcome);
    assert_eq!(left(&plan), [("m1", Some(2))]);
    let task = &plan.displaced[0];
    assert_eq!(
        (task.reason.as_str(), task.producer.as_str()),
        (REASON_RESCHEDULED, PRODUCER_SCHEDULER)
    );
    assert_eq!(task.creation_timestamp, Some(Time::from_millis(5_000)));
    // Karmada's behavior.
    let karmada = decided(&moved, &clusters, false);
    assert_eq!((karmada.outcome, left(&plan).len()), (plan.outcome.clone(), 1));
    assert_eq!(karmada.displaced, []);
}

#[test]
fn copies_stay_while_no_cluster_fits() {
    let clusters = [cluster("m1", "silver"), cluster("m2", "silver")];
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let standing = binding(&[("m1", 2)], 2, &duplicated, true);
    let plan = decided(&standing, &clusters, true);
    assert!(
        matches!(plan.outcome, Outcome::Keep(ScheduleError::NoClusterFit(_))),
        "{:?}",
        plan.outcome
    );
    assert_eq!((plan.targets(), left(&plan)), (None, Vec::new()));
    assert!(matches!(
        decided(&standing, &clusters, false).outcome,
        Outcome::Clear(_)
    ));
    // Without a copy, the result can be cleared.
    let unplaced = binding(&[], 2, &duplicated, true);
    assert!(matches!(decided(&unplaced, &clusters, true).outcome, Outcome::Clear(_)));
}

#[test]
fn a_new_policy_fewer_replicas_and_a_cluster_that_is_removed_take_effect_at_once() {
    let divided = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    let clusters = [cluster("m1", "silver"), cluster("m2", "gold"), cluster("m3", "gold")];
    let check = |binding: &Binding, clusters: &[Arc<Cluster>], expected: &[(&str, Option<i32>)]| {
        let plan = decided(binding, clusters, true);
        assert!(placed(&plan).is_some(), "{:?}", plan.outcome);
        assert_eq!(left(&plan), expected, "{:?}", plan.outcome);
    };
    let placed_on = [("m1", 2), ("m2", 2)];
    check(&binding(&placed_on, 4, &divided, false), &clusters, &[]);
    check(&binding(&placed_on, 3, &divided, true), &clusters, &[]);
    check(&binding(&placed_on, 5, &divided, true), &clusters, &[("m1", Some(2))]);
    let mut terminating = Cluster::clone(&clusters[0]);
    terminating.deletion_timestamp = Some(Time::from_millis(0));
    let removed = [
        Arc::new(terminating),
        Arc::clone(&clusters[1]),
        Arc::clone(&clusters[2]),
    ];
    check(&binding(&placed_on, 4, &divided, true), &removed, &[]);
    check(&binding(&placed_on, 4, &divided, true), &clusters[1..], &[]);
}

#[test]
fn what_leaves_through_an_eviction_is_a_copy() {
    let clusters = [cluster("m1", "silver"), cluster("m2", "gold"), cluster("m3", "gold")];
    let left_of = |binding: &Binding| {
        let plan = decided(binding, &clusters, true);
        assert!(placed(&plan).is_some(), "{:?}", plan.outcome);
        let tasks = plan.displaced.iter();
        tasks.map(|task| task.from_cluster.clone()).collect::<Vec<_>>()
    };
    let duplicated = json!({"replicaSchedulingType": "Duplicated"});
    let divided = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    // An object without replicas, such as a ConfigMap, has a copy on every target; a workload has none where it has no
    // replicas.
    assert_eq!(left_of(&binding(&[("m1", 0), ("m2", 0)], 0, &duplicated, true)), ["m1"]);
    assert_eq!(left_of(&binding(&[("m1", 0), ("m2", 2)], 2, &divided, true)), [""; 0]);
    // Fewer or more replicas of a duplicated workload concern every copy, and give up none.
    assert_eq!(left_of(&binding(&[("m1", 2), ("m2", 2)], 3, &duplicated, true)), ["m1"]);
}
