//! Decision journal: one record per decision, written before its effects are applied.
//!
//! A record states the decision and its reason for people. For replay, it can have a [`DecisionRecord`]: the snapshot,
//! the policies with their replies, and the plan. Decision records are created only for a journal with a [`Sink`]; the
//! in-memory journal does not keep them.
//!
//! Start with [`decision_record`]; [`redact`] removes data that must not be stored.

mod canonical;
pub mod decision_record;
mod id;
pub mod plan;
mod recorded_reply;
mod recorder;
pub mod redact;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use self::canonical::{Difference, canonical, differences};
pub use self::decision_record::{Decided, DecisionInput, DecisionRecord, Limits};
pub use self::id::{DecisionId, NoDecisionId};
pub use self::recorded_reply::{RecordedFilterReply, RecordedReply};
pub use self::recorder::{CallRecorder, PolicySlot, RecordedCall};
use crate::combine::Attribution;
use crate::decide::schedule::ScheduleExplanation;
use crate::time::Time;

/// Object of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// API kind.
    pub kind: String,
    /// Namespace; empty for cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Subject {
    /// Creates a subject; `namespace` is empty for cluster scope.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns true for the kinds of bindings.
    pub fn is_binding(&self) -> bool {
        matches!(self.kind.as_str(), "ResourceBinding" | "ClusterResourceBinding")
    }

    /// Returns `namespace/name`, or only the name for cluster scope.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key())
    }
}

/// Kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Decision {
    /// A policy claims a template; its binding is created or changed.
    Bound,
    /// A template was deleted or is no longer claimed by a policy; its binding is deleted.
    Unbound,
    /// Target clusters were chosen.
    Scheduled,
    /// No target clusters could be chosen.
    NotScheduled,
    /// A Work is created.
    Dispatched,
    /// A Work is deleted because it is no longer needed.
    Withdrawn,
    /// An object is created or changed in a member cluster.
    Applied,
    /// An object is deleted in a member cluster.
    Removed,
    /// A deletion waits for the member cluster to become ready.
    RemovalWaits,
    /// The Ready condition of a cluster changes.
    ReadyChanged,
    /// A taint is added to a cluster.
    Tainted,
    /// A taint is removed from a cluster.
    Untainted,
    /// An unhealthy application stays while its tolerated time runs.
    Tolerated,
    /// A binding is evicted from a cluster.
    Evicted,
    /// A due eviction waits, or all evictions from a cluster wait.
    EvictionsWait,
    /// Evictions from a cluster resume.
    EvictionsResumed,
    /// The old copy is kept.
    Held,
    /// The old copy may be deleted.
    Released,
    /// An eviction is canceled: its cluster is a target again or has recovered.
    CalledOff,
    /// The health of an object in a member cluster changes.
    HealthChanged,
    /// A plugin returned a fault; the fail-static rule applied.
    PluginFault,
    /// A shadow plugin would have decided differently.
    ShadowDiverged,
    /// Plugins were loaded, replaced or rejected.
    PluginsChanged,
}

impl Decision {
    /// All decisions, in declaration order.
    pub const ALL: [Self; 23] = [
        Self::Bound,
        Self::Unbound,
        Self::Scheduled,
        Self::NotScheduled,
        Self::Dispatched,
        Self::Withdrawn,
        Self::Applied,
        Self::Removed,
        Self::RemovalWaits,
        Self::ReadyChanged,
        Self::Tainted,
        Self::Untainted,
        Self::Tolerated,
        Self::Evicted,
        Self::EvictionsWait,
        Self::EvictionsResumed,
        Self::Held,
        Self::Released,
        Self::CalledOff,
        Self::HealthChanged,
        Self::PluginFault,
        Self::ShadowDiverged,
        Self::PluginsChanged,
    ];

