//! Versions of the templates whose copies failed.
//!
//! The eviction of a failed application rests on reports about one version of its template, which say nothing about a
//! later one. The version is recorded with the creation time of the task, in an annotation of the binding, because
//! Karmada's API drops fields that it does not know. It is the `resourceVersion` in the reference of the binding, which
//! both detectors write with each change of a template other than its status.

use std::collections::BTreeMap;

use crate::decide::reasons::REASON_APPLICATION_FAILURE;
use crate::model::{Binding, GracefulEvictionTask};

/// Annotation of a binding: version of the template at the creation of each task of a failed application, as JSON, by
/// cluster.
pub const FAILED_TEMPLATES: &str = "failover.bulkhead.dev/failed-templates";

/// Version of the template by the cluster of the task.
pub type FailedTemplates = BTreeMap<String, String>;

/// Reads the versions of a binding. A malformed annotation counts as absent: tasks wait for their grace period.
pub fn read(binding: &Binding) -> FailedTemplates {
    let text = binding.annotations.get(FAILED_TEMPLATES);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Returns true if the template changed after the creation of a task.
pub(super) fn is_changed(binding: &Binding, task: &GracefulEvictionTask) -> bool {
    let failed = read(binding);
    let version = failed.get(&task.from_cluster);
    version.is_some_and(|version| *version != binding.spec.resource.resource_version)
}

/// Returns the versions of the tasks that remain, of which those that get their creation time now have the current
/// version; `None` if nothing changes.
pub(super) fn of_tasks(binding: &Binding, remaining: &[GracefulEvictionTask]) -> Option<FailedTemplates> {
    let (known, before) = (read(binding), &binding.spec.graceful_eviction_tasks);
    let version = |task: &GracefulEvictionTask| {
        let version = if before.contains(task) {
            known.get(&task.from_cluster)?
        } else {
            &binding.spec.resource.resource_version
        };
        (!version.is_empty()).then(|| (task.from_cluster.clone(), version.clone()))
    };
    let failed = remaining
        .iter()
        .filter(|task| task.reason == REASON_APPLICATION_FAILURE);
    let versions: FailedTemplates = failed.filter_map(version).collect();
    (versions != known).then_some(versions)
}
