//! L1 for changes of templates: the new images of a workload reach a member cluster within a bound, also while evictions
//! are in progress. An application that failed with the template itself and has no other place waits for its grace
//! period. Override policies may change images, so nothing is checked while there is one.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::decide::reasons::REASON_APPLICATION_FAILURE;
use bulkhead_core::model::{Binding, GracefulEvictionTask, PurgeMode};

use super::hub::Hub;
use crate::simulation::federation::Federation;

/// Maximum time until one member cluster has the images of the template.
const DELAY_MAX: Duration = Duration::from_mins(1);

/// Progress of the templates of workloads to the member clusters.
#[derive(Default)]
pub(super) struct TemplateDelays {
    /// Generation of the template whose images reached a member cluster, by binding.
    reached: BTreeMap<String, i64>,
    /// Time since which a member cluster could have the images, by binding.
    waiting: BTreeMap<String, GoDuration>,
    /// Version of the template at the creation time of a task, by binding and cluster.
    failed: BTreeMap<(String, String), String>,
}

impl TemplateDelays {
    /// Restarts the time of all workloads.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
    }

    /// Records the changed tasks of a binding.
    pub(super) fn changed(&mut self, before: &Binding, after: &Binding) {
        let key = after.key();
        self.failed
            .retain(|(binding, cluster), _| *binding != key || after.spec.is_evicting(cluster));
        for task in &after.spec.graceful_eviction_tasks {
            let mut earlier = before.spec.graceful_eviction_tasks.iter();
            let earlier = earlier.find(|earlier| earlier.from_cluster == task.from_cluster);
            let is_made = task.creation_timestamp.is_some()
                && earlier.and_then(|earlier| earlier.creation_timestamp) != task.creation_timestamp;
            if is_made {
                let version = after.spec.resource.resource_version.clone();
                self.failed.insert((key.clone(), task.from_cluster.clone()), version);
            }
        }
    }

    /// Forgets all tasks, because changes were missed.
    pub(super) fn forget(&mut self) {
        self.failed.clear();
    }

    /// Returns the description of a template whose images are late.
    pub(super) fn look(&mut self, hub: &Hub, federation: &Federation, at: GoDuration) -> Option<String> {
        let mut late = None;
        if hub.has_overrides() {
            return late;
        }
        for binding in hub.bindings.values() {
            let key = binding.key();
            let Some((generation, wanted)) = hub
                .images(&binding.spec.resource)
                .filter(|_| is_placed_by_policy(binding))
            else {
                self.waiting.remove(&key);
                continue;
            };
            if self.reached.get(&key) == Some(&generation) {
                continue;
            }
            if has_images(federation, binding, &wanted) {
                self.waiting.remove(&key);
                self.reached.insert(key, generation);
            } else if can_reach(hub, federation, binding) && !self.failed_with_it(binding) {
                let since = *self.waiting.entry(key.clone()).or_insert(at);
                if at.0.saturating_sub(since.0) > DELAY_MAX {
                    let images = wanted.join(", ");
                    late = Some(format!(
                        "{key} has the images {images}, and no member has them after {DELAY_MAX:?}"
                    ));
                }
            } else {
                self.waiting.remove(&key);
            }
        }
        late
    }

    /// Returns true if the application of a binding without targets failed with the current version of its template, or
    /// if a person decides about its copy.
    fn failed_with_it(&self, binding: &Binding) -> bool {
        let current = &binding.spec.resource.resource_version;
        let failed = |task: &GracefulEvictionTask| {
            let version = self.failed.get(&(binding.key(), task.from_cluster.clone()));
            let is_current = version.is_none_or(|version| version == current);
            task.reason == REASON_APPLICATION_FAILURE && (is_current || task.suppress_deletion.is_some())
        };
        binding.spec.clusters.is_empty() && binding.spec.graceful_eviction_tasks.iter().any(failed)
    }
}

fn is_placed_by_policy(binding: &Binding) -> bool {
    binding.spec.placement.is_some() && binding.spec.replicas > 0 && binding.deletion_timestamp.is_none()
}

fn has_images(federation: &Federation, binding: &Binding, wanted: &[String]) -> bool {
    let resource = &binding.spec.resource;
    let images = federation.images(&resource.kind, &resource.namespace, &resource.name);
    images.values().any(|images| images == wanted)
}

/// Returns true if a target can be written to, or if a workload without targets could be placed. A replacement waits
/// for the purge of a copy that goes first, which a lost cluster delays for the grace period.
fn can_reach(hub: &Hub, federation: &Federation, binding: &Binding) -> bool {
    let is_usable = |name: &str| {
        let is_ready = hub.clusters.get(name).is_some_and(|cluster| cluster.is_ready());
        is_ready && federation.is_well(name) && !binding.spec.dispatching_suspended(name)
    };
    let waits_for_purge =
        |task: &GracefulEvictionTask| task.purge_mode == Some(PurgeMode::Directly) && !is_usable(&task.from_cluster);
    if binding.spec.graceful_eviction_tasks.iter().any(waits_for_purge) {
        return false;
    }
    let targets = &binding.spec.clusters;
    if targets.is_empty() {
        !binding.spec.scheduling_suspended() && hub.has_place(binding)
    } else {
        targets.iter().any(|target| is_usable(&target.name))
    }
}
