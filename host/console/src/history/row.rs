//! Row of a record.

use std::sync::Arc;

use bulkhead_core::call::Reason;
use bulkhead_core::journal::{Decision, DecisionId, Outcome, Subject};
use bulkhead_core::policy::PolicyId;
use bulkhead_core::time::Time;
use bulkhead_journal::{DecisionOutline, Stored};
use bulkhead_simulator::recorded::waiting::{Event, concerns};

use super::pool::Pool;
use crate::source::Place;

/// Record without its inputs. Most of its values are shared with other rows.
pub struct Row {
    /// Position in time, in milliseconds since the Unix epoch: the time of the record, or that of an earlier one of its
    /// process if the clock was set back.
    pub order_ms: i64,
    /// Time of the record.
    pub at: Time,
    /// Uid of the process that decided; empty for simulations and for records of older versions.
    pub process: Arc<str>,
    /// Number of the decision in its process.
    pub number: u64,
    /// Location of the record, if it is on a disk.
    pub place: Option<Place>,
    /// Kind of the decision.
    pub decision: Decision,
    /// Outcome of the decision.
    pub outcome: Outcome,
    /// Object of the decision.
    pub subject: Arc<Subject>,
    /// Member cluster of the decision.
    pub cluster: Option<Arc<str>>,
    /// Policy that gave the reason.
    pub policy: Option<Arc<PolicyId>>,
    /// Reason code.
    pub code: Arc<str>,
    /// Sentence of the reason; may be empty.
    pub message: Arc<str>,
    /// Effect, as a text.
    pub effect: Arc<str>,
    /// Time until the next check in milliseconds, if the plan of the decision has one.
    pub again_after_ms: Option<i64>,
}

/// Values that the rows share.
#[derive(Default)]
pub(super) struct Pools {
    texts: Pool<str>,
    subjects: Pool<Subject>,
    policies: Pool<PolicyId>,
}

impl Pools {
    /// Drops the values that no row has any more.
    pub(super) fn retain_used(&mut self) {
        let Self {
            texts,
            subjects,
            policies,
        } = self;
        texts.retain_used();
        subjects.retain_used();
        policies.retain_used();
    }
}

impl Row {
    /// Returns the row of a record.
    pub(super) fn new(
        order_ms: i64,
        place: Option<Place>,
        stored: &Stored<DecisionOutline>,
        pools: &mut Pools,
    ) -> Self {
        let (record, entry) = (&stored.record, &stored.record.entry);
        let reason = &entry.attribution.reason;
        let again_after_ms = stored.decision.as_ref().and_then(|decision| decision.again_after_ms);
        Self {
            order_ms,
            at: entry.at,
            process: pools.texts.share(record.process.as_str()),
            number: record.id,
            place,
            decision: entry.decision,
            outcome: record.outcome,
            subject: pools.subjects.share(&entry.subject),
            cluster: entry.cluster.as_deref().map(|name| pools.texts.share(name)),
            policy: entry
                .attribution
                .policy
                .as_ref()
                .map(|policy| pools.policies.share(policy)),
            code: pools.texts.share(reason.code.as_str()),
            message: pools.texts.share(reason.message.as_str()),
            effect: pools.texts.share(entry.effect.as_str()),
            again_after_ms,
        }
    }

    /// Returns the id of the decision.
    pub fn id(&self) -> DecisionId {
        DecisionId {
            process: self.process.as_ref().to_owned(),
            number: self.number,
        }
    }

    /// Returns true if the decision has this id.
    pub fn is(&self, id: &DecisionId) -> bool {
        self.number == id.number && *self.process == *id.process
    }

    /// Returns the reason.
    pub fn reason(&self) -> Reason {
        Reason::new(self.code.as_ref(), self.message.as_ref())
    }

    /// Returns the event of a wait, if the decision begins or ends one.
    pub fn event(&self) -> Option<Event<'_>> {
        (self.is_taken() && concerns(self.decision)).then(|| Event {
            process: &self.process,
            number: self.number,
            subject: &self.subject,
            cluster: self.cluster.as_deref(),
            decision: self.decision,
            gate: &self.code,
            message: &self.message,
            policy: self.policy.as_deref(),
            at: self.at,
            again_after_ms: self.again_after_ms,
        })
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
        let key = self.subject.key();
        let texts = [key.as_str(), &self.effect, &self.code, &self.message];
        texts.iter().any(|text| text.to_lowercase().contains(words))
    }
}
