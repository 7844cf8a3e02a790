//! Clusters, bindings and evictions.

use std::sync::Arc;

use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, Health, TargetCluster};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::owned_call::Eviction;

/// Converts a JSON literal into a type of the model.
fn model<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is written for the model, as tests show")
}

/// Returns the name of a cluster. Names sort like the indexes.
fn name(index: usize) -> String {
    format!("member{index:04}")
}

/// Returns a cluster. Clusters with adjacent indexes differ in region, labels, readiness, taints, resources and
/// served APIs.
pub(crate) fn cluster(index: usize) -> Cluster {
    let tier = ["gold", "silver", "bronze"][index % 3];
    let (provider, region) = (["acme", "globex"][index % 2], ["eu-west", "us-east", ""][index % 3]);
    let ready = ["True", "True", "False", "Unknown"][index % 4];
    let taints = if index % 5 == 4 {
        json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoExecute", "timeAdded": "2025-12-31T23:50:00Z"}])
    } else {
        json!([])
    };
    let workloads = if index % 7 == 6 {
        json!([])
    } else {
        json!([{"name": "deployments", "kind": "Deployment"}])
    };
    let summary = json!({
        "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
        "allocating": {"cpu": "500m"},
        "allocated": {"cpu": format!("{}", index % 17), "memory": format!("{}Gi", index % 65)},
    });
    model(json!({
        "name": name(index),
        "labels": {"tier": tier, "example.io/index": index.to_string()},
        "generation": 1,
        "spec": {
            "syncMode": if index.is_multiple_of(2) { "Push" } else { "Pull" },
            "provider": provider,
            "region": region,
            "zones": [format!("zone-{}", index % 4)],
            "taints": taints,
        },
        "status": {
            "kubernetesVersion": "v1.35.0",
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": workloads}],
            "conditions": [{
                "type": "Ready", "status": ready, "reason": "ClusterReady", "message": "as probed",
                "lastTransitionTime": "2025-12-31T23:30:00Z",
            }],
            "nodeSummary": {"totalNum": 5, "readyNum": index % 6},
            "resourceSummary": if index % 11 == 10 { Value::Null } else { summary },
        },
    }))
}

/// Returns `count` clusters in order of name.
pub(crate) fn clusters(count: usize) -> Vec<Arc<Cluster>> {
    (0..count).map(|index| Arc::new(cluster(index))).collect()
}

/// Returns a binding with `targets` target clusters and one graceful eviction task for a further cluster.
pub(crate) fn binding(targets: usize) -> Binding {
    let mut binding: Binding = model(json!({
        "namespace": "default",
        "name": "nginx-deployment",
        "generation": 3,
        "labels": {"app": "nginx"},
        "annotations": {"example.io/team": "web"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            "replicas": targets * 2,
            "replicaRequirements": {"resourceRequest": {"cpu": "250m", "memory": "64Mi"}},
            "placement": {
                "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}},
                "clusterTolerations": [{"key": "cluster.karmada.io/not-ready", "operator": "Exists"}],
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1}],
            },
            "gracefulEvictionTasks": [{
                "fromCluster": name(targets), "reason": "TaintUntolerated", "producer": "TaintManager",
                "creationTimestamp": "2025-12-31T23:55:00Z", "gracePeriodSeconds": 600, "replicas": 2,
            }],
        },
        "status": {"schedulerObservedGeneration": 3},
    }));
    binding.spec.clusters = (0..targets).map(|index| TargetCluster::new(name(index), 2)).collect();
    binding.status.aggregated_status = reports(targets);
    binding
}

/// Returns regular and unusual bindings with their descriptions.
pub(crate) fn bindings() -> Vec<(&'static str, Binding)> {
    let mut fresh = binding(0);
    fresh.status = Default::default();
    fresh.spec.graceful_eviction_tasks.clear();
    let mut wide = binding(3);
    wide.namespace = None;
    wide.spec.placement = None;
    vec![
        ("a binding on three clusters", binding(3)),
        ("a new binding", fresh),
        ("a binding without placement", wide),
    ]
}

/// Returns the reports of `count` clusters in order of name. All are healthy, except that every eighth has no health.
pub(crate) fn reports(count: usize) -> Vec<AggregatedStatusItem> {
    let report = |index: usize| AggregatedStatusItem {
        cluster_name: name(index),
        applied: true,
        status: Some(json!({
            "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "phase": "Running",
            "observedGeneration": 1,
        })),
        health: if index % 8 == 7 { None } else { Some(Health::Healthy) },
        ..AggregatedStatusItem::default()
    };
    (0..count).map(report).collect()
}

/// Returns an eviction from one cluster while the workload runs on `targets` other clusters, with its description.
pub(crate) fn eviction(targets: usize) -> (String, Eviction) {
    let binding = binding(targets);
    let task = binding
        .spec
        .graceful_eviction_tasks
        .first()
        .cloned()
        .unwrap_or_default();
    let observed = reports(targets + 1);
    (
        format!("an eviction with {targets} target clusters"),
        Eviction {
            binding,
            task,
            observed,
        },
    )
}

/// Returns regular and unusual evictions with their descriptions.
pub(crate) fn evictions() -> Vec<(String, Eviction)> {
    let (_, usual) = eviction(3);
    let mut unscheduled = usual.clone();
    unscheduled.binding.status.scheduler_observed_generation = 2;
    let mut sick = usual.clone();
    for item in &mut sick.observed {
        item.health = Some(Health::Unhealthy);
        item.status = Some(json!({"availableReplicas": 0}));
    }
    let mut unobserved = usual;
    unobserved.observed.clear();
    let special = [
        ("an eviction before the scheduler has seen the binding", unscheduled),
        ("an eviction while the others are unhealthy", sick),
        ("an eviction while nothing is reported", unobserved),
    ];
    let plain = [0, 1, 3].map(eviction);
    plain
        .into_iter()
        .chain(special.map(|(what, eviction)| (what.to_owned(), eviction)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_in_order_of_name_and_differ() {
        let clusters = clusters(200);
        assert!(clusters.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(
            clusters.iter().any(|cluster| cluster.is_ready()) && clusters.iter().any(|cluster| !cluster.is_ready())
        );
        assert!(clusters.iter().any(|cluster| !cluster.serves("apps/v1", "Deployment")));
    }

    #[test]
    fn a_binding_says_what_it_was_made_for() {
        let (_, eviction) = eviction(3);
        assert_eq!(eviction.binding.spec.clusters.len(), 3);
        assert!(!eviction.binding.spec.targets(&eviction.task.from_cluster));
        assert!(eviction.binding.spec.placement.is_some());
        assert!(evictions().len() == 6 && bindings().len() == 3);
    }
}
