//! Size of a group of pods, which is in annotations and in the overhead of its object.

use std::collections::BTreeMap;

use bulkhead_apiserver::json::{HasFields, array};
use bulkhead_core::quantity::{Format, Quantity};
use serde_json::{Map, Value, json};

/// Annotation of a group: the number of its pods.
const PODS: &str = "simulation.bulkhead.dev/pods";
/// Annotation of a group: the overhead of one of its pods as JSON. Absent if the template has none.
const POD_OVERHEAD: &str = "simulation.bulkhead.dev/pod-overhead";
/// Returns the number of pods that a pod object of a member cluster stands for: the size of a group, or 1.
pub fn pods_in(pod: &impl HasFields) -> u64 {
    group_size(pod).unwrap_or(1)
}

/// Returns the number of pods of a group, and `None` for the object of a single pod.
pub(super) fn group_size(pod: &impl HasFields) -> Option<u64> {
    // Only workloads make groups. A user may copy the annotation to a pod.
    array(pod, "/metadata/ownerReferences").first()?;
    pod.field("metadata")?["annotations"][PODS]
        .as_str()?
        .parse()
        .ok()
        .filter(|pods| *pods > 0)
}

/// Removes the annotations of groups from those of a template.
pub(super) fn without_group(annotations: &mut Value) {
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(PODS);
        annotations.remove(POD_OVERHEAD);
    }
}

/// Makes a pod object a group of that many pods, or changes the size of the group.
pub(super) fn set_group_size(pod: &mut Value, pods: u64) {
    let overhead: Value = match group_size(pod) {
        Some(_) => {
            let kept = pod["metadata"]["annotations"][POD_OVERHEAD]
                .as_str()
                .unwrap_or_default();
            serde_json::from_str(kept).unwrap_or_default()
        }
        None => pod["spec"]["overhead"].clone(),
    };
    let annotations = &mut pod["metadata"]["annotations"];
    annotations[PODS] = json!(pods.to_string());
    if !overhead.is_null() {
        annotations[POD_OVERHEAD] = json!(overhead.to_string());
    }
    let of_one: BTreeMap<String, Quantity> = quantities(&overhead).into_iter().collect();
    let mut requested = of_one.clone();
    for container in array(pod, "/spec/containers") {
        let resources = &container["resources"];
        // A limit without a request is the request.
        let mut requests = quantities(&resources["limits"]);
        requests.extend(quantities(&resources["requests"]));
        let requests: BTreeMap<_, _> = requests.into_iter().collect();
        for (name, quantity) in requests {
            let sum = requested.entry(name).or_default();
            *sum = sum.plus(quantity);
        }
    }
    requested.insert("pods".to_owned(), Quantity::from_units(1, Format::Decimal));
    let others = i128::from(pods.saturating_sub(1));
    let total = requested.into_iter().map(|(name, quantity)| {
        let of_others = Quantity::from_millis(quantity.millis().saturating_mul(others), quantity.format());
        let own = of_one.get(&name).copied().unwrap_or_default();
        (name, json!(own.plus(of_others).to_string()))
    });
    let total: Map<String, Value> = total.collect();
    pod["spec"]["overhead"] = Value::Object(total);
}

/// Returns the quantities of a list of resources. Values that are none are left out.
fn quantities(resources: &Value) -> Vec<(String, Quantity)> {
    let resources = resources.as_object().into_iter().flatten();
    let parsed = resources.filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?)));
    parsed.collect()
}
