//! Resource summary of a member cluster, computed from its nodes and pods (Karmada:
//! `pkg/controllers/status/cluster_status_controller.go`, `pkg/modeling/modeling.go`).
//!
//! Objects are processed as the member cluster reports them. Malformed parts count as zero, so that one invalid pod
//! does not hide a whole cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::{NodeSummary, ResourceSummary};
use crate::pod::{Amounts, amount, container_requests, printed};
use crate::quantity::Quantity;

/// Paths of the fields of a node that [`NodeResources::of`] reads.
pub const NODE_FIELDS: &[&str] = &[
    "status.allocatable",
    "status.conditions.type",
    "status.conditions.status",
];

/// Paths of the fields of a pod that [`PodRequests::of`] reads.
pub const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.containers.resources",
    "spec.initContainers.resources",
    "spec.overhead",
    "status.phase",
];

/// Resources of a node, as far as totals need them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResources {
    is_ready: bool,
    allocatable: Amounts,
}

impl NodeResources {
    /// Reads a node, of which [`NODE_FIELDS`] count.
    pub fn of(node: &Value) -> Self {
        Self {
            is_ready: is_ready(node),
            allocatable: amounts_of(&node["status"]["allocatable"]),
        }
    }
}

/// Requests of a pod, as far as totals need them. Many pods of a cluster have equal ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRequests {
    /// Sums over the containers.
    containers: Amounts,
    /// Maximums over the init containers.
    init_containers: Amounts,
    overhead: Amounts,
}

impl PodRequests {
    /// Reads a pod, of which [`POD_FIELDS`] count. Returns the name of its node, which is empty for a pod without one,
    /// and its requests; `None` for a finished pod, which keeps its node name but uses no resources.
    pub fn of(pod: &Value) -> Option<(&str, Self)> {
        let node = text(&pod["spec"]["nodeName"]);
        if !node.is_empty() && matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed") {
            return None;
        }
        let mut requests = Self {
            containers: Amounts::new(),
            init_containers: Amounts::new(),
            overhead: amounts_of(&pod["spec"]["overhead"]),
        };
        for container in items(&pod["spec"]["containers"]) {
            add(
                &mut requests.containers,
                &container_requests(container).unwrap_or_default(),
            );
        }
        for container in items(&pod["spec"]["initContainers"]) {
            raise(
                &mut requests.init_containers,
                &container_requests(container).unwrap_or_default(),
            );
        }
        Some((node, requests))
    }

    /// Adds the requests, and one pod. As in Karmada, an init container raises the sum over *all* pods to its request,
    /// instead of the sum of its own pod (`pkg/util/resource.go:AddPodRequest`).
    fn add_to(&self, sum: &mut Amounts) {
        add(sum, &self.containers);
        raise(sum, &self.init_containers);
        add(sum, &self.overhead);
        change(sum, "pods", |pods| pods.saturating_add(1));
    }
}

/// Accumulator of node counts and resource totals, one object at a time. Pods are not retained; of a node, only the
/// resources named in the resource model grades are.
#[derive(Debug, Default)]
pub struct Totals {
    grades: Vec<Grade>,
    nodes: usize,
    ready_nodes: usize,
    allocatable: Amounts,
    allocating: Amounts,
    allocated: Amounts,
    /// Rooms by node name; empty without grades.
    node_usage: BTreeMap<String, NodeUsage>,
}

/// Capacity of a node and requests of its pods, for the resources that the grades name.
#[derive(Debug, Default)]
struct NodeUsage {
    /// `None` until the node object is seen.
    allocatable: Option<Amounts>,
    used: Amounts,
}

impl Totals {
    /// Creates an empty accumulator for a cluster with these resource models. Malformed models count as absent.
    pub fn new(models: &[Value]) -> Self {
        let grades: Vec<Grade> = models.iter().filter_map(grade).collect();
        let grades = if grades.len() == models.len() {
            grades
        } else {
            Vec::new()
        };
        Self {
            grades,
            ..Self::default()
        }
    }

    /// Adds a node by its name.
    pub fn add_node(&mut self, name: &str, node: &NodeResources) {
        self.nodes += 1;
        self.ready_nodes += usize::from(node.is_ready);
        add(&mut self.allocatable, &node.allocatable);
        if !self.grades.is_empty() {
            let mut allocatable = node.allocatable.clone();
            allocatable.retain(|name, _| counts_for(&self.grades, name));
            self.node_usage.entry(name.to_owned()).or_default().allocatable = Some(allocatable);
        }
    }

    /// Adds a pod by the name of its node, which is empty for a pod without one. The totals depend on the order of the
    /// pods if some have init containers.
    pub fn add_pod(&mut self, node: &str, requests: &PodRequests) {
        if node.is_empty() {
            requests.add_to(&mut self.allocating);
            return;
        }
        requests.add_to(&mut self.allocated);
        if !self.grades.is_empty() {
            let used = &mut self.node_usage.entry(node.to_owned()).or_default().used;
            requests.add_to(used);
            used.retain(|name, _| counts_for(&self.grades, name));
        }
    }

