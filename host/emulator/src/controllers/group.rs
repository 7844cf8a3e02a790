//! Groups of pods: one pod object that stands for many pods of a workload.
//!
//! The first pods of each revision of a workload have an object each, at most [`POD_OBJECTS_MAX`]. All further pods are
//! in groups, one for each node and one for those without a node, so that work and memory do not grow with the number
//! of replicas. The object of a group has the number of its pods in an annotation, and the requests of all pods but
//! one as its overhead: a sum over the objects of a cluster is the sum over its pods.
//!
//! All pods of a group change their stage together. They become ready at the time of the slowest one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_apiserver::{Object, ObjectKey};
use serde_json::json;

use crate::controllers::Emulator;
use crate::controllers::group_size::set_group_size;
use crate::controllers::workload::{NewPod, PodView, count};
use crate::nodes::{Amount, highest_level};

/// Maximum number of pods of one revision of a workload that have an object of their own, if
/// [`MemberOptions`](crate::MemberOptions) have no other.
pub const POD_OBJECTS_MAX: u64 = 100;

/// Part of the name of a group before its number. Groups are after the other pods in the order of names, so those get
/// a node first.
const GROUP: &str = "group";

/// Returns the sizes of groups after a removal, which takes from the largest ones first.
fn reduced(sizes: &[u64], excess: u64) -> Vec<u64> {
    let total = |level: u64| {
        sizes
            .iter()
            .fold(0_u64, |sum, size| sum.saturating_add(level.min(*size)))
    };
    let kept = total(u64::MAX).saturating_sub(excess);
    let end = sizes.iter().max().map_or(0, |most| most + 1);
    let level = highest_level(end, |level| total(level) <= kept);
    let mut rest = kept - total(level);
    let reduced = sizes.iter().map(|size| {
        let more = u64::from(*size > level && rest > 0);
        rest -= more;
        level.min(*size) + more
    });
    reduced.collect()
}

/// Names and labels of the pods of one revision of a workload.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    /// Part of the names before the number.
    pub(super) prefix: &'a str,
    /// Label and value that mark the revision of the template.
    pub(super) revision: (&'a str, &'a str),
}

