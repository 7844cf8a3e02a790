//! Inputs of the maximum size and depth that a host accepts.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster};
use serde_json::{Map, Value, json};

use super::{Sample, federation, objects, operation};
use crate::owned_call::{Candidates, Eviction, Request};

/// Size of a huge object, in bytes of JSON. etcd stores at most 1.5 MiB per request.
const HUGE_BYTES: usize = 1 << 20;
/// Size of a huge object for operations that return it, in bytes. A reply is limited to 1 MiB, and the plugin may add
/// to the object.
const HUGE_BYTES_RETURNED: usize = 1 << 18;
/// Number of clusters in a huge federation.
pub(crate) const HUGE_CLUSTERS: usize = 2_000;
/// Nesting levels of a deep input. The API's JSON reader rejects 128 levels, and a script's reply is limited to 100.
pub(super) const DEPTH: usize = 80;

/// Returns alternately nested lists and maps.
fn nested() -> Value {
    (0..DEPTH).fold(json!("bottom"), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({"next": inner})
        }
    })
}

/// Returns about `bytes` bytes of JSON: half of them one text, the rest a list and a map with many members.
fn bulk(bytes: usize) -> Map<String, Value> {
    let entry = json!({"type": "Progressing", "status": "True", "message": "a line among many"});
    let list = vec![entry.clone(); bytes / 4 / entry.to_string().len()];
    let map: Map<_, _> = (0..bytes / 4 / 16)
        .map(|index| (format!("key{index:06}"), json!(index % 10)))
        .collect();
    let bulk = [
        ("text", json!("x".repeat(bytes / 2))),
        ("list", json!(list)),
        ("map", Value::Object(map)),
    ];
    bulk.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(super) fn deep_object(plain: &Value) -> Value {
    let mut deep = plain.clone();
    for part in ["spec", "status"] {
        deep[part]["deep"] = nested();
    }
    deep
}

fn huge_object(plain: &Value, bytes: usize) -> Value {
    let mut huge = plain.clone();
    let bulk = bulk(bytes);
    if let Some(text) = bulk.get("text") {
        huge["metadata"]["annotations"]["example.io/text"] = text.clone();
    }
    if let (Some(list), Some(map)) = (bulk.get("list"), bulk.get("map")) {
        huge["status"]["conditions"] = list.clone();
        huge["spec"]["entries"] = map.clone();
    }
    huge
}

pub(super) fn deep_cluster() -> Cluster {
    let mut cluster = federation::cluster(0);
    cluster.spec.rest.insert("deep".to_owned(), nested());
    cluster.status.rest.insert("deep".to_owned(), nested());
    cluster
}

fn huge_cluster() -> Cluster {
    let mut cluster = federation::cluster(0);
    cluster.status.rest.extend(bulk(HUGE_BYTES));
    cluster
}

pub(super) fn deep_binding() -> Binding {
    let mut binding = federation::binding(3);
    binding.spec.rest.insert("deep".to_owned(), nested());
    binding
}

fn huge_binding() -> Binding {
    let mut binding = federation::binding(3);
    binding.spec.rest.extend(bulk(HUGE_BYTES));
    binding
}

pub(super) fn deep_reports() -> Vec<AggregatedStatusItem> {
    let mut reports = federation::reports(3);
    for report in &mut reports {
        report.status = Some(json!({"deep": nested(), "availableReplicas": nested()}));
    }
    reports
}

/// Returns calls about a huge object, and about an object with reports of many clusters.
pub(super) fn huge_objects(kind: CallKind, of: (&str, &str)) -> Vec<Sample> {
    let huge = |bytes| Arc::new(huge_object(&objects::settled(of), bytes));
    let sample =
        |(size, request): (String, Request)| Sample::new(format!("{} {size}{}", of.1, operation(&request)), request);
    let (whole, returned) = (huge(HUGE_BYTES), huge(HUGE_BYTES_RETURNED));
    let [of_whole, of_returned] = [HUGE_BYTES, HUGE_BYTES_RETURNED].map(|bytes| format!("of {bytes} bytes"));
    if kind == CallKind::Health {
        return vec![sample((of_whole, Request::Health(whole)))];
    }
    let reports = Request::AggregateStatus(Arc::new(objects::settled(of)), federation::reports(HUGE_CLUSTERS));
    let requests = [
        (of_whole.clone(), Request::Replicas(Arc::clone(&whole))),
        (of_whole.clone(), Request::Components(Arc::clone(&whole))),
        (of_whole, Request::Dependencies(whole)),
        (of_returned.clone(), Request::ReflectStatus(Arc::clone(&returned))),
        (of_returned.clone(), Request::Revise(Arc::clone(&returned), 5)),
        (of_returned, Request::Retain(Arc::clone(&returned), returned)),
        (format!("with {HUGE_CLUSTERS} reports"), reports),
    ];
    requests.map(sample).to_vec()
}

/// Returns calls about many clusters, and about a huge cluster or binding.
pub(super) fn huge_federations(kind: CallKind) -> Vec<Sample> {
    let candidates = || {
        let binding = federation::binding(HUGE_CLUSTERS / 2);
        let many = Candidates {
            binding,
            clusters: federation::clusters(HUGE_CLUSTERS),
        };
        let large = Candidates {
            binding: huge_binding(),
            clusters: federation::clusters(4),
        };
        [
            (format!("{HUGE_CLUSTERS} clusters"), many),
            (format!("a binding of {HUGE_BYTES} bytes"), large),
        ]
    };
    let samples = match kind {
        CallKind::Health | CallKind::Interpret => Vec::new(),
        CallKind::ClusterTaint => {
            let cluster = Request::ClusterTaint(Box::new(huge_cluster()));
            vec![(format!("a cluster of {HUGE_BYTES} bytes"), cluster)]
        }
        CallKind::Filter => candidates()
            .map(|(what, candidates)| (what, Request::Filter(Box::new(candidates))))
            .to_vec(),
        CallKind::Score => candidates()
            .map(|(what, candidates)| (what, Request::Score(Box::new(candidates))))
            .to_vec(),
        CallKind::EvictionCheck => {
            let (what, many) = federation::eviction(HUGE_CLUSTERS);
            let large = Eviction {
                binding: huge_binding(),
                ..federation::eviction(3).1
            };
            let samples = [
                (what, many),
                (format!("an eviction with a binding of {HUGE_BYTES} bytes"), large),
            ];
            samples
                .map(|(what, eviction)| (what, Request::EvictionCheck(Box::new(eviction))))
                .to_vec()
        }
    };
    samples
        .into_iter()
        .map(|(what, request)| Sample::new(what, request))
        .collect()
}

/// Returns the same call with `count` clusters; `None` if the call has no clusters.
pub(crate) fn with_clusters(sample: &Sample, count: usize) -> Option<Sample> {
    let among = |asked: &Candidates| {
        Box::new(Candidates {
            binding: asked.binding.clone(),
            clusters: federation::clusters(count),
        })
    };
    let request = match &sample.call.request {
        Request::Filter(asked) => Request::Filter(among(asked)),
        Request::Score(asked) => Request::Score(among(asked)),
        Request::EvictionCheck(_) => Request::EvictionCheck(Box::new(federation::eviction(count).1)),
        Request::AggregateStatus(object, _) => Request::AggregateStatus(Arc::clone(object), federation::reports(count)),
        _ => return None,
    };
    Some(Sample::new(format!("{count} clusters"), request))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn inputs_are_as_large_and_as_deep_as_they_say() {
        let plain = objects::settled(("apps/v1", "Deployment"));
        let size = huge_object(&plain, HUGE_BYTES).to_string().len();
        assert!((HUGE_BYTES * 9 / 10..HUGE_BYTES * 11 / 10).contains(&size), "{size}");
        let depth = depth(&deep_object(&plain));
        assert!((DEPTH..100).contains(&depth), "{depth}");
    }
}
