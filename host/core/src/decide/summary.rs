//! What a member cluster has to offer, from its nodes and pods
//! (Karmada: `pkg/controllers/status/cluster_status_controller.go:getResourceSummary`).
//!
//! Not done here: the counts of nodes by grade, which replace the sums where a `Cluster` has resource models.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::ResourceSummary;
use crate::pod::{self, Detail};
use crate::quantity::{Format, Quantity};

/// What of a node counts.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeOffer {
    /// `status`.
    #[serde(default)]
    pub status: NodeOfferStatus,
}

/// `status` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeOfferStatus {
    /// What pods can have of it.
    #[serde(default)]
    pub allocatable: BTreeMap<String, Value>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<NodeCondition>,
}

/// A condition of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeCondition {
    /// Its type.
    #[serde(default, rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
}

impl NodeOffer {
    /// Whether the node's Ready condition is True.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }
}

/// What of a pod counts.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PodDemand {
    /// `spec`.
    #[serde(default)]
    pub spec: Value,
    /// `status`.
    #[serde(default)]
    pub status: PodDemandStatus,
}

/// `status` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PodDemandStatus {
    /// `Succeeded` and `Failed` ones need nothing any more.
    #[serde(default)]
    pub phase: String,
}

type Sums = BTreeMap<String, Quantity>;

fn add(sums: &mut Sums, name: &str, quantity: Quantity) {
    let sum = sums.entry(name.to_owned()).or_default();
    *sum = sum.plus(quantity);
}

/// Sums up what all nodes offer, what pods on nodes have, and what pods without a node ask for. An amount that
/// cannot be read counts as none: one odd pod must not hide what a cluster has.
pub fn summarize(nodes: &[NodeOffer], pods: &[PodDemand]) -> ResourceSummary {
    let mut allocatable = Sums::new();
    for (name, amount) in nodes.iter().flat_map(|node| &node.status.allocatable) {
        add(&mut allocatable, name, Quantity::from_json(amount).unwrap_or_default());
    }
    let (mut allocating, mut allocated) = (Sums::new(), Sums::new());
    for pod in pods {
        let node = pod.spec.get("nodeName").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            demand(&mut allocating, pod);
        } else if !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            demand(&mut allocated, pod);
        }
    }
    let printed = |sums: Sums| sums.into_iter().map(|(name, sum)| (name, sum.to_string())).collect();
    ResourceSummary {
        allocatable: printed(allocatable),
        allocating: printed(allocating),
        allocated: printed(allocated),
        ..ResourceSummary::default()
    }
}

fn demand(sums: &mut Sums, pod: &PodDemand) {
    let needed = pod::requirements(&json!({"spec": pod.spec}), Detail::Plain).ok().flatten();
    for (name, amount) in needed.into_iter().flat_map(|needed| needed.resource_request) {
        add(sums, &name, amount.parse().unwrap_or_default());
    }
    add(sums, "pods", Quantity::from_units(1, Format::Decimal));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_offer_pods_take_and_finished_pods_give_back() {
        let check = |nodes: Value, pods: Value, expected: Value| {
            let nodes: Vec<NodeOffer> = serde_json::from_value(nodes).unwrap();
            let pods: Vec<PodDemand> = serde_json::from_value(pods).unwrap();
            assert_eq!(serde_json::to_value(summarize(&nodes, &pods)).unwrap(), expected);
        };
        let node = |cpu: &str| json!({"status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "110"}}});
        let pod = |node: Value, phase: &str| {
            let requests = json!({"cpu": "250m", "memory": "64Mi"});
            json!({
                "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
                "status": {"phase": phase},
            })
        };
        check(json!([]), json!([]), json!({}));
        check(
            json!([node("1500m"), node("2"), {"status": {}}, {}]),
            json!([
                pod(json!("n1"), "Running"),
                pod(json!("n2"), "Pending"),
                pod(json!("n1"), "Succeeded"),
                pod(json!("n1"), "Failed"),
                pod(json!(null), "Pending"),
                {"spec": {"nodeName": "n1"}},
            ]),
            json!({
                "allocatable": {"cpu": "3500m", "memory": "2Gi", "pods": "220"},
                "allocated": {"cpu": "500m", "memory": "128Mi", "pods": "3"},
                "allocating": {"cpu": "250m", "memory": "64Mi", "pods": "1"},
            }),
        );
        let odd = json!({"spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "lots"}}}]}});
        check(
            json!([{"status": {"allocatable": {"cpu": "lots"}}}]),
            json!([odd]),
            json!({
                "allocatable": {"cpu": "0"},
                "allocated": {"pods": "1"},
            }),
        );
    }
}
