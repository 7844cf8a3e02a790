//! Handling of invalid input: as in Karmada if it has a rule, otherwise with a condition that names the error.

use std::sync::Arc;

use bulkhead_core::decide::schedule::{IN_TREE, Outcome, SchedulerOptions, Trigger, trigger};
use bulkhead_core::model::{Binding, Cluster};
use bulkhead_core::snapshot::ClusterSnapshot;
use serde_json::{Value, json};

use super::plan;

/// Returns a cluster with capacity for ten replicas of one cpu each.
fn cluster(name: &str, region: &str) -> Arc<Cluster> {
    let enablements =
        json!([{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]);
    let summary = json!({"allocatable": {"cpu": "10", "pods": "100"}});
    let cluster = json!({
        "name": name, "spec": {"syncMode": "Push", "region": region},
        "status": {"apiEnablements": enablements, "resourceSummary": summary},
    });
    Arc::new(serde_json::from_value(cluster).unwrap())
}

fn silent(name: &str) -> Arc<Cluster> {
    let mut silent = Cluster::clone(&cluster(name, "r1"));
    silent.status.resource_summary = None;
    Arc::new(silent)
}

fn three() -> Vec<Arc<Cluster>> {
    vec![cluster("m1", "r1"), cluster("m2", "r2"), cluster("m3", "r2")]
}

fn binding(replicas: i32, placement: Value) -> Binding {
    let spec = json!({
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "replicas": replicas,
        "replicaRequirements": {"resourceRequest": {"cpu": "1"}}, "placement": placement,
    });
    serde_json::from_value(json!({"namespace": "ns", "name": "b", "generation": 1, "spec": spec})).unwrap()
}

/// Returns the result as `m1:1, m2:2`, or reason and message of the condition.
fn result_of(binding: &Binding, clusters: &[Arc<Cluster>]) -> String {
    let plan = plan(binding, clusters, &IN_TREE);
    match &plan.outcome {
        Outcome::Place(targets) => {
            let targets = targets
                .iter()
                .map(|target| format!("{}:{}", target.name, target.replicas));
            targets.collect::<Vec<_>>().join(", ")
        }
        Outcome::Nothing => "nothing".to_owned(),
        Outcome::Clear(_) | Outcome::Keep(_) => {
            let verdict = plan.conclude(binding, Ok(())).verdict;
            format!("{}: {}", verdict.reason, verdict.message)
        }
    }
}

fn check(replicas: i32, placement: Value, clusters: &[Arc<Cluster>], expected: &str) {
    assert_eq!(
        result_of(&binding(replicas, placement.clone()), clusters),
        expected,
        "{placement}"
    );
}

fn divided(preference: &str, weights: Value) -> Value {
    json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": preference, "weightPreference": weights,
    })
}

fn dynamic() -> Value {
    divided("Weighted", json!({"dynamicWeight": "AvailableReplicas"}))
}

#[test]
fn weights_that_add_up_to_zero_count_as_equal() {
    let weights = |weights: &[(&str, i64)]| {
        let rule = |(name, weight): &(&str, i64)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight});
        let list: Vec<_> = weights.iter().map(rule).collect();
        json!({"replicaScheduling": divided("Weighted", json!({"staticWeightList": list}))})
    };
    check(6, weights(&[("m1", 0), ("m2", 0)]), &three(), "m1:2, m2:2, m3:2");
    check(6, weights(&[("m1", -5)]), &three(), "m1:2, m2:2, m3:2");
    check(6, weights(&[("nobody", 3)]), &three(), "m1:2, m2:2, m3:2");
    let huge = 1_i64 << 62;
    check(
        3,
        weights(&[("m1", huge), ("m2", huge), ("m3", i64::MIN)]),
        &three(),
        "m1:2, m2:1",
    );
}

#[test]
fn a_minimum_above_the_maximum_is_what_karmada_makes_of_it() {
    let spread = |field: &str, min: i64, max: i64| json!({"spreadByField": field, "minGroups": min, "maxGroups": max});
    let by = |constraints: Value| json!({"spreadConstraints": constraints});
    // By cluster, the maximum wins if there are enough clusters for the minimum.
    check(1, by(json!([spread("cluster", 3, 2)])), &three(), "m1:1, m2:1");
    let too_few = "SchedulerError: failed to select clusters: \
                   the number of feasible clusters is less than spreadConstraint.MinGroups";
    check(1, by(json!([spread("cluster", 4, 2)])), &three(), too_few);
    let none = "SchedulerError: failed to select clusters: \
                the number of clusters is less than the cluster spreadConstraint.MinGroups";
    check(
        1,
        by(json!([spread("region", 2, 1), spread("cluster", 1, 3)])),
        &three(),
        none,
    );
    // A maximum that is not set allows no group.
    let nobody = "SchedulerError: failed to assign replicas: no clusters available to schedule";
    check(1, by(json!([spread("cluster", 1, 0)])), &three(), nobody);
}

