//! Contents of scheduling explanations.

use std::sync::Arc;

use bulkhead_core::decide::schedule::{AttemptExplanation, SelectionRule};
use bulkhead_core::model::{Binding, Cluster};
use serde_json::{Value, json};

use super::{explained, placed};

fn cluster(name: &str, region: &str, cpu: &str, tainted: bool) -> Arc<Cluster> {
    let enablements =
        json!([{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]);
    let taints = if tainted {
        json!([{"key": "k", "effect": "NoSchedule"}])
    } else {
        json!([])
    };
    let cluster = json!({
        "name": name, "spec": {"syncMode": "Push", "region": region, "taints": taints},
        "status": {
            "apiEnablements": enablements, "resourceSummary": {"allocatable": {"cpu": cpu, "pods": "100"}},
        },
    });
    Arc::new(serde_json::from_value(cluster).unwrap())
}

fn binding(spec: Value) -> Binding {
    let mut whole = spec;
    whole["resource"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
    whole["replicaRequirements"] = json!({"resourceRequest": {"cpu": "1"}});
    serde_json::from_value(json!({"namespace": "ns", "name": "b", "spec": whole})).unwrap()
}

fn attempts(binding: &Binding, clusters: &[Arc<Cluster>]) -> Vec<AttemptExplanation> {
    let plan = explained(binding, clusters);
    let attempts = plan.explanation.as_ref().unwrap().attempts.clone();
    assert_eq!(
        attempts.last().and_then(|attempt| attempt.targets.as_deref()),
        placed(&plan)
    );
    attempts
}

#[test]
fn filters_scores_estimates_regions_and_the_division_are_explained() {
    let clusters = [
        cluster("m1", "east", "10", false),
        cluster("m2", "east", "4", false),
        cluster("m3", "west", "8", false),
        cluster("m4", "west", "99", true),
        cluster("m5", "", "99", false),
    ];
    let divided = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    });
    let placement = json!({
        "replicaScheduling": divided,
        "spreadConstraints": [
            {"spreadByField": "region", "minGroups": 2, "maxGroups": 2},
            {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2},
        ],
    });
    let binding = binding(json!({
        "replicas": 9, "placement": placement, "clusters": [{"name": "m3", "replicas": 2}],
    }));
    let attempts = attempts(&binding, &clusters);
    let builtin = |name: &str| json!({"name": name, "version": env!("CARGO_PKG_VERSION"), "engine": "builtin"});
    let rejected = |name: &str, code: &Value, message: &str| json!({"policy": builtin(name), "reason": {"code": code, "message": message}});
    let actual = serde_json::to_value(&attempts).unwrap();
    let code = |cluster: &str| &actual[0]["rejected"][cluster]["reason"]["code"];
    let candidate = |name: &str, score: i64, room: i64, available: i64, selected: bool| {
        json!({
            "cluster": name, "scores": {"ClusterAffinity": 0, "ClusterLocality": score}, "score": score,
            "generalEstimate": room, "allocatable": room, "available": available, "selected": selected,
        })
    };
    assert_eq!(
        actual,
        json!([{
            "rejected": {
                "m4": rejected("TaintToleration", code("m4"), "cluster(s) had untolerated taint {k:NoSchedule}"),
                "m5": rejected("SpreadConstraint", code("m5"), "cluster(s) did not have region property"),
            },
            "candidates": [
                candidate("m3", 100, 8, 10, true),
                candidate("m1", 0, 10, 10, true),
                candidate("m2", 0, 4, 4, false),
            ],
            "selection": {
                "rule": "byRegion", "regionsMin": 2, "regionsMax": 2, "clustersMin": 2, "clustersMax": 2,
            },
            "regions": [
                {"name": "east", "clusters": 2, "score": 5000, "chosen": true},
                {"name": "west", "clusters": 1, "score": 5100, "chosen": true},
            ],
            "division": {"strategy": {"dynamic": "spread"}, "mode": "steady", "replicas": 9, "assigned": 2},
            "targets": [{"name": "m1", "replicas": 4}, {"name": "m3", "replicas": 5}],
        }])
    );
}

#[test]
fn every_attempted_affinity_group_is_explained_with_its_error() {
    let clusters = [cluster("m1", "", "2", false), cluster("m2", "", "9", false)];
    let divided = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"});
    let group = |name: &str, cluster: &str| json!({"affinityName": name, "clusterNames": [cluster]});
    let placement = json!({
        "replicaScheduling": divided,
        "clusterAffinities": [group("a", "nobody"), group("b", "m1"), group("c", "m2"), group("d", "m2")],
    });
    let attempts = attempts(&binding(json!({"replicas": 5, "placement": placement})), &clusters);
    let actual: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let name = attempt.affinity_name.as_deref().unwrap_or_default();
            let candidates: Vec<_> = attempt
                .candidates
                .iter()
                .map(|candidate| candidate.cluster.as_str())
                .collect();
            (
                name,
                attempt.rejected.len(),
                candidates,
                attempt.selection,
                attempt.error.is_some(),
            )
        })
        .collect();
    let everything = Some(SelectionRule::Everything);
    assert_eq!(
        actual,
        [
            ("a", 2, vec![], None, true),
            ("b", 1, vec!["m1"], everything, true),
            ("c", 1, vec!["m2"], everything, false),
        ]
    );
    assert_eq!(
        attempts.get(1).and_then(|attempt| attempt.error.as_deref()),
        Some(
            "failed to assign replicas: failed to scale up: Clusters available replicas 2 are not enough to schedule."
        ),
    );
}

#[test]
fn fixed_weights_are_explained_for_their_clusters() {
    let clusters = [
        cluster("m1", "", "2", false),
        cluster("m2", "", "9", false),
        cluster("m3", "", "9", false),
    ];
    let rule = |name: &str, weight: i64| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight});
    let weights = json!({"staticWeightList": [rule("m1", 1), rule("m2", 3)]});
    let divided = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted", "weightPreference": weights,
    });
    let binding = binding(json!({"replicas": 8, "placement": {"replicaScheduling": divided}}));
    let attempts = attempts(&binding, &clusters);
    let weights: Vec<_> = attempts
        .iter()
        .flat_map(|attempt| &attempt.candidates)
        .map(|candidate| (candidate.cluster.as_str(), candidate.weight))
        .collect();
    assert_eq!(weights, [("m2", Some(3)), ("m3", Some(0)), ("m1", Some(1))]);
}

#[test]
fn a_summary_of_rejections_names_up_to_three_clusters_for_a_reason() {
    let nowhere = binding(json!({"placement": {"clusterAffinity": {"clusterNames": ["m9"]}}}));
    let summary = |count: usize| {
        let names = ["m1", "m2", "m3", "m4"];
        let clusters: Vec<_> = names
            .iter()
            .take(count)
            .map(|name| cluster(name, "", "1", false))
            .collect();
        explained(&nowhere, &clusters).rejections.summary()
    };
    let reason = "cluster(s) did not match the placement cluster affinity constraint";
    assert_eq!(summary(1), format!("m1: {reason}"));
    assert_eq!(summary(3), format!("m1, m2, m3: {reason}"));
    assert_eq!(summary(4), format!("4 clusters: {reason}"));
}