    /// Returns true if the decision changes where a workload runs, or prevents such a change. All other decisions
    /// precede or follow these.
    pub const fn is_about_place(self) -> bool {
        match self {
            Self::Scheduled
            | Self::NotScheduled
            | Self::Tainted
            | Self::Untainted
            | Self::Evicted
            | Self::EvictionsWait
            | Self::EvictionsResumed
            | Self::Held
            | Self::Released
            | Self::CalledOff
            | Self::PluginFault => true,
            Self::Bound
            | Self::Unbound
            | Self::Dispatched
            | Self::Withdrawn
            | Self::Applied
            | Self::Removed
            | Self::RemovalWaits
            | Self::ReadyChanged
            | Self::Tolerated
            | Self::HealthChanged
            | Self::ShadowDiverged
            | Self::PluginsChanged => false,
        }
    }
}

/// Version of an object that a decision was based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Identity of the object.
    pub subject: Subject,
    /// Its `metadata.resourceVersion`.
    pub resource_version: String,
}

/// Decision to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Time of the decision.
    pub at: Time,
    /// Controller that made the decision.
    pub controller: String,
    /// Object of the decision.
    pub subject: Subject,
    /// Member cluster that the decision affects, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Kind of the decision.
    pub decision: Decision,
    /// Policy or rule that decided, with the reason.
    #[serde(rename = "because")]
    pub attribution: Attribution,
    /// Human-readable description of the effects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// Object versions that the decision was based on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Explanation of a scheduling decision, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Arc<ScheduleExplanation>>,
}

/// Outcome of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The decision was recorded; as far as known, its effects were applied.
    #[default]
    Taken,
    /// The effects could not be applied, for example because of a conflict; the decision is repeated.
    Abandoned,
}

/// Journal record: an entry with its id and outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the journal, from 1, without gaps.
    pub id: u64,
    /// Uid of the process that decided; empty for simulations and for records of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// Outcome of the decision.
    pub outcome: Outcome,
    /// Recorded decision.
    #[serde(flatten)]
    pub entry: Entry,
}

impl Record {
    /// Returns the decision id, which is unique across processes.
    pub fn decision_id(&self) -> DecisionId {
        DecisionId {
            process: self.process.clone(),
            number: self.id,
        }
    }
}

/// Destination of records besides memory.
pub trait Sink: Send + Sync {
    /// Stores a record. The effects of the decision are applied only after the record has left the process: when this
    /// method returns, or when a sink that writes asynchronously confirms it. Records arrive in id order, and
    /// consecutive records may share a decision record.
    fn keep(&self, record: &Record, decision_record: Option<&Arc<DecisionRecord>>);

    /// Marks a decision as abandoned because its effects could not be applied.
    fn abandon(&self, id: u64);

    /// Returns true if the sink stores decision records. A sink that does not may be volatile.
    fn keeps_decision_records(&self) -> bool {
        true
    }
}

/// Allows several parts of a program to share a sink.
impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn keep(&self, record: &Record, decision_record: Option<&Arc<DecisionRecord>>) {
        (**self).keep(record, decision_record);
    }

    fn abandon(&self, id: u64) {
        (**self).abandon(id);
    }

    fn keeps_decision_records(&self) -> bool {
        (**self).keeps_decision_records()
    }
}

/// In-memory journal. When it is full, the oldest records are dropped and counted in [`Journal::dropped`].
pub struct Journal {
    process: String,
    records_max: usize,
    state: Mutex<State>,
    sink: Option<Box<dyn Sink>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("records_max", &self.records_max)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Record>,
    last_id: u64,
    dropped: u64,
}

impl Journal {
    /// Creates an empty journal that keeps at most `records_max` records in memory. With 0, it only counts.
    pub fn new(records_max: usize) -> Self {
        Self {
            process: String::new(),
            records_max,
            state: Mutex::default(),
            sink: None,
        }
    }