#[test]
fn an_unknown_constraint_is_named() {
    let by = |field: &str| json!({"spreadConstraints": [{"spreadByField": field, "minGroups": 1, "maxGroups": 1}]});
    let unknown = "SchedulerError: failed to select clusters: just support cluster and region spread constraint";
    for field in ["rack", "", "CLUSTER"] {
        check(1, by(field), &three(), unknown);
    }
    let label = json!({"spreadConstraints": [{"spreadByLabel": "rack", "minGroups": 1, "maxGroups": 1}]});
    check(1, label, &three(), unknown);
}

#[test]
fn a_negative_number_of_replicas_is_refused() {
    for scheduling in [Value::Null, dynamic(), divided("Aggregated", Value::Null)] {
        let placement = if scheduling.is_null() {
            json!({})
        } else {
            json!({"replicaScheduling": scheduling})
        };
        check(
            -2,
            placement,
            &three(),
            "SchedulerError: spec.replicas is -2, it must be 0 or more",
        );
    }
}

#[test]
fn an_applied_placement_that_cannot_be_read_counts_as_the_same() {
    let check = |applied: &str, expected: Option<Trigger>| {
        let placement = json!({"replicaScheduling": dynamic()});
        let mut binding = binding(2, placement);
        binding.spec.clusters = serde_json::from_value(json!([{"name": "m1", "replicas": 2}])).unwrap();
        binding
            .annotations
            .insert("policy.karmada.io/applied-placement".to_owned(), applied.to_owned());
        let placement = binding.spec.placement.clone().unwrap();
        let clusters = ClusterSnapshot::new(three());
        assert_eq!(
            trigger(&binding, &placement, &clusters, &SchedulerOptions::default()),
            expected,
            "{applied:?}"
        );
    };
    check("{not json", None);
    check("[]", None);
    check("true", None);
    check("", Some(Trigger::PlacementChanged));
    check("{}", Some(Trigger::PlacementChanged));
    check("null", Some(Trigger::PlacementChanged));
}

#[test]
fn a_cluster_without_a_summary_has_no_room_and_still_takes_whole_copies() {
    let clusters = [silent("m1"), cluster("m2", "r2")];
    check(6, json!({"replicaScheduling": dynamic()}), &clusters, "m2:6");
    check(2, json!({}), &clusters, "m2:2, m1:2");
    let full = "Unschedulable: failed to assign replicas: failed to scale up: \
                Clusters available replicas 0 are not enough to schedule.";
    check(1, json!({"replicaScheduling": dynamic()}), &[silent("m1")], full);
}

#[test]
fn contradicting_affinities_leave_no_cluster_with_a_message() {
    let nobody = |count: usize| {
        let reason = "cluster(s) did not match the placement cluster affinity constraint";
        format!("NoClusterFit: 0/3 clusters are available: {count} {reason}.")
    };
    let both = json!({"clusterAffinity": {"clusterNames": ["m1"], "exclude": ["m1"]}});
    check(1, both, &three(), &nobody(3));
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    check(
        1,
        json!({"clusterAffinity": {"labelSelector": selector}}),
        &three(),
        &nobody(3),
    );
    let senseless = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]});
    check(
        1,
        json!({"clusterAffinity": {"labelSelector": senseless}}),
        &three(),
        &nobody(3),
    );
    // With both kinds of affinity, the single one filters and the groups are still tried in order.
    let groups = json!([{"affinityName": "g", "clusterNames": ["m1"]}]);
    let placement = json!({"clusterAffinity": {"clusterNames": ["m2"]}, "clusterAffinities": groups});
    check(1, placement, &three(), "m2:1");
    check(1, json!({"clusterAffinities": []}), &three(), "nothing");
}

#[test]
fn quantities_that_cannot_be_read_are_named() {
    let mut binding = binding(1, json!({"replicaScheduling": dynamic()}));
    let requirements = json!({"resourceRequest": {"cpu": "lots"}});
    binding.spec.replica_requirements = serde_json::from_value(requirements).unwrap();
    let actual = result_of(&binding, &three());
    assert!(
        actual.starts_with("SchedulerError: ") && actual.contains("cpu") && actual.contains("lots"),
        "{actual}"
    );
}
