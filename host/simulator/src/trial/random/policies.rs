//! Random policies: taints of clusters, and placements of workloads.

use serde_json::{Value, json};

use super::settings::Settings;
use super::workloads::App;
use crate::trial::seeded_rng::SeededRng;

/// Generates taint policies. In some cases sets `failover-eviction-timeout` for the classic timeout taints instead.
pub(super) fn taints(rng: &mut SeededRng, settings: &mut Settings) -> Vec<Value> {
    let policy = |name: &str, spec: Value| json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": name}, "spec": spec});
    let not_ready = json!([{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}]);
    let ready = json!([{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}]);
    let mut policies = Vec::new();
    let evicting = |key: &str, effect: &str| json!([{"key": key, "effect": effect}]);
    match rng.between(1, 10) {
        1 | 2 => settings.flags["failover-eviction-timeout"] = json!(rng.seconds(5, 20)),
        3 | 4 => {
            let effect = if settings.prefers {
                "PreferNoExecute"
            } else {
                "NoExecute"
            };
            let windows =
                json!({"addOnMatchSeconds": rng.between(5, 20), "removeOnMismatchSeconds": rng.between(5, 20)});
            let mut taint = json!({"key": "cluster.karmada.io/not-ready", "effect": effect});
            if let (Some(taint), Some(windows)) = (taint.as_object_mut(), windows.as_object()) {
                taint.extend(windows.clone());
            }
            policies.push(policy(
                "windows",
                json!({"matchConditions": not_ready, "taintsToAdd": [taint]}),
            ));
        }
        _ => {
            let spec = json!({
                "addOnConditions": not_ready, "removeOnConditions": ready,
                "taints": evicting("cluster.karmada.io/not-ready", "NoExecute"),
            });
            policies.push(policy("not-ready", spec));
        }
    }
    if rng.chance(40) {
        let spec = json!({
            "addOnConditions": not_ready, "removeOnConditions": ready, "taints": evicting("example.com/lost", "NoSchedule"),
        });
        policies.push(policy("lost", spec));
    }
    policies
}

/// Generates the policy of one workload.
pub(super) fn propagation(rng: &mut SeededRng, app: &App, clusters: &[String], settings: &Settings) -> Value {
    let kind = if app.cluster_scoped {
        "ClusterPropagationPolicy"
    } else {
        "PropagationPolicy"
    };
    let mut metadata = json!({"name": app.name});
    if !app.cluster_scoped {
        metadata["namespace"] = json!("default");
    }
    let mut spec = json!({
        "resourceSelectors": [{"apiVersion": app.api_version, "kind": app.kind, "name": app.name}],
        "placement": placement(rng, app, clusters, settings.crowded),
    });
    if let Some(failover) = failover(rng, app, settings) {
        spec["propagateDeps"] = json!(true);
        spec["failover"] = failover;
    }
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

fn placement(rng: &mut SeededRng, app: &App, clusters: &[String], crowded: bool) -> Value {
    let mut placement = json!({});
    let selected = if crowded {
        clusters.to_vec()
    } else {
        rng.some_of(clusters, 1)
    };
    match rng.between(1, 10) {
        1 | 2 => {}
        3 | 4 if clusters.len() > 1 && !crowded => {
            placement["clusterAffinities"] = json!([
                {"affinityName": "first", "clusterNames": rng.one_of(clusters).map(|name| [name])},
                {"affinityName": "rest", "clusterNames": clusters},
            ]);
        }
        _ => placement["clusterAffinity"] = json!({"clusterNames": selected}),
    }
    if app.is_workload() {
        scheduling(rng, &mut placement, &selected, crowded);
    }
    if rng.chance(25) {
        let key = "cluster.karmada.io/not-ready";
        let mut toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
        if rng.chance(60) {
            toleration["tolerationSeconds"] = json!(rng.between(0, 40));
        }
        placement["clusterTolerations"] = json!([toleration]);
    }
    placement
}

fn scheduling(rng: &mut SeededRng, placement: &mut Value, selected: &[String], crowded: bool) {
    let divided =
        |preference: &str| json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference});
    let choice = if crowded { rng.between(4, 5) } else { rng.between(1, 5) };
    match choice {
        1 => placement["replicaScheduling"] = json!({"replicaSchedulingType": "Duplicated"}),
        2 => {
            placement["replicaScheduling"] = json!({"replicaSchedulingType": "Duplicated"});
            placement["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
        }
        3 => {
            placement["replicaScheduling"] = divided("Weighted");
            let weights: Vec<_> = selected
                .iter()
                .map(|name| json!({"targetCluster": {"clusterNames": [name]}, "weight": rng.between(1, 3)}))
                .collect();
            if rng.chance(70) {
                placement["replicaScheduling"]["weightPreference"] = json!({"staticWeightList": weights});
            }
        }
        4 => {
            placement["replicaScheduling"] = divided("Weighted");
            placement["replicaScheduling"]["weightPreference"] = json!({"dynamicWeight": "AvailableReplicas"});
        }
        _ => placement["replicaScheduling"] = divided("Aggregated"),
    }
}

fn failover(rng: &mut SeededRng, app: &App, settings: &Settings) -> Option<Value> {
    let mut failover = json!({});
    if rng.chance(30) {
        let mode = if rng.chance(80) { "Gracefully" } else { "Directly" };
        failover["cluster"] = json!({"purgeMode": mode});
        if mode == "Gracefully" && rng.chance(50) {
            failover["cluster"]["gracePeriodSeconds"] = json!(rng.between(5, 60));
        }
        if settings.prefers {
            failover["cluster"]["tolerationSeconds"] = json!(rng.between(1, 20));
        }
    }
    if app.is_workload() && rng.chance(35) {
        let mut application = json!({"decisionConditions": {"tolerationSeconds": rng.between(20, 40)}});
        if rng.chance(80) {
            application["purgeMode"] = json!("Gracefully");
            application["gracePeriodSeconds"] = json!(rng.between(10, 60));
        } else {
            application["purgeMode"] = json!("Directly");
        }
        if rng.chance(30) {
            application["blockPredecessorSeconds"] = json!(rng.between(10, 60));
        }
        failover["application"] = application;
    }
    failover
        .as_object()
        .is_some_and(|members| !members.is_empty())
        .then_some(failover)
}
