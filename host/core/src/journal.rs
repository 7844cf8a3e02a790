//! The decision journal: one record per decision, made before its effects are applied.
//!
//! A record says what was decided and why, for people. Where decisions are to be made again, there is a [`Case`] behind
//! it: the snapshot, who was asked and what they answered, the plan. Cases are made only for a journal with a
//! [`Sink`]; the journal in memory does not keep them.
//!
//! Start reading at [`case`]; what must not be kept is in [`redact`].

mod answer;
mod canonical;
pub mod case;
mod id;
pub mod plan;
pub mod redact;
mod tape;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use self::answer::{Answer, Filtered};
pub use self::canonical::{Difference, canonical, differences};
pub use self::case::{Case, Decided, Limits, Question};
pub use self::id::{DecisionId, NoDecisionId};
pub use self::tape::{Asked, Seat, Tape};
use crate::combine::Because;
use crate::decide::schedule::ScheduleExplanation;
use crate::time::Time;

/// What a decision is about.
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
    /// A subject; `namespace` is empty for cluster scope.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `namespace/name`, or the name alone.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key())
    }
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Decision {
    /// A policy claims a template; its binding is created or changed.
    Bound,
    /// A template is gone, or no policy claims it any more; its binding is deleted.
    Unbound,
    /// Target clusters were chosen.
    Scheduled,
    /// No target clusters could be chosen.
    NotScheduled,
    /// A Work is created.
    Dispatched,
    /// A Work is deleted because nothing holds it any more.
    Withdrawn,
    /// An object is created or changed in a member cluster.
    Applied,
    /// An object is deleted in a member cluster.
    Removed,
    /// A deletion waits until the member cluster is ready.
    RemovalWaits,
    /// The Ready condition of a cluster changes.
    ReadyChanged,
    /// A taint is added to a cluster.
    Tainted,
    /// A taint is removed from a cluster.
    Untainted,
    /// A binding tolerates a taint for some time yet.
    Tolerated,
    /// A binding is evicted from a cluster.
    Evicted,
    /// An eviction that is due waits, or all evictions from a cluster do.
    EvictionsWait,
    /// Evictions from a cluster go on.
    EvictionsResumed,
    /// The old copy is held.
    Held,
    /// The old copy may go.
    Released,
    /// An eviction ends with its cluster as a target again.
    CalledOff,
    /// The health of an object in a member cluster changes.
    HealthChanged,
    /// A plugin did not answer; the fail-static rule applied.
    PluginFault,
    /// A plugin in shadow would have decided otherwise.
    ShadowDiverged,
    /// Plugins were loaded, replaced or refused.
    PluginsChanged,
}

impl Decision {
    /// Every decision, in the order of declaration.
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

    /// Whether it changes where something runs, or keeps that from changing. The rest follows from such decisions, or
    /// leads to them.
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

/// The version of an object that a decision was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The object.
    pub subject: Subject,
    /// Its `metadata.resourceVersion`.
    pub resource_version: String,
}

/// A decision to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When it was made.
    pub at: Time,
    /// The controller that made it.
    pub controller: String,
    /// What it is about.
    pub subject: Subject,
    /// The member cluster it concerns, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// What was decided.
    pub decision: Decision,
    /// Who said so, and why.
    pub because: Because,
    /// What follows, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// What it was decided from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// How a scheduling decision came about, if somebody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Arc<ScheduleExplanation>>,
}

/// What became of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was recorded, and its effects are in place as far as anybody knows.
    #[default]
    Taken,
    /// Its effects could not be applied, for example because of a conflict; it is decided again.
    Abandoned,
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the journal, from 1, without gaps.
    pub id: u64,
    /// Uid of the process that decided; empty for simulations and for records of older programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The decision.
    #[serde(flatten)]
    pub entry: Entry,
}

impl Record {
    /// Id that no record of another process has.
    pub fn decision_id(&self) -> DecisionId {
        DecisionId { process: self.process.clone(), number: self.id }
    }
}

/// Where records go besides memory.
pub trait Sink: Send + Sync {
    /// Keeps a record. Its effects are applied only once it has left the process: when this returns, or when a sink that
    /// keeps it later says so. Records come in order of id; several in a row may have the same case.
    fn keep(&self, record: &Record, case: Option<&Arc<Case>>);

    /// Notes that the effects of a decision could not be applied.
    fn abandon(&self, id: u64);

    /// Whether it wants to know what records were decided from. One that does not need not outlive anything.
    fn keeps_cases(&self) -> bool {
        true
    }
}

