//! Laws about pairs of calls that differ only in irrelevant details.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::call::{Interpretation, Reply};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster};
use serde_json::{Value, json};

use super::{Examination, each};
use crate::call_result::CallResult;
use crate::inputs::Seeded;
use crate::owned_call::{Candidates, Eviction, Request};
use crate::report::Outcome;

/// A field name that no API uses.
const UNKNOWN: &str = "conformanceUnknownField";
/// Number of shuffled orders tried in addition to the reverse order.
const SHUFFLES: u64 = 3;

/// Checks that unknown fields do not change the answer: APIs gain fields that existing plugins do not know.
pub(super) fn unknown_fields(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.plain.iter(), |sample| {
        let mut more = sample.clone();
        add_unknown(&mut more.call.request);
        let (first, second) = (examined.ask(sample), without_unknown(examined.ask(&more)));
        (!first.same(&second)).then(|| first.difference(&second))
    })
}

fn add_unknown(request: &mut Request) {
    match request {
        Request::Health(object)
        | Request::Replicas(object)
        | Request::Components(object)
        | Request::Revise(object, _)
        | Request::ReflectStatus(object)
        | Request::Dependencies(object) => add_to_object(object),
        Request::AggregateStatus(object, items) => {
            add_to_object(object);
            add_to_reports(items);
        }
        Request::Retain(desired, observed) => {
            add_to_object(desired);
            add_to_object(observed);
        }
        Request::ClusterTaint(cluster) => add_to_cluster(cluster),
        Request::Filter(asked) | Request::Score(asked) => {
            let Candidates { binding, clusters } = &mut **asked;
            add_to_binding(binding);
            for cluster in clusters {
                add_to_cluster(Arc::make_mut(cluster));
            }
        }
        Request::EvictionCheck(asked) => {
            let Eviction {
                binding,
                task: _,
                observed,
            } = &mut **asked;
            add_to_binding(binding);
            add_to_reports(observed);
        }
    }
}

/// Adds the unknown field at the top level and in `metadata`, `spec` and `status`.
fn add_to_object(object: &mut Arc<Value>) {
    let object = Arc::make_mut(object);
    for part in ["/metadata", "/spec", "/status"] {
        if let Some(part) = object.pointer_mut(part) {
            add_to(part);
        }
    }
    add_to(object);
}

fn add_to(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.insert(UNKNOWN.to_owned(), unknown());
    }
}

fn unknown() -> Value {
    json!({"list": [1, "two", null], "flag": true})
}

fn add_to_cluster(cluster: &mut Cluster) {
    cluster.spec.rest.insert(UNKNOWN.to_owned(), unknown());
    cluster.status.rest.insert(UNKNOWN.to_owned(), unknown());
}

fn add_to_binding(binding: &mut Binding) {
    binding.spec.rest.insert(UNKNOWN.to_owned(), unknown());
}

fn add_to_reports(reports: &mut [AggregatedStatusItem]) {
    reports
        .iter_mut()
        .filter_map(|report| report.status.as_mut())
        .for_each(add_to);
}

/// Removes the unknown field at every depth. An interpreter that returns an object keeps fields it does not know, and
/// one that collects a whole status collects them too.
fn without_unknown(mut answer: CallResult) -> CallResult {
    if let Ok(Reply::Interpret(Some(Interpretation::Object(value) | Interpretation::Status(Some(value))))) =
        &mut answer.reply
    {
        remove_unknown(value);
    }
    answer
}

fn remove_unknown(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(remove_unknown),
        Value::Object(members) => {
            members.remove(UNKNOWN);
            members.values_mut().for_each(remove_unknown);
        }
        _ => {}
    }
}

/// Checks that the order of clusters does not change the verdicts. The contract passes clusters in order of name; a
/// verdict that depends on the position would change when a cluster joins. The same clusters are therefore asked
/// about under names that put them in other orders.
pub(super) fn order(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.plain.iter(), |sample| {
        let count = sample.call.clusters()?.len();
        let under_names = |order: &[usize]| {
            let mut renamed = sample.clone();
            if let Request::Filter(asked) | Request::Score(asked) = &mut renamed.call.request {
                rename(asked, order);
            }
            examined.ask(&renamed)
        };
        let usual = under_names(&(0..count).collect::<Vec<_>>());
        orders(count).into_iter().find_map(|order| {
            let answer = under_names(&order);
            (!usual.same(&answer)).then(|| format!("in another order: {}", usual.difference(&answer)))
        })
    })
}

/// Renames the clusters so that sorting by name puts them in the given `order`. The binding's references are renamed
/// with them.
fn rename(asked: &mut Candidates, order: &[usize]) {
    let mut names = BTreeMap::new();
    for (place, index) in order.iter().enumerate() {
        if let Some(cluster) = asked.clusters.get_mut(*index) {
            let cluster = Arc::make_mut(cluster);
            let name = format!("cluster-{place:05}");
            names.insert(std::mem::replace(&mut cluster.name, name.clone()), name);
        }
    }
    let binding = &mut asked.binding;
    let targets = binding.spec.clusters.iter_mut().map(|target| &mut target.name);
    let tasks = binding
        .spec
        .graceful_eviction_tasks
        .iter_mut()
        .map(|task| &mut task.from_cluster);
    let reports = binding
        .status
        .aggregated_status
        .iter_mut()
        .map(|item| &mut item.cluster_name);
    for name in targets.chain(tasks).chain(reports) {
        if let Some(renamed) = names.get(name) {
            name.clone_from(renamed);
        }
    }
}

/// Returns other orders of `count` clusters, each a list of cluster indexes by position. One cluster has no other
/// order.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let usual: Vec<_> = (0..count).collect();
    let mut orders = vec![usual.iter().rev().copied().collect::<Vec<_>>()];
    for seed in 0..SHUFFLES {
        let mut order = usual.clone();
        Seeded::new(seed).shuffle(&mut order);
        orders.push(order);
    }
    orders.retain(|order| *order != usual);
    orders.dedup();
    orders
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Cluster, TargetCluster};

    use super::*;

    #[test]
    fn another_order_is_another_one() {
        let usual: Vec<_> = (0..24).collect();
        let orders = orders(usual.len());
        assert!(!orders.is_empty() && orders.iter().all(|order| *order != usual));
    }

    #[test]
    fn names_bring_clusters_into_the_order_and_bindings_along() {
        let cluster = |name: &str| {
            Arc::new(Cluster {
                name: name.to_owned(),
                ..Cluster::default()
            })
        };
        let mut asked = Candidates {
            clusters: vec![cluster("a"), cluster("b")],
            ..Candidates::default()
        };
        asked.binding.spec.clusters = vec![TargetCluster::new("b", 1)];
        rename(&mut asked, &[1, 0]);
        let names: Vec<_> = asked.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["cluster-00001", "cluster-00000"]);
        assert_eq!(asked.binding.spec.clusters[0].name, "cluster-00000");
    }
}
