//! Kubernetes events about the eviction queue.
//!
//! Their number does not grow with the length of the queue: an eviction that waits only for its slot has no event of
//! its own. A Cluster has events when its queue fills, is empty or is dropped, and when the brake slows, stops or
//! resumes its evictions. A template has one for each reason that holds its eviction, and one when a held eviction is
//! not needed any more. Returns to a home cluster have none.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use bulkhead_core::decide::eviction::BrakeState;
use bulkhead_runtime::events::{EventType, Events};
use bulkhead_runtime::key::Key;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{Cause, Eviction, NAME, TaintManager};
use crate::binding_kind::Binding;
use crate::decision_log::RecordedDecision;
use crate::subjects::{about, subjects_of_step};

impl TaintManager {
    /// Emits an event about a Cluster if its queue filled, or became empty, since the previous call. `dropped` are the
    /// evictions that are no longer needed, because the cluster has no taint that evicts.
    pub(super) fn announce_queue(&self, name: &str, dropped: &[Eviction]) {
        let is_eviction = |eviction: &Eviction| eviction.cause == Cause::Taint;
        let queued = {
            let queue = self.queue();
            let items = queue
                .items()
                .filter(|(eviction, from)| *from == name && is_eviction(eviction));
            items.count()
        };
        let dropped = dropped.iter().filter(|eviction| is_eviction(eviction)).count();
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let (reason, message) = match (queued, filled.contains(name)) {
            (1.., false) => (
                "EvictionsQueued",
                format!("{} queued for eviction from the cluster.", workloads(queued)),
            ),
            (0, true) if dropped > 0 => (
                "EvictionsDropped",
                format!(
                    "The cluster has no taint that evicts any more: {} removed from the eviction queue.",
                    workloads(dropped)
                ),
            ),
            (0, true) => (
                "EvictionsCompleted",
                "No workload is queued for eviction from the cluster.".to_owned(),
            ),
            _ => return,
        };
        if queued > 0 {
            filled.insert(name.to_owned());
        } else {
            filled.remove(name);
        }
        drop(filled);
        self.emit_about_cluster(&self.deps.log.events, name, EventType::Normal, reason, message);
    }

    /// Emits an event about a Cluster whose evictions the brake slows, stops or resumes.
    pub(super) fn announce_brake(&self, name: &str, state: BrakeState, message: String, record: &RecordedDecision) {
        let (type_, reason) = match state {
            BrakeState::Open => (EventType::Normal, "EvictionsResumed"),
            BrakeState::Slowed => (EventType::Warning, "EvictionsSlowed"),
            BrakeState::Stopped | BrakeState::Held => (EventType::Warning, "EvictionsStopped"),
        };
        let events = self.deps.log.events_of(std::slice::from_ref(record));
        self.emit_about_cluster(&events, name, type_, reason, message);
    }

    /// Emits an event that an eviction is held.
    pub(super) fn announce_held(&self, eviction: &Eviction, message: &str, record: &RecordedDecision) {
        if eviction.cause != Cause::Taint {
            return;
        }
        let events = self.deps.log.events_of(std::slice::from_ref(record));
        let message = format!("Eviction from cluster {} is held: {message}", eviction.cluster);
        for about in self.subjects(eviction) {
            events.emit(NAME, about, EventType::Warning, "EvictionHeld", message.clone());
        }
    }

    /// Forgets the reason that holds an eviction, and emits events that the eviction is not needed any more.
    pub(super) fn announce_unneeded<'a>(&self, evictions: impl IntoIterator<Item = &'a Eviction>) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let held: BTreeSet<_> = evictions
            .into_iter()
            .filter(|eviction| waits.remove(eviction).is_some() && eviction.cause == Cause::Taint)
            .collect();
        drop(waits);
        for eviction in held {
            let message = format!("Eviction from cluster {} is not needed any more.", eviction.cluster);
            for about in self.subjects(eviction) {
                let events = &self.deps.log.events;
                events.emit(NAME, about, EventType::Normal, "EvictionUnneeded", message.clone());
            }
        }
    }

    fn emit_about_cluster(&self, events: &Events, name: &str, type_: EventType, reason: &'static str, message: String) {
        if let Some(cluster) = self.deps.stores.clusters.get(&Key::new("", name)) {
            events.emit(NAME, about(&*cluster), type_, reason, message);
        }
    }

    /// Returns the subjects of events about a step of an eviction; nothing if the binding is gone.
    fn subjects(&self, eviction: &Eviction) -> Vec<ObjectReference> {
        if eviction.binding.namespace.is_empty() {
            self.subjects_of::<bulkhead_api::ClusterResourceBinding>(eviction)
        } else {
            self.subjects_of::<bulkhead_api::ResourceBinding>(eviction)
        }
    }

    fn subjects_of<B: Binding>(&self, eviction: &Eviction) -> Vec<ObjectReference> {
        let binding = B::store(&self.deps.stores).get(&eviction.binding);
        binding.map_or_else(Vec::new, |binding| subjects_of_step(&*binding, &self.deps.flags))
    }
}

fn workloads(number: usize) -> String {
    match number {
        1 => "1 workload is".to_owned(),
        _ => format!("{number} workloads are"),
    }
}