    /// Returns the totals for the status of a Cluster.
    pub fn finish(self) -> (NodeSummary, ResourceSummary) {
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let summary = NodeSummary {
            total_num: count(self.nodes),
            ready_num: count(self.ready_nodes),
        };
        let resources = ResourceSummary {
            allocatable: listed(&self.allocatable),
            allocating: listed(&self.allocating),
            allocated: listed(&self.allocated),
            allocatable_modelings: modelings(&self.grades, self.node_usage),
        };
        (summary, resources)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_ready(node: &Value) -> bool {
    items(&node["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn amounts_of(quantities: &Value) -> Amounts {
    let entries = quantities.as_object();
    let read = |(name, value): (&String, &Value)| Some((name.clone(), amount(name, Quantity::from_json(value).ok()?)?));
    entries.into_iter().flatten().filter_map(read).collect()
}

/// Changes the amount of a resource, which is zero if there is none yet.
fn change(amounts: &mut Amounts, name: &str, change: impl Fn(i128) -> i128) {
    match amounts.get_mut(name) {
        Some(amount) => *amount = change(*amount),
        None => drop(amounts.insert(name.to_owned(), change(0))),
    }
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        change(sum, name, |sum| sum.saturating_add(*amount));
    }
}

fn raise(sum: &mut Amounts, least: &Amounts) {
    for (name, least) in least {
        change(sum, name, |sum| sum.max(*least));
    }
}

/// Returns the resources with a positive amount.
fn listed(amounts: &Amounts) -> BTreeMap<String, String> {
    amounts
        .iter()
        .filter(|(_, amount)| **amount > 0)
        .map(|(name, amount)| (name.clone(), printed(name, *amount)))
        .collect()
}

/// Number of a grade and the minimum resources of its nodes.
type Grade = (u64, Amounts);

fn grade(model: &Value) -> Option<Grade> {
    let least = |range: &Value| {
        let name = text(&range["name"]);
        let least = range
            .get("min")
            .map_or(Some(0), |min| amount(name, Quantity::from_json(min).ok()?))?;
        Some((name.to_owned(), least))
    };
    Some((
        model.get("grade")?.as_u64()?,
        items(&model["ranges"]).iter().filter_map(least).collect(),
    ))
}

/// Returns the number of nodes of each grade. A node without a free pod slot has no grade. Karmada stops counting at
/// the first such node, so its result depends on the node order.
fn modelings(grades: &[Grade], node_usage: BTreeMap<String, NodeUsage>) -> Vec<Value> {
    let mut counts = vec![0_u64; grades.len()];
    for node in node_usage.into_values() {
        let Some(mut free) = node.allocatable else { continue };
        for (name, amount) in node.used {
            *free.entry(name).or_default() -= amount;
        }
        if free.get("pods").copied().unwrap_or(0) <= 0 {
            continue;
        }
        if let Some(count) = counts.get_mut(index_of(grades, &free)) {
            *count += 1;
        }
    }
    grades
        .iter()
        .zip(counts)
        .map(|((grade, _), count)| json!({"grade": grade, "count": count}))
        .collect()
}

/// Returns true if the grade of a node depends on this resource. The resources of the first grade count.
fn counts_for(grades: &[Grade], name: &str) -> bool {
    name == "pods" || grades.first().is_some_and(|(_, least)| least.contains_key(name))
}

/// Returns the highest grade whose minimum the node satisfies for every resource of the grades.
fn index_of(grades: &[Grade], free: &Amounts) -> usize {
    let names = grades.first().map(|(_, least)| least.keys()).into_iter().flatten();
    let reached = |name: &String| {
        let existing = free.get(name).copied().unwrap_or(0);
        grades
            .iter()
            .rposition(|(_, least)| least.get(name).is_some_and(|least| *least <= existing))
            .unwrap_or(0)
    };
    names.map(reached).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, ready: &str, allocatable: Value) -> Value {
        json!({
            "metadata": {"name": name},
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn pod(node: &str, phase: &str, cpu: &str, memory: &str) -> Value {
        json!({
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]},
            "status": {"phase": phase},
        })
    }

    fn models() -> Vec<Value> {
        let model = |grade: u64, cpu: &str, memory: &str| {
            json!({"grade": grade, "ranges": [
                {"name": "cpu", "min": cpu, "max": "9"}, {"name": "memory", "min": memory, "max": "9Gi"},
            ]})
        };
        vec![model(0, "0", "0"), model(1, "1", "4Gi"), model(2, "2", "16Gi")]
    }

    fn summarize(nodes: &[Value], pods: &[Value], models: &[Value]) -> (NodeSummary, ResourceSummary) {
        let mut totals = Totals::new(models);
        for node in nodes {
            totals.add_node(text(&node["metadata"]["name"]), &NodeResources::of(node));
        }
        for (node, requests) in pods.iter().filter_map(PodRequests::of) {
            totals.add_pod(node, &requests);
        }
        totals.finish()
    }

    #[test]
    fn nodes_are_counted_and_resources_summed_by_what_pods_do() {
        let nodes = [
            node("a", "True", json!({"cpu": "4", "memory": "8Gi", "pods": "10"})),
            node(
                "b",
                "Unknown",
                json!({"cpu": "1500m", "memory": "8Gi", "pods": "10", "nonsense": "x"}),
            ),
        ];
        let pods = [
            pod("a", "Running", "500m", "1Gi"),
            pod("b", "Running", "250m", "1Gi"),
            pod("b", "Succeeded", "1", "1Gi"),
            pod("b", "Failed", "1", "1Gi"),
            pod("", "Pending", "2", "2Gi"),
            json!({"spec": {"nodeName": "a", "containers": "odd"}}),
        ];
        let (summary, resources) = summarize(&nodes, &pods, &[]);
        assert_eq!((summary.total_num, summary.ready_num), (2, 1));
        assert_eq!(
            json!(resources.allocatable),
            json!({"cpu": "5500m", "memory": "16Gi", "pods": "20"})
        );
        assert_eq!(
            json!(resources.allocated),
            json!({"cpu": "750m", "memory": "2Gi", "pods": "3"})
        );
        assert_eq!(
            json!(resources.allocating),
            json!({"cpu": "2", "memory": "2Gi", "pods": "1"})
        );
        assert!(resources.allocatable_modelings.is_empty());
    }

    #[test]
    fn an_empty_cluster_has_an_empty_summary() {
        assert_eq!(
            summarize(&[], &[], &[]),
            (NodeSummary::default(), ResourceSummary::default())
        );
    }

    #[test]
    fn a_node_is_of_the_highest_grade_that_all_its_free_resources_reach() {
        let check = |nodes: &[Value], pods: &[Value], counts: [u64; 3]| {
            let (_, resources) = summarize(nodes, pods, &models());
            let actual: Vec<_> = resources
                .allocatable_modelings
                .iter()
                .filter_map(|modeling| modeling["count"].as_u64())
                .collect();
            assert_eq!(actual, counts, "{nodes:?} {pods:?}");
        };
        let large = || node("a", "True", json!({"cpu": "8", "memory": "32Gi", "pods": "2"}));
        check(&[large()], &[], [0, 0, 1]);
        check(&[large()], &[pod("a", "Running", "7", "1Gi")], [0, 1, 0]);
        check(&[large()], &[pod("a", "Running", "1", "30Gi")], [1, 0, 0]);
        check(&[large()], &[pod("a", "Succeeded", "7", "1Gi")], [0, 0, 1]);
        check(&[node("b", "True", json!({"cpu": "8", "pods": "2"}))], &[], [1, 0, 0]);
        // A full node has no grade, and the nodes after it still count.
        let full = node("full", "True", json!({"cpu": "8", "memory": "32Gi", "pods": "1"}));
        check(&[full, large()], &[pod("full", "Running", "1", "1Gi")], [0, 0, 1]);
    }

    /// Karmada: `pkg/util/resource.go:AddPodRequest`, which raises the sum over all pods to the request of an init
    /// container, and then adds the overhead.
    #[test]
    fn an_init_container_raises_the_sum_and_overhead_is_added() {
        let with_more = |cpu: &str, init: &str, overhead: Value| {
            let mut pod = pod("a", "Running", cpu, "1Gi");
            pod["spec"]["initContainers"] = json!([{"resources": {"requests": {"cpu": init}}}]);
            pod["spec"]["overhead"] = overhead;
            pod
        };
        let pods = [
            with_more("500m", "2", json!({"cpu": "100m", "memory": "10Mi"})),
            with_more("1", "1", json!({"cpu": "50m", "disk": "none"})),
        ];
        let (_, resources) = summarize(&[], &pods, &[]);
        assert_eq!(
            json!(resources.allocated),
            json!({"cpu": "3150m", "memory": "2058Mi", "pods": "2"})
        );
    }

    #[test]
    fn an_amount_of_zero_is_not_listed() {
        let (_, resources) = summarize(&[node("a", "True", json!({"cpu": "0", "memory": "1Gi"}))], &[], &[]);
        assert_eq!(json!(resources.allocatable), json!({"memory": "1Gi"}));
    }

    #[test]
    fn malformed_models_give_no_grades() {
        let node = node("a", "True", json!({"cpu": "8", "memory": "32Gi", "pods": "2"}));
        let mut models = models();
        models.push(json!({"ranges": []}));
        let (_, resources) = summarize(&[node], &[], &models);
        assert!(resources.allocatable_modelings.is_empty());
    }
}
