//! Invariants that must hold at the end, after a long enough time without faults.

use std::collections::BTreeSet;
use std::sync::Arc;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::names::keys;
use bulkhead_core::time::Time;

use super::hub::work_name;
use super::objects::Observed;
use super::room;
use crate::simulation::federation::Federation;

/// Time that an eviction may take without faults, in milliseconds: a replica takes up to 100 s to get ready. Failback
/// starts evictions long after the last fault.
const EVICTION_MAX_MS: i64 = 150_000;

/// Returns true if an eviction of the binding is so young that its end cannot be expected.
fn moves(binding: &Binding, now: Time) -> bool {
    let begun = binding
        .spec
        .graceful_eviction_tasks
        .iter()
        .filter_map(|task| task.creation_timestamp);
    begun
        .max()
        .is_some_and(|begun| now.millis_since(begun) < EVICTION_MAX_MS)
}

impl Observed {
    /// Checks the final state.
    pub(in crate::simulation) fn end(&self, federation: &Federation, at: GoDuration) {
        let found = |invariant, seen| self.inspector.found(invariant, at, seen);
        for cluster in self.hub.clusters.values() {
            let condition = |key: &str| key == keys::NOT_READY_TAINT || key == keys::UNREACHABLE_TAINT;
            let owned =
                |taint: &&bulkhead_core::model::Taint| cluster.taint_owner(taint).is_some() || condition(&taint.key);
            let remaining: Vec<_> = cluster
                .spec
                .taints
                .iter()
                .filter(owned)
                .map(ToString::to_string)
                .collect();
            if !cluster.is_ready() || !remaining.is_empty() {
                let ready = cluster.is_ready();
                found(
                    "L2",
                    format!(
                        "{} is back and cannot be used: ready {ready}, {}",
                        cluster.name,
                        remaining.join(", ")
                    ),
                );
            }
        }
        let now = federation.now();
        let settled = |binding: &&Arc<Binding>| binding.deletion_timestamp.is_none() && !moves(binding, now);
        for binding in self.hub.bindings.values().filter(settled) {
            self.tasks(binding, federation, at);
            self.copies(binding, federation, at);
        }
    }

    fn tasks(&self, binding: &Binding, federation: &Federation, at: GoDuration) {
        // A workload that fits nowhere, because of a person's taint, keeps its copy.
        if binding.spec.clusters.is_empty() && !self.hub.has_place(binding) {
            return;
        }
        // A replacement in a full member never gets ready, so the old copy stays for its grace period, or longer by flag.
        let (spec, now) = (&binding.spec, federation.now());
        let is_full = spec
            .clusters
            .iter()
            .any(|one| federation.unschedulable_pods(&one.name, &spec.resource) > 0);
        let is_in_grace = |task: &GracefulEvictionTask| {
            let left_ms = self.deadlines.grace_left_ms(task, now);
            left_ms.is_some_and(|left_ms| left_ms > 0) || self.deadlines.keeps_unreplaced(task)
        };
        let waits = |task: &GracefulEvictionTask| is_full && is_in_grace(task);
        let ends = |task: &&GracefulEvictionTask| task.suppress_deletion != Some(true) && !waits(task);
        for task in binding.spec.graceful_eviction_tasks.iter().filter(ends) {
            let seen = format!(
                "the eviction of {} from {} never ends",
                binding.key(),
                task.from_cluster
            );
            self.inspector.found("L1", at, seen);
        }
    }

    /// Checks that every copy is complete and on its target, and that there are no others.
    fn copies(&self, binding: &Binding, federation: &Federation, at: GoDuration) {
        let key = binding.key();
        let found = |seen| self.inspector.found("L3", at, seen);
        let spec = &binding.spec;
        if spec.placement.is_some() && spec.clusters.is_empty() && spec.replicas > 0 && self.hub.has_place(binding) {
            found(format!("{key} is placed nowhere"));
        }
        let targets: BTreeSet<_> = spec.clusters.iter().map(|target| target.name.as_str()).collect();
        let works = self.hub.works.get(&work_name(binding)).into_iter().flatten();
        let (live, going): (Vec<_>, Vec<_>) = works.partition(|(_, going)| !**going);
        let live: BTreeSet<_> = live.into_iter().map(|(cluster, _)| cluster.as_str()).collect();
        if !targets.is_subset(&live) {
            found(format!(
                "{key} is not dispatched to every target: {targets:?}, Works in {live:?}"
            ));
        }
        if !going.is_empty() {
            let going: Vec<_> = going.into_iter().map(|(cluster, _)| cluster.as_str()).collect();
            found(format!("old copies of {key} are never removed: {}", going.join(", ")));
        }
        let resource = &spec.resource;
        if spec.replicas == 0 || !matches!(resource.kind.as_str(), "Deployment" | "StatefulSet") {
            return;
        }
        let ready = federation.ready_replicas(&resource.kind, &resource.namespace, &resource.name, false);
        for target in &spec.clusters {
            let existing = ready.get(&target.name).copied().unwrap_or(0);
            let wanted = i64::from(target.replicas);
            // A member may be full: some placements ignore capacity, and workloads can be placed in the same moment.
            let unschedulable = federation.unschedulable_pods(&target.name, resource);
            if self.protects_room
                && unschedulable > 0
                && let Some(other) = room::elsewhere(&self.hub, federation, binding, &target.name, unschedulable)
            {
                let name = &target.name;
                found(format!(
                    "{unschedulable} pods of {key} wait for room on {name}, and {other} has it"
                ));
            }
            if existing > wanted || existing + unschedulable < wanted {
                found(format!(
                    "{existing} of {} replicas of {key} are ready on {}",
                    target.replicas, target.name
                ));
            }
        }
    }
}