    /// Creates a journal that also writes to a sink. `last_id` is the id of the last record already stored there, or
    /// 0.
    pub fn with_sink(records_max: usize, last_id: u64, sink: Box<dyn Sink>) -> Self {
        let state = State {
            last_id,
            ..State::default()
        };
        Self {
            process: String::new(),
            records_max,
            state: Mutex::new(state),
            sink: Some(sink),
        }
    }

    /// Sets the uid of the process.
    #[must_use]
    pub fn of_process(self, uid: impl Into<String>) -> Self {
        Self {
            process: uid.into(),
            ..self
        }
    }

    /// Returns the decision id of a record of this journal, which is unique across processes.
    pub fn decision_id(&self, number: u64) -> DecisionId {
        DecisionId {
            process: self.process.clone(),
            number,
        }
    }

    /// Returns true if the journal has a sink that stores decision records.
    pub fn keeps_decision_records(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.keeps_decision_records())
    }

    /// Records a decision and returns its id. Must be called before the effects are applied.
    pub fn record(&self, entry: Entry) -> u64 {
        self.record_decided(entry, None)
    }

    /// Records a decision with its decision record and returns its id.
    pub fn record_decided(&self, entry: Entry, decision_record: Option<&Arc<DecisionRecord>>) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last_id += 1;
        let id = state.last_id;
        let record = Record {
            id,
            process: self.process.clone(),
            outcome: Outcome::Taken,
            entry,
        };
        if let Some(sink) = &self.sink {
            sink.keep(&record, decision_record);
        }
        state.records.push_back(record);
        if state.records.len() > self.records_max {
            state.records.pop_front();
            state.dropped += 1;
        }
        id
    }

    /// Marks a decision as abandoned because its effects could not be applied.
    pub fn abandon(&self, id: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = &self.sink {
            sink.abandon(id);
        }
        let Some(first) = state.records.front().map(|record| record.id) else {
            return;
        };
        let position = id
            .checked_sub(first)
            .and_then(|position| usize::try_from(position).ok());
        if let Some(record) = position.and_then(|position| state.records.get_mut(position)) {
            record.outcome = Outcome::Abandoned;
        }
    }

    /// Returns all records that are still in memory, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .records
            .iter()
            .cloned()
            .collect()
    }

    /// Returns the number of decisions recorded so far, including dropped ones.
    pub fn recorded(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.records.len() as u64 + state.dropped
    }

    /// Returns the number of dropped records.
    pub fn dropped(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::graceful_eviction::{GracefulEvictionOptions, UnconfirmedTargets};

    fn filled(records_max: usize) -> Journal {
        let journal = Journal::new(records_max);
        for n in 0..3 {
            journal.record(Entry {
                at: Time::from_millis(n),
                controller: "test".into(),
                subject: Subject::new("ResourceBinding", "default", "nginx-deployment"),
                cluster: None,
                decision: Decision::Scheduled,
                attribution: Attribution::default(),
                effect: String::new(),
                inputs: Vec::new(),
                explanation: None,
            });
        }
        journal
    }

    #[test]
    fn a_finish_decision_of_an_older_journal_reads_and_confirms_every_target() {
        let input = DecisionInput::GracefulEviction {
            binding: Arc::default(),
            options: GracefulEvictionOptions::default(),
            unconfirmed: UnconfirmedTargets::new(),
        };
        let written = serde_json::to_value(&input).unwrap();
        assert_eq!(
            written["finish"].get("unconfirmed"),
            None,
            "the shape of older journals"
        );
        assert_eq!(serde_json::from_value::<DecisionInput>(written).unwrap(), input);
    }

    #[test]
    fn the_oldest_records_go_first_and_are_counted() {
        let check = |records_max, expected: &[u64], dropped| {
            let journal = filled(records_max);
            assert_eq!(
                journal.records().iter().map(|record| record.id).collect::<Vec<_>>(),
                expected
            );
            assert_eq!((journal.dropped(), journal.recorded()), (dropped, 3));
            journal.abandon(3);
        };
        check(2, &[2, 3], 1);
        check(0, &[], 3);
    }
}
