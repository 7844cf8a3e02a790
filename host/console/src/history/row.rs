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

/// Record without its inputs. Values that rows have in common are shared, so that a row has less than 100 bytes.
pub struct Row {
    /// Position in time, in milliseconds since the Unix epoch: the time of the record, or that of an earlier one of its
    /// process if the clock was set back.
    pub order_ms: i64,
    /// Time of the record.
    pub at: Time,
    /// Process that decided, and location of the record.
    pub origin: Arc<Origin>,
    /// Number of the decision in its process.
    pub number: u64,
    /// Kind of the decision.
    pub decision: Decision,
    /// Outcome of the decision.
    pub outcome: Outcome,
    /// Object of the decision.
    pub subject: Arc<Subject>,
    /// Member cluster of the decision.
    pub cluster: Option<Arc<str>>,
    /// Reason of the decision.
    pub cause: Arc<Cause>,
    /// Effect, as a text.
    pub effect: Arc<str>,
}

/// Origin of records.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Uid of the process that decided; empty for simulations and for records of older versions.
    pub process: Arc<str>,
    /// Location of the record, if it is on a disk.
    pub place: Option<Place>,
}

/// Reason of a decision.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// Policy that gave the reason.
    pub policy: Option<Arc<PolicyId>>,
    /// Reason code.
    pub code: Arc<str>,
    /// Sentence of the reason; may be empty.
    pub message: Arc<str>,
    /// Time until the next check in milliseconds, if the plan of the decision has one.
    pub again_after_ms: Option<i64>,
}

/// Values that the rows share.
#[derive(Default)]
pub(super) struct Pools {
    texts: Pool<str>,
    subjects: Pool<Subject>,
    policies: Pool<PolicyId>,
    origins: Pool<Origin>,
    causes: Pool<Cause>,
}

impl Pools {
    /// Drops the values that no row has any more.
    pub(super) fn retain_used(&mut self) {
        let Self {
            texts,
            subjects,
            policies,
            origins,
            causes,
        } = self;
        // These two keep values of the others.
        origins.retain_used();
        causes.retain_used();
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
        let origin = Origin {
            process: pools.texts.share(record.process.as_str()),
            place,
        };
        let cause = Cause {
            policy: entry
                .attribution
                .policy
                .as_ref()
                .map(|policy| pools.policies.share(policy)),
            code: pools.texts.share(reason.code.as_str()),
            message: pools.texts.share(reason.message.as_str()),
            again_after_ms,
        };
        Self {
            order_ms,
            at: entry.at,
            origin: pools.origins.share(&origin),
            number: record.id,
            decision: entry.decision,
            outcome: record.outcome,
            subject: pools.subjects.share(&entry.subject),
            cluster: entry.cluster.as_deref().map(|name| pools.texts.share(name)),
            cause: pools.causes.share(&cause),
            effect: pools.texts.share(entry.effect.as_str()),
        }
    }

    /// Returns the id of the decision.
    pub fn id(&self) -> DecisionId {
        DecisionId {
            process: self.origin.process.as_ref().to_owned(),
            number: self.number,
        }
    }

    /// Returns true if the decision has this id.
    pub fn is(&self, id: &DecisionId) -> bool {
        self.number == id.number && *self.origin.process == *id.process
    }

    /// Returns the reason.
    pub fn reason(&self) -> Reason {
        Reason::new(self.cause.code.as_ref(), self.cause.message.as_ref())
    }

    /// Returns the event of a wait, if the decision begins or ends one.
    pub fn event(&self) -> Option<Event<'_>> {
        (self.is_taken() && concerns(self.decision)).then(|| Event {
            process: &self.origin.process,
            number: self.number,
            subject: &self.subject,
            cluster: self.cluster.as_deref(),
            decision: self.decision,
            gate: &self.cause.code,
            message: &self.cause.message,
            policy: self.cause.policy.as_deref(),
            at: self.at,
            again_after_ms: self.cause.again_after_ms,
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
        let texts = [key.as_str(), &self.effect, &self.cause.code, &self.cause.message];
        texts.iter().any(|text| text.to_lowercase().contains(words))
    }
}
