//! Row of a record.

use std::sync::Arc;

use bulkhead_core::call::Reason;
use bulkhead_core::journal::{Decision, DecisionId, Outcome, Subject};
use bulkhead_core::policy::PolicyId;
use bulkhead_core::time::Time;
use bulkhead_journal::{DecisionOutline, Stored};
use bulkhead_simulator::recorded::waiting::Event;

use crate::source::Place;

/// Record without its inputs.
pub struct Row {
    /// Position in time, in milliseconds since the Unix epoch: the time of the record, or that of an earlier one of its
    /// process if the clock was set back.
    pub order_ms: i64,
    /// Time of the record.
    pub at: Time,
    /// Id of the decision.
    pub id: DecisionId,
    /// Location of the record, if it is on a disk.
    pub place: Option<Place>,
    /// Kind of the decision.
    pub decision: Decision,
    /// Outcome of the decision.
    pub outcome: Outcome,
    /// Object of the decision.
    pub subject: Arc<Subject>,
    /// Member cluster of the decision.
    pub cluster: Option<String>,
    /// Policy that gave the reason.
    pub policy: Option<PolicyId>,
    /// Reason.
    pub reason: Reason,
    /// Effect, as a text.
    pub effect: String,
    /// Event of a wait, if the decision begins or ends one.
    pub event: Option<Box<Event>>,
}

impl Row {
    /// Returns the row of a record.
    pub fn new(order_ms: i64, place: Option<Place>, subject: Arc<Subject>, stored: &Stored<DecisionOutline>) -> Self {
        let (record, entry) = (&stored.record, &stored.record.entry);
        let again_after_ms = stored.decision.as_ref().and_then(|decision| decision.again_after_ms);
        Self {
            order_ms,
            at: entry.at,
            id: record.decision_id(),
            place,
            decision: entry.decision,
            outcome: record.outcome,
            subject,
            cluster: entry.cluster.clone(),
            policy: entry.attribution.policy.clone(),
            reason: entry.attribution.reason.clone(),
            effect: entry.effect.clone(),
            event: Event::of(record, again_after_ms).map(Box::new),
        }
    }

    /// Marks the decision as one without an effect.
    pub fn abandon(&mut self) {
        self.outcome = Outcome::Abandoned;
        self.event = None;
    }

    /// Returns true if the decision had its effect, as far as known.
    pub fn is_taken(&self) -> bool {
        self.outcome == Outcome::Taken
    }

    /// Returns true if the row concerns a member cluster.
    pub fn concerns_cluster(&self, name: &str) -> bool {
        self.cluster.as_deref() == Some(name) || (self.subject.kind == "Cluster" && self.subject.name == name)
    }

    /// Returns true if a text of the row contains the words, which are in lower case.
    pub fn has_words(&self, words: &str) -> bool {
        let (key, reason) = (self.subject.key(), &self.reason);
        let texts = [&key, &self.effect, &reason.code, &reason.message];
        texts.iter().any(|text| text.to_lowercase().contains(words))
    }
}