impl Emulator {
    /// Adds pods to a workload: single ones with the lowest numbers that `pods` do not use, and a group of all that
    /// exceed the maximum number of objects. Returns the number of objects that were created or changed.
    pub(super) fn add_pods<'a>(
        &self,
        owner: &Object,
        pods: impl Iterator<Item = &'a PodView> + Clone,
        wanted: u64,
        naming: Naming<'_>,
    ) -> usize {
        let singles = pods.clone().filter(|pod| !pod.is_group);
        let used: BTreeSet<u64> = singles.map(|pod| pod.ordinal).collect();
        let free: Vec<u64> = (0..self.pod_objects_max)
            .filter(|ordinal| !used.contains(ordinal))
            .take(usize::try_from(wanted).unwrap_or(usize::MAX))
            .collect();
        let created = free.iter().filter(|&&ordinal| {
            let new = NewPod {
                ordinal,
                prefix: naming.prefix,
                revision: naming.revision,
                node: None,
                group: None,
            };
            self.create_pod(owner, new)
        });
        let created = created.count();
        let rest = wanted - free.len() as u64;
        created + usize::from(rest > 0 && self.add_to_group(owner, pods, rest, naming))
    }

    /// Adds pods to the group that has no node yet, or creates one.
    fn add_to_group<'a>(
        &self,
        owner: &Object,
        mut pods: impl Iterator<Item = &'a PodView>,
        wanted: u64,
        naming: Naming<'_>,
    ) -> bool {
        let (_, revision) = naming.revision;
        let is_waiting =
            |pod: &&PodView| pod.is_group && pod.node.is_empty() && !pod.is_terminating && pod.revision == revision;
        if let Some(waiting) = pods.find(is_waiting) {
            return self.resize(&waiting.key, waiting.count + wanted);
        }
        let prefix = format!("{}-{GROUP}", naming.prefix);
        let new = NewPod {
            ordinal: self.free_number(owner.namespace(), &prefix, 0),
            prefix: &prefix,
            revision: naming.revision,
            node: None,
            group: Some(wanted),
        };
        self.create_pod(owner, new)
    }

    /// Returns the lowest number from `first` on that no pod of that prefix has.
    fn free_number(&self, namespace: &str, prefix: &str, first: u64) -> u64 {
        let is_taken = |number: u64| {
            let key = ObjectKey::new(self.kinds.pod, namespace, &format!("{prefix}-{number}"));
            self.store.get(&key).is_some()
        };
        let mut number = first;
        while is_taken(number) {
            number += 1;
        }
        number
    }

    /// Removes pods in the given order, until there are `excess` fewer. Groups that follow each other lose pods evenly,
    /// as they are on different nodes. Returns the number of objects that were deleted or changed.
    pub(super) fn remove_pods(&self, pods: &[&PodView], mut excess: u64) -> usize {
        let are_like = |a: &&PodView, b: &&PodView| a.is_group && b.is_group && a.is_ready() == b.is_ready();
        let mut changed = 0;
        for run in pods.chunk_by(are_like) {
            let sizes: Vec<u64> = run.iter().map(|pod| pod.count).collect();
            for (pod, kept) in run.iter().zip(reduced(&sizes, excess)) {
                excess -= pod.count - kept;
                changed += usize::from(self.remove(pod, pod.count - kept));
            }
        }
        changed
    }

    /// Removes some of the pods that an object stands for. Returns true if anything changed.
    pub(super) fn remove(&self, pod: &PodView, removed: u64) -> bool {
        if removed == 0 {
            false
        } else if removed >= pod.count {
            self.delete(&pod.key)
        } else {
            self.resize(&pod.key, pod.count - removed)
        }
    }

    fn resize(&self, key: &ObjectKey, pods: u64) -> bool {
        let Some(group) = self.store.get(key) else {
            return false;
        };
        let mut value = group.content().to_value();
        set_group_size(&mut value, pods);
        self.store.update(key, value).is_ok()
    }

    /// Merges groups whose pods have become alike: those of one revision and node that run, or that ended alike.
    /// Returns true if there were any.
    pub(super) fn merge_groups<'a>(&mut self, pods: impl Iterator<Item = &'a PodView>) -> bool {
        let mut alike: BTreeMap<(&str, &str, &str), Vec<&PodView>> = BTreeMap::new();
        for pod in pods.filter(|pod| pod.is_group && !pod.is_terminating) {
            // The times of a failure differ between groups.
            if pod.is_finished() {
                alike.entry((&pod.revision, &pod.phase, "")).or_default().push(pod);
            } else if !self.is_failing(&pod.key) {
                alike
                    .entry((&pod.revision, &pod.phase, &pod.node))
                    .or_default()
                    .push(pod);
            }
        }
        let mut has_merged = false;
        for groups in alike.into_values().filter(|groups| groups.len() > 1) {
            let (kept, others) = (groups[0], &groups[1..]);
            if !self.resize(&kept.key, count(groups.iter().copied(), |_| true)) {
                continue;
            }
            has_merged = true;
            for other in others {
                self.nodes.transfer(&other.key, &kept.key);
                self.delete(&other.key);
            }
        }
        has_merged
    }

    /// Assigns the pods of a group to nodes, which divides the group. Returns the object if all its pods have a node.
    pub(super) fn bind_group(&mut self, key: &ObjectKey, group: &Object, pods: u64) -> Option<Arc<Object>> {
        let one = Amount::of_pod(group.content());
        let mut shares = self.nodes.spread(one, pods);
        if shares.is_empty() {
            self.leave_pending(key, group);
            return None;
        }
        let rest = pods - shares.iter().map(|(_, share)| share).sum::<u64>();
        let own = (rest == 0).then(|| shares.remove(0));
        let mut value = group.content().to_value();
        set_group_size(&mut value, own.map_or(rest, |(_, share)| share));
        if let Some((index, _)) = own {
            value["spec"]["nodeName"] = json!(self.nodes.name(index));
        }
        // The pod was deleted, or admission rejected the update: no node is used.
        let kept = self.store.update(key, value).ok()?;
        self.split(&kept, one, &shares);
        if let Some((index, share)) = own {
            self.nodes.occupy(key, index, one.times(share));
            Some(kept)
        } else {
            self.leave_pending(key, &kept);
            None
        }
    }

    /// Creates a group on each of these nodes like another group.
    fn split(&mut self, group: &Object, one: Amount, shares: &[(usize, u64)]) {
        let (prefix, number) = group.name().rsplit_once('-').unwrap_or((group.name(), ""));
        let mut number = number.parse().unwrap_or(0);
        for (index, share) in shares {
            number = self.free_number(group.namespace(), prefix, number);
            let key = ObjectKey::new(self.kinds.pod, group.namespace(), &format!("{prefix}-{number}"));
            let value = group.content();
            let metadata = &value["metadata"];
            let mut pod = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": key.name,
                    "labels": metadata["labels"],
                    "annotations": metadata["annotations"],
                    "ownerReferences": metadata["ownerReferences"],
                },
                "spec": value["spec"],
            });
            set_group_size(&mut pod, *share);
            pod["spec"]["nodeName"] = json!(self.nodes.name(*index));
            if self.store.create(self.kinds.pod, group.namespace(), pod).is_ok() {
                self.nodes.occupy(&key, *index, one.times(*share));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_lose_pods_down_to_one_level() {
        let check = |sizes: &[u64], excess: u64, expected: &[u64]| {
            assert_eq!(reduced(sizes, excess), expected, "{sizes:?} less {excess}");
        };
        check(&[5, 5, 5], 0, &[5, 5, 5]);
        check(&[5, 5, 5], 7, &[3, 3, 2]);
        check(&[9, 2, 5], 5, &[5, 2, 4]);
        check(&[9, 2, 5], 15, &[1, 0, 0]);
        check(&[9, 2, 5], 16, &[0, 0, 0]);
        check(&[4], 9, &[0]);
        check(&[], 3, &[]);
    }
}
