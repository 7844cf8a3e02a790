//! Functions common to all workload kinds: their pods, the pod template and its revision.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_apiserver::json::{array, text};
use bulkhead_apiserver::{Content, Object, ObjectKey, rfc3339, stable_hash};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::condition;
use crate::controllers::group_size::{group_size, set_group_size, without_group};
use crate::controllers::time::add;

/// State of a pod that its workload depends on.
pub(super) struct PodView {
    pub(super) key: ObjectKey,
    /// Number at the end of the pod's name.
    pub(super) ordinal: u64,
    /// Number of pods that the object stands for.
    pub(super) count: u64,
    /// True for a group of pods, also of one.
    pub(super) is_group: bool,
    /// Name of the pod's node; empty without one.
    pub(super) node: String,
    pub(super) revision: String,
    pub(super) phase: String,
    /// Time since when the pod has been ready; absent if it is not.
    pub(super) ready_since: Option<Timestamp>,
    pub(super) is_terminating: bool,
}

impl PodView {
    pub(super) fn is_ready(&self) -> bool {
        self.ready_since.is_some()
    }

    /// Returns true if the pod has been ready for at least `min_ready`.
    pub(super) fn is_available(&self, min_ready: Duration, now: Timestamp) -> bool {
        self.ready_since.is_some_and(|since| add(since, min_ready) <= now)
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

/// A pod to be created for a workload.
pub(super) struct NewPod<'a> {
    pub(super) ordinal: u64,
    /// Part of the name before the ordinal.
    pub(super) prefix: &'a str,
    /// Label and value that mark the revision of the template.
    pub(super) revision: (&'a str, &'a str),
    pub(super) node: Option<String>,
    /// Number of pods of a group; `None` for a single pod.
    pub(super) group: Option<u64>,
}

impl Emulator {
    /// Returns the pods of a workload by ordinal, groups last. `revision_label` is the label with the revision of their
    /// template.
    pub(super) fn pods_of(&self, object: &Object, revision_label: &str) -> Vec<PodView> {
        let mut pods: Vec<PodView> = self
            .store
            .dependents(object.uid(), self.kinds.pod)
            .iter()
            .map(|pod| {
                view(
                    pod,
                    ObjectKey::new(self.kinds.pod, pod.namespace(), pod.name()),
                    revision_label,
                )
            })
            .collect();
        pods.sort_by(|a, b| (a.is_group, a.ordinal, &a.key.name).cmp(&(b.is_group, b.ordinal, &b.key.name)));
        pods
    }

    /// Creates a pod from a workload's template. Returns true on success.
    pub(super) fn create_pod(&self, object: &Object, new: NewPod<'_>) -> bool {
        let owner = object.content();
        let mut pod = owner["spec"]["template"].clone();
        if !pod.is_object() || !pod["spec"].is_object() {
            return false;
        }
        if let Some(fields) = pod.as_object_mut() {
            fields.remove("status");
        }
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        let labels = pod["metadata"]["labels"].clone();
        let mut annotations = pod["metadata"]["annotations"].clone();
        without_group(&mut annotations);
        pod["metadata"] = json!({
            "name": format!("{}-{}", new.prefix, new.ordinal),
            "ownerReferences": [controller_reference(object)],
        });
        if labels.is_object() {
            pod["metadata"]["labels"] = labels;
        }
        if annotations.is_object() {
            pod["metadata"]["annotations"] = annotations;
        }
        let (label, revision) = new.revision;
        pod["metadata"]["labels"][label] = json!(revision);
        if let Some(node) = new.node {
            pod["spec"]["nodeName"] = json!(node);
        }
        if let Some(pods) = new.group {
            set_group_size(&mut pod, pods);
        }
        self.store.create(self.kinds.pod, object.namespace(), pod).is_ok()
    }

    /// Schedules a sync of a workload for the time at which the next of its ready pods becomes available.
    pub(super) fn wake_for_availability(&mut self, key: &ObjectKey, pods: &[PodView], min_ready: Duration) {
        let now = self.clock.now();
        let next = pods
            .iter()
            .filter_map(|pod| pod.ready_since)
            .map(|since| add(since, min_ready))
            .filter(|at| *at > now)
            .min();
        if let Some(at) = next {
            self.wake_at(at, key);
        }
    }
}

fn view(pod: &Arc<Object>, key: ObjectKey, revision_label: &str) -> PodView {
    let value = pod.content();
    let ready_since = condition::find(array(value, "/status/conditions"), "Ready")
        .filter(|ready| ready["status"] == "True")
        .and_then(|ready| ready["lastTransitionTime"].as_str())
        .and_then(|since| since.parse().ok());
    let group = group_size(value);
    PodView {
        count: group.unwrap_or(1),
        is_group: group.is_some(),
        node: text(value, "/spec/nodeName").to_owned(),
        ordinal: pod
            .name()
            .rsplit('-')
            .next()
            .and_then(|ordinal| ordinal.parse().ok())
            .unwrap_or(u64::MAX),
        revision: value["metadata"]["labels"][revision_label]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        phase: text(value, "/status/phase").to_owned(),
        ready_since,
        is_terminating: pod.is_terminating(),
        key,
    }
}

/// Returns the number of pods for which `holds` is true.
pub(super) fn count<'a>(pods: impl IntoIterator<Item = &'a PodView>, holds: impl Fn(&PodView) -> bool) -> u64 {
    let pods = pods.into_iter().filter(|pod| holds(pod));
    pods.fold(0, |sum, pod| sum.saturating_add(pod.count))
}

/// Returns the owner reference to a workload that controls an object.
pub(super) fn controller_reference(workload: &Object) -> Value {
    let value = workload.content();
    json!({
        "apiVersion": value["apiVersion"],
        "kind": value["kind"],
        "name": workload.name(),
        "uid": workload.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns a short hash of a workload's pod template.
pub(super) fn template_hash(object: &Content) -> String {
    // A value can always be serialized.
    let template = serde_json::to_string(&object["spec"]["template"]).unwrap_or_default();
    // Ten hexadecimal digits, as names and labels take them.
    format!("{:010x}", stable_hash(0, &[&template]) & 0xFF_FFFF_FFFF)
}

/// Returns a number in a workload's spec.
pub(super) fn spec_number(object: &Content, field: &str, default: u64) -> u64 {
    object["spec"][field].as_u64().unwrap_or(default)
}

pub(super) fn min_ready(object: &Content) -> Duration {
    Duration::from_secs(spec_number(object, "minReadySeconds", 0))
}

/// Drops counters that are zero, as Kubernetes omits them.
pub(super) fn without_zeros(mut status: Value, fields: &[&str]) -> Value {
    if let Some(status) = status.as_object_mut() {
        for field in fields {
            if status.get(*field).is_some_and(|count| *count == 0) {
                status.remove(*field);
            }
        }
    }
    status
}

/// Formats a timestamp for a status.
pub(super) fn stamp(now: Timestamp) -> Value {
    json!(rfc3339(now))
}
