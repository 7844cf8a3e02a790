//! Laws about two questions that differ in what must not matter.

use std::sync::Arc;

use bulkhead_core::call::{Interpretation, Reply};
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster};
use serde_json::{Value, json};

use super::{Examination, each};
use crate::answer::Answer;
use crate::inputs::Seeded;
use crate::question::{Candidates, Eviction, Request};
use crate::report::Outcome;

/// A field that no API has.
const UNKNOWN: &str = "conformanceUnknownField";
/// Orders that are tried beside the reverse one.
const SHUFFLES: u64 = 3;

/// APIs gain fields, and a plugin has to live with those it does not know.
pub(super) fn unknown_fields(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.plain.iter(), |sample| {
        let mut more = sample.clone();
        add_unknown(&mut more.question.request);
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
            let Eviction { binding, task: _, observed } = &mut **asked;
            add_to_binding(binding);
            add_to_reports(observed);
        }
    }
}

/// At the top and in each of the parts that every object has.
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
    reports.iter_mut().filter_map(|report| report.status.as_mut()).for_each(add_to);
}

/// The answer without the unknown field, wherever it is: an interpreter that returns an object keeps what it does not
/// know, and one that collects a whole status collects it too.
fn without_unknown(mut answer: Answer) -> Answer {
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

/// The contract hands clusters over in order of name. A verdict that leans on that would change when a cluster joins.
pub(super) fn order(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.plain.iter(), |sample| {
        let count = sample.question.clusters()?.len();
        let usual = examined.ask(sample);
        orders(count).into_iter().find_map(|order| {
            let mut shuffled = sample.clone();
            let (Request::Filter(asked) | Request::Score(asked)) = &mut shuffled.question.request else { return None };
            asked.clusters = picked(&asked.clusters, &order);
            let answer = put_back(examined.ask(&shuffled), &order);
            (!usual.same(&answer)).then(|| format!("in another order: {}", usual.difference(&answer)))
        })
    })
}

/// Other orders of that many clusters: each names, by place, the cluster that goes there. One cluster has no other order.
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

fn picked<T: Clone>(list: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|index| list.get(*index).cloned()).collect()
}

/// The answer to a shuffled question as if it had been asked in the usual order. A list of the wrong length stays as it
/// is, since nobody can tell which verdict is whose.
fn put_back(mut answer: Answer, order: &[usize]) -> Answer {
    let mut places: Vec<_> = (0..order.len()).collect();
    places.sort_by_key(|place| order.get(*place).copied());
    match &mut answer.reply {
        Ok(Reply::Filter(verdicts)) if verdicts.len() == order.len() => *verdicts = picked(verdicts, &places),
        Ok(Reply::Score(scores)) if scores.len() == order.len() => *scores = picked(scores, &places),
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shuffled_can_be_put_back() {
        let list: Vec<i64> = (0..24).collect();
        for order in orders(list.len()) {
            assert_ne!(picked(&list, &order), list);
            let answer = Answer { reply: Ok(Reply::Score(picked(&list, &order))), steps: 0 };
            assert_eq!(put_back(answer, &order).reply, Ok(Reply::Score(list.clone())));
        }
    }

    #[test]
    fn an_unknown_field_is_taken_out_wherever_it_is() {
        let plain =
            json!({"kind": "Game", "metadata": {}, "spec": {"rooms": [{"size": 1}]}, "status": {"phase": "Up"}});
        let mut object = Arc::new(plain.clone());
        add_to_object(&mut object);
        assert_eq!(object.to_string().matches(UNKNOWN).count(), 4);
        let mut object = Arc::unwrap_or_clone(object);
        remove_unknown(&mut object);
        assert_eq!(object, plain);
    }
}
