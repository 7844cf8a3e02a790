//! Journal records, and events, of evictions that wait, each reason once.

use std::sync::{Arc, PoisonError};

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::BrakeState;
use bulkhead_core::journal::{Decision, DecisionRecord, Subject};
use bulkhead_runtime::key::Key;

use super::{Eviction, NAME, TaintManager};
use crate::decision_log::{Record, RecordedDecision};

impl TaintManager {
    /// Records once that the brake slows or stops evictions from a cluster, and once that it no longer does.
    pub(super) fn note_brake(&self, name: &str) {
        let Some((state, message)) = self.clusters.brake(name) else {
            return;
        };
        self.deps.metrics.brake(name, state);
        let mut braked = self.braked.lock().unwrap_or_else(PoisonError::into_inner);
        if braked.get(name).copied().unwrap_or(BrakeState::Open) == state {
            return;
        }
        braked.insert(name.to_owned(), state);
        let waiting = self.queue().items().filter(|(_, from)| *from == name).count();
        let (decision, effect) = match state {
            BrakeState::Open => (Decision::EvictionsResumed, format!("{waiting} evictions go on")),
            BrakeState::Slowed => (
                Decision::EvictionsWait,
                format!("{waiting} evictions go on at the secondary rate"),
            ),
            BrakeState::Stopped | BrakeState::Held => (Decision::EvictionsWait, format!("{waiting} evictions wait")),
        };
        let announcement = format!("{message}: {effect}.");
        let record = self.deps.log.record(Record {
            controller: NAME,
            subject: Subject::new("Cluster", "", name),
            cluster: Some(name.to_owned()),
            decision,
            attribution: Attribution::rule(state.code(), message),
            effect,
            inputs: Vec::new(),
        });
        self.announce_brake(name, state, announcement, &record);
    }

    pub(super) fn note_wait(
        &self,
        eviction: &Eviction,
        attribution: Attribution,
        decision_record: Option<&Arc<DecisionRecord>>,
    ) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.insert(eviction.clone(), attribution.reason.code.clone()).as_ref() == Some(&attribution.reason.code) {
            return;
        }
        drop(waits);
        let message = attribution.reason.message.clone();
        let record = self.record_wait(eviction, attribution, decision_record);
        self.announce_held(eviction, &message, &record);
    }

    /// Records that a binding stays on a tainted cluster.
    pub(super) fn record_wait(
        &self,
        eviction: &Eviction,
        attribution: Attribution,
        decision_record: Option<&Arc<DecisionRecord>>,
    ) -> RecordedDecision {
        let Key { namespace, name } = &eviction.binding;
        let record = Record {
            controller: NAME,
            subject: Subject::new(eviction.binding_kind(), namespace, name),
            cluster: Some(eviction.cluster.clone()),
            decision: Decision::EvictionsWait,
            attribution,
            effect: "it stays where it is".to_owned(),
            inputs: Vec::new(),
        };
        self.deps.log.record_decided(record, decision_record, None)
    }
}
