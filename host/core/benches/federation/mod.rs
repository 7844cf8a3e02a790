//! Benchmark data: clusters shaped as in real federations (labels, 25 API groups, a resource summary, a few taints,
//! 20 regions), and bindings with one placement of each kind.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::decide::schedule::{IN_TREE, Outcome, SchedulerOptions, SchedulingSnapshot, decide};
use bulkhead_core::model::{Binding, Cluster, TargetCluster};
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::SchedulingPolicy;
use serde_json::{Value, json};

/// Returns one cluster; `modelled` clusters have the default resource models.
pub(crate) fn cluster(index: usize, modelled: bool) -> Arc<Cluster> {
    let labels: BTreeMap<String, String> = (0..8)
        .map(|label| {
            (
                format!("example.com/label-{label}"),
                format!("value-{}", (index + label) % 7),
            )
        })
        .chain([("env".to_owned(), "prod".to_owned())])
        .collect();
    // Clusters of the same version serve the same APIs; the federation has three versions.
    let enablements: Vec<Value> = (0..24)
        .map(|group| {
            let kinds: Vec<_> = (0..8 + index % 3)
                .map(|kind| json!({"name": format!("kind{kind}s"), "kind": format!("Kind{kind}")}))
                .collect();
            json!({"groupVersion": format!("group{group}.example.com/v1"), "resources": kinds})
        })
        .chain([json!({"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]})])
        .collect();
    let tainted = index.is_multiple_of(20);
    let taints = if tainted {
        json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}])
    } else {
        json!([])
    };
    let mut summary = json!({
        "allocatable": {"cpu": format!("{}", 40 + index % 60), "memory": "400Gi", "pods": "2000", "ephemeral-storage": "2Ti"},
        "allocated": {"cpu": format!("{}m", 9000 + index % 500), "memory": "100Gi", "pods": "300"},
        "allocating": {"cpu": "500m", "pods": "2"},
    });
    let mut spec = json!({
        "syncMode": "Push", "provider": "p", "region": format!("region-{:02}", index % 20), "zones": ["z"],
        "taints": taints,
    });
    if modelled {
        let (cpus, gis) = (
            [0, 1, 2, 4, 8, 16, 32, 64, 128],
            [0, 4, 16, 32, 64, 128, 256, 512, 1024],
        );
        let grade = |grade: usize| {
            json!({"grade": grade, "ranges": [
                {"name": "cpu", "min": cpus[grade].to_string(), "max": "9"},
                {"name": "memory", "min": format!("{}Gi", gis[grade]), "max": "9Gi"},
            ]})
        };
        spec["resourceModels"] = (0..9).map(grade).collect();
        summary["allocatableModelings"] = (0..9)
            .map(|grade| json!({"grade": grade, "count": (index + grade) % 5}))
            .collect();
    }
    let status = json!({"apiEnablements": enablements, "resourceSummary": summary});
    let cluster = json!({"name": format!("member-{index:05}"), "labels": labels, "spec": spec, "status": status});
    Arc::new(serde_json::from_value(cluster).unwrap())
}

/// Returns a snapshot of this many clusters.
pub(crate) fn clusters(count: usize, modelled: bool) -> Arc<ClusterSnapshot> {
    Arc::new(ClusterSnapshot::new((0..count).map(|index| cluster(index, modelled))))
}

/// Returns a Deployment of 50 replicas with this placement.
pub(crate) fn binding(placement: Value) -> Binding {
    let mut placement = placement;
    placement["clusterAffinity"] = json!({"labelSelector": {"matchLabels": {"env": "prod"}}});
    serde_json::from_value(json!({
        "namespace": "default", "name": "nginx-deployment", "generation": 1,
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "uid": "a"},
            "replicas": 50,
            "replicaRequirements": {"resourceRequest": {"cpu": "250m", "memory": "512Mi"}},
            "placement": placement,
        },
    }))
    .unwrap()
}

/// Returns the measured placements with their names, and true if they need resource models.
pub(crate) fn placements() -> Vec<(&'static str, Value, bool)> {
    let divided = |preference: &str, weights: Value| {
        json!({"replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": preference, "weightPreference": weights,
        }})
    };
    let dynamic = || divided("Weighted", json!({"dynamicWeight": "AvailableReplicas"}));
    let mut by_region = dynamic();
    by_region["spreadConstraints"] = json!([
        {"spreadByField": "region", "minGroups": 3, "maxGroups": 5},
        {"spreadByField": "cluster", "minGroups": 5, "maxGroups": 20},
    ]);
    let weights = json!({"staticWeightList": [
        {"targetCluster": {"labelSelector": {"matchLabels": {"example.com/label-0": "value-1"}}}, "weight": 3},
        {"targetCluster": {"labelSelector": {"matchLabels": {"example.com/label-0": "value-2"}}}, "weight": 2},
        {"targetCluster": {}, "weight": 1},
    ]});
    vec![
        (
            "duplicated",
            json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}),
            false,
        ),
        ("static", divided("Weighted", weights), false),
        ("dynamic", dynamic(), false),
        ("aggregated", divided("Aggregated", Value::Null), false),
        ("by-region", by_region, false),
        ("dynamic-models", dynamic(), true),
    ]
}

/// Returns Karmada's in-tree plugins.
pub(crate) fn policies() -> PolicySet {
    let policy = |name: &&str| SchedulingPolicy::by_name(name).map(|policy| Arc::new(policy) as Arc<dyn Policy>);
    PolicySet::new(IN_TREE.iter().filter_map(policy).collect())
}

/// Makes one decision and returns its targets.
pub(crate) fn schedule(binding: &Binding, clusters: &Arc<ClusterSnapshot>, policies: &PolicySet) -> Vec<TargetCluster> {
    let (options, assumed) = (SchedulerOptions::default(), BTreeMap::new());
    let (peers, accurate, now) = (&[][..], None, Time::from_millis(0));
    let snapshot = SchedulingSnapshot {
        binding,
        clusters,
        peers,
        accurate,
        assumed: &assumed,
        options: &options,
        now,
    };
    match decide(snapshot, policies).outcome {
        Outcome::Place(targets) => targets,
        other => panic!("{other:?}"),
    }
}