/// Several parts of a program may share a sink.
impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn keep(&self, record: &Record, case: Option<&Arc<Case>>) {
        (**self).keep(record, case);
    }

    fn abandon(&self, id: u64) {
        (**self).abandon(id);
    }

    fn keeps_cases(&self) -> bool {
        (**self).keeps_cases()
    }
}

/// A journal in memory. When it is full the oldest records go, and [`Journal::dropped`] counts them.
pub struct Journal {
    process: String,
    records_max: usize,
    state: Mutex<State>,
    sink: Option<Box<dyn Sink>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("records_max", &self.records_max).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Record>,
    last_id: u64,
    dropped: u64,
}

impl Journal {
    /// An empty journal that keeps at most `records_max` records in memory; with 0 it only counts.
    pub fn new(records_max: usize) -> Self {
        Self { process: String::new(), records_max, state: Mutex::default(), sink: None }
    }

    /// The same with a place that outlives it. `last_id` is the id of the last record that is there already, or 0.
    pub fn with_sink(records_max: usize, last_id: u64, sink: Box<dyn Sink>) -> Self {
        let state = State { last_id, ..State::default() };
        Self { process: String::new(), records_max, state: Mutex::new(state), sink: Some(sink) }
    }

    /// The same for a process with that uid.
    #[must_use]
    pub fn of_process(self, uid: impl Into<String>) -> Self {
        Self { process: uid.into(), ..self }
    }

    /// Id of a record of this journal that no record of another process has.
    pub fn decision_id(&self, number: u64) -> DecisionId {
        DecisionId { process: self.process.clone(), number }
    }

    /// Whether records go to a place that wants to know what they were decided from.
    pub fn keeps_cases(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.keeps_cases())
    }

    /// Records a decision and returns its id. Called before the decision's effects are applied.
    pub fn record(&self, entry: Entry) -> u64 {
        self.record_decided(entry, None)
    }

    /// The same for a decision whose case is known.
    pub fn record_decided(&self, entry: Entry, case: Option<&Arc<Case>>) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last_id += 1;
        let id = state.last_id;
        let record = Record { id, process: self.process.clone(), outcome: Outcome::Taken, entry };
        if let Some(sink) = &self.sink {
            sink.keep(&record, case);
        }
        state.records.push_back(record);
        if state.records.len() > self.records_max {
            state.records.pop_front();
            state.dropped += 1;
        }
        id
    }

    /// Notes that the effects of a decision could not be applied.
    pub fn abandon(&self, id: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = &self.sink {
            sink.abandon(id);
        }
        let Some(first) = state.records.front().map(|record| record.id) else { return };
        let position = id.checked_sub(first).and_then(|position| usize::try_from(position).ok());
        if let Some(record) = position.and_then(|position| state.records.get_mut(position)) {
            record.outcome = Outcome::Abandoned;
        }
    }

    /// Everything that is still there, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).records.iter().cloned().collect()
    }

    /// How many decisions were recorded so far, those that are not kept any more included.
    pub fn recorded(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.records.len() as u64 + state.dropped
    }

    /// How many records went to make room.
    pub fn dropped(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::finish::{FinishOptions, UnconfirmedTargets};

    fn filled(records_max: usize) -> Journal {
        let journal = Journal::new(records_max);
        for n in 0..3 {
            journal.record(Entry {
                at: Time::from_millis(n),
                controller: "test".into(),
                subject: Subject::new("ResourceBinding", "default", "nginx-deployment"),
                cluster: None,
                decision: Decision::Scheduled,
                because: Because::default(),
                effect: String::new(),
                inputs: Vec::new(),
                explanation: None,
            });
        }
        journal
    }

    #[test]
    fn a_finish_case_of_an_older_journal_reads_and_confirms_every_target() {
        let question = Question::Finish {
            binding: Arc::default(),
            options: FinishOptions::default(),
            unconfirmed: UnconfirmedTargets::new(),
        };
        let written = serde_json::to_value(&question).unwrap();
        assert_eq!(written["finish"].get("unconfirmed"), None, "the shape of older journals");
        assert_eq!(serde_json::from_value::<Question>(written).unwrap(), question);
    }

    #[test]
    fn the_oldest_records_go_first_and_are_counted() {
        let check = |records_max, expected: &[u64], dropped| {
            let journal = filled(records_max);
            assert_eq!(journal.records().iter().map(|record| record.id).collect::<Vec<_>>(), expected);
            assert_eq!((journal.dropped(), journal.recorded()), (dropped, 3));
            journal.abandon(3);
        };
        check(2, &[2, 3], 1);
        check(0, &[], 3);
    }
}
