//! StatefulSets: numbered pods that are created, deleted and replaced one at a time.
//!
//! Pods in groups have no numbers of their own. They count as the last ones.

use bulkhead_apiserver::json::text;
use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::controllers::Emulator;
use crate::controllers::group::Naming;
use crate::controllers::revisions::REVISION_LABEL;
use crate::controllers::workload::{PodView, count, min_ready, spec_number, template_hash};

impl Emulator {
    pub(super) fn sync_stateful_set(&mut self, key: &ObjectKey, object: &Object) {
        let value = object.content();
        let hash = template_hash(value);
        let update_revision = format!("{}-{hash}", object.name());
        let pods = self.pods_of(object, REVISION_LABEL);
        self.keep_revisions(object, &hash, &pods);
        if self.step_stateful_set(object, &pods, &update_revision) {
            return;
        }
        let now = self.clock.now();
        let min_ready = min_ready(value);
        if self.merge_groups(pods.iter().filter(|pod| pod.is_available(min_ready, now))) {
            return;
        }
        let desired = spec_number(value, "replicas", 1);
        let replicas = count(&pods, |_| true);
        let updated = count(&pods, |pod| pod.revision == update_revision);
        let ready = count(&pods, PodView::is_ready);
        let available = count(&pods, |pod| pod.is_available(min_ready, now));
        // The update revision becomes current when all pods have been replaced and are ready.
        let is_rolled_out = updated == desired && ready == desired && replicas == desired;
        let current_revision = match text(value, "/status/currentRevision") {
            known if !known.is_empty() && !is_rolled_out => known.to_owned(),
            _ => update_revision.clone(),
        };
        let current = count(&pods, |pod| pod.revision == current_revision);
        self.wake_for_availability(key, &pods, min_ready);
        let status = json!({
            "observedGeneration": value["metadata"]["generation"],
            "replicas": replicas,
            "readyReplicas": ready,
            "availableReplicas": available,
            "currentReplicas": current,
            "updatedReplicas": updated,
            "currentRevision": current_revision,
            "updateRevision": update_revision,
            "collisionCount": 0,
        });
        self.write_status(key, object, status);
    }

    /// Takes the next step towards the desired pods. Returns true if there was one.
    fn step_stateful_set(&self, object: &Object, pods: &[PodView], revision: &str) -> bool {
        if let Some(finished) = pods.iter().find(|pod| pod.is_finished() && !pod.is_terminating) {
            return self.delete(&finished.key);
        }
        let tail = pods.partition_point(|pod| !pod.is_group);
        let (singles, groups) = pods.split_at(tail);
        let desired = spec_number(object.content(), "replicas", 1);
        let set = Set {
            spec: &object.content()["spec"],
            revision,
            singles,
            groups,
            singles_desired: desired.min(self.pod_objects_max),
            desired,
        };
        let naming = Naming {
            prefix: object.name(),
            revision: (REVISION_LABEL, revision),
        };
        match set.missing() {
            Missing::Waits => return false,
            Missing::Pods(missing) if missing > 0 => {
                let created = self.add_pods(object, pods.iter(), missing, naming) > 0;
                if created || set.is_ordered() {
                    return created;
                }
            }
            Missing::Pods(_) => {}
        }
        if let Some((pod, excess)) = set.excess() {
            return !pod.is_terminating && self.remove(pod, excess);
        }
        // Outdated pods are replaced one at a time.
        set.outdated()
            .is_some_and(|pod| !pod.is_terminating && set.others_are_ready(pod) && self.remove(pod, 1))
    }
}

/// Pods that a StatefulSet has too few of.
enum Missing {
    /// Number of pods to create now.
    Pods(u64),
    /// A pod of the current revision has to be ready first.
    Waits,
}

/// StatefulSet and its pods. Pods in groups have the highest numbers, those of the current revision last.
struct Set<'a> {
    spec: &'a Value,
    revision: &'a str,
    /// Pods with an object each, by number.
    singles: &'a [PodView],
    groups: &'a [PodView],
    desired: u64,
    /// Number of the desired pods that have an object each.
    singles_desired: u64,
}

impl<'a> Set<'a> {
    fn is_ordered(&self) -> bool {
        self.spec["podManagementPolicy"] != "Parallel"
    }

    fn is_current(&self, pod: &PodView) -> bool {
        pod.revision == self.revision
    }

    fn missing(&self) -> Missing {
        let is_blocked = |pod: &PodView| self.is_ordered() && !pod.is_ready() && self.is_current(pod);
        let mut missing = 0;
        for ordinal in 0..self.singles_desired {
            match self.singles.binary_search_by_key(&ordinal, |pod| pod.ordinal) {
                Err(_) if self.is_ordered() => return Missing::Pods(1),
                Err(_) => missing += 1,
                Ok(index) if is_blocked(&self.singles[index]) => return Missing::Waits,
                Ok(_) => {}
            }
        }
        if self.groups.iter().any(is_blocked) {
            return Missing::Waits;
        }
        let in_groups = self.groups_desired().saturating_sub(count(self.groups, |_| true));
        if self.is_ordered() {
            Missing::Pods(in_groups.min(1))
        } else {
            Missing::Pods(missing + in_groups)
        }
    }

    fn groups_desired(&self) -> u64 {
        self.desired - self.singles_desired
    }

    /// Returns an object whose pods are too many, and their number.
    fn excess(&self) -> Option<(&'a PodView, u64)> {
        let excess = count(self.groups, |_| true).saturating_sub(self.groups_desired());
        if excess > 0 {
            let last = self
                .groups
                .iter()
                .max_by_key(|pod| (self.is_current(pod), pod.ordinal))?;
            return Some((last, last.count.min(excess)));
        }
        let last = self.singles.iter().rev().find(|pod| pod.ordinal >= self.desired)?;
        Some((last, 1))
    }

    /// Returns the object with the last outdated pod that may be replaced.
    fn outdated(&self) -> Option<&'a PodView> {
        if self.spec["updateStrategy"]["type"] == "OnDelete" {
            return None;
        }
        let partition = self.spec["updateStrategy"]["rollingUpdate"]["partition"]
            .as_u64()
            .unwrap_or_default();
        let updatable = self.desired.saturating_sub(partition.max(self.singles_desired));
        let may_update_groups = count(self.groups, |pod| self.is_current(pod)) < updatable;
        let in_groups = self.groups.iter().rev().filter(|_| may_update_groups);
        let single = self.singles.iter().rev().filter(|pod| pod.ordinal >= partition);
        in_groups.chain(single).find(|pod| !self.is_current(pod))
    }

    /// Returns true if all other pods of the current revision are ready. Outdated pods need not be.
    fn others_are_ready(&self, outdated: &PodView) -> bool {
        let mut pods = self.singles.iter().chain(self.groups);
        let is_settled = |pod: &PodView| pod.is_ready() || pod.key == outdated.key || !self.is_current(pod);
        pods.all(is_settled)
    }
}
