//! Content of a `FailoverRecord`: the steps of the failovers of one binding, for the owner of its workload.
//!
//! The eviction tasks of the binding are the truth: a task begins a failover, and its absence ends it. Decisions of this
//! process add reasons and ids. So a record is complete after a restart and beside evictions of other programs, with
//! fewer details.
//!
//! Start with [`update`].

use std::collections::BTreeSet;

use crate::journal::Decision;
use crate::model::{
    BindingSpec, FAILOVER_STEPS_MAX, FailoverRecordStatus, FailoverState, FailoverStep, GracefulEvictionTask,
};
use crate::time::Time;

/// Maximum number of target clusters in a step.
const TARGETS_MAX: usize = 10;
/// Maximum length of a message, in characters.
const MESSAGE_CHARS_MAX: usize = 512;
/// Reason of a step that ended an eviction by a decision that is unknown: of another program or of an ended process.
pub const REASON_TASK_GONE: &str = "EvictionTaskGone";

/// Decision about the old copy in one cluster. Its effects are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverNote {
    /// Position of the decision in the journal of this process; 0 for an eviction that is known by its task.
    pub number: u64,
    /// Time of the decision.
    pub time: Time,
    /// State of the old copy since the decision.
    pub state: FailoverState,
    /// Cluster of the old copy.
    pub cluster: String,
    /// `CamelCase` reason.
    pub reason: String,
    /// Human-readable reason.
    pub message: String,
    /// Decision ID; empty without a journal that outlives the process.
    pub decision: String,
}

impl FailoverNote {
    /// Returns the eviction that began with this task; `None` if the task has no time.
    pub fn of_task(task: &GracefulEvictionTask) -> Option<Self> {
        Some(Self {
            number: 0,
            time: task.creation_timestamp?,
            state: FailoverState::Evicted,
            cluster: task.from_cluster.clone(),
            reason: task.reason.clone(),
            message: task.message.clone(),
            decision: String::new(),
        })
    }
}

impl FailoverState {
    /// Returns the state that follows from a decision; `None` if the decision is not about an old copy.
    pub const fn after(decision: Decision) -> Option<Self> {
        match decision {
            Decision::Evicted => Some(Self::Evicted),
            Decision::Held => Some(Self::Held),
            Decision::Released => Some(Self::Released),
            Decision::CalledOff => Some(Self::CalledOff),
            _ => None,
        }
    }
}

/// Returns the record after these decisions, for the current spec of the binding. Equal inputs give an equal record, and
/// a second update without decisions changes nothing.
pub fn update(
    record: &FailoverRecordStatus,
    spec: &BindingSpec,
    notes: &[FailoverNote],
    now: Time,
) -> FailoverRecordStatus {
    let mut draft = Draft {
        record: record.clone(),
        spec,
        now,
    };
    let mut notes: Vec<_> = notes.iter().collect();
    notes.sort_by_key(|note| note.number);
    for note in notes {
        draft.apply(note);
    }
    draft.follow_tasks();
    draft.name_targets();
    let record = &mut draft.record;
    let excess = record.steps.len().saturating_sub(FAILOVER_STEPS_MAX);
    record.steps.drain(..excess);
    draft.record
}

struct Draft<'a> {
    record: FailoverRecordStatus,
    spec: &'a BindingSpec,
    now: Time,
}

impl Draft<'_> {
    fn apply(&mut self, note: &FailoverNote) {
        let is_leaving = self.is_leaving(&note.cluster);
        match note.state {
            FailoverState::Evicted if !is_leaving => {
                // Another process may have recorded it.
                if !self.has_step_since(&note.cluster, note.time) {
                    self.push(step_of(note));
                }
            }
            FailoverState::Held => {
                if !is_leaving {
                    // The note of the eviction is late, or another program evicts.
                    let Some(task) = self.task(&note.cluster) else { return };
                    self.begin(&task);
                }
                match self.latest(&note.cluster, |_| true) {
                    Some(step) if step.state == FailoverState::Held => explain(step, note),
                    _ => self.push(step_of(note)),
                }
            }
            FailoverState::Released | FailoverState::CalledOff if is_leaving => self.push(step_of(note)),
            // The task showed the step before its decision was known.
            FailoverState::Evicted => {
                let known = self.latest(&note.cluster, |state| state == FailoverState::Evicted);
                if let Some(step) = known.filter(|step| step.decision.is_empty()) {
                    explain(step, note);
                }
            }
            FailoverState::Released | FailoverState::CalledOff => {
                let ended = step_of(note);
                match self.latest(&note.cluster, |_| true) {
                    Some(step) if step.reason == REASON_TASK_GONE && step.state == note.state => explain(step, note),
                    // A write without an answer was in effect.
                    Some(step) if step.state == ended.state && step.time == ended.time => {}
                    // An eviction of another program that ended before any update.
                    _ => self.push(ended),
                }
            }
        }
    }

    /// Begins the failovers whose tasks exist, and ends those whose tasks are gone.
    fn follow_tasks(&mut self) {
        let spec = self.spec;
        for task in &spec.graceful_eviction_tasks {
            if !self.is_leaving(&task.from_cluster) {
                self.begin(task);
            }
        }
        let leaving = self.record.leaving.iter();
        let gone: BTreeSet<_> = leaving.filter(|name| !spec.is_evicting(name)).cloned().collect();
        for from in gone {
            let state = if spec.targets(&from) {
                FailoverState::CalledOff
            } else {
                FailoverState::Released
            };
            let step = FailoverStep {
                time: self.now.truncated(),
                state,
                from,
                to: Vec::new(),
                reason: REASON_TASK_GONE.to_owned(),
                message: "the eviction task is gone".to_owned(),
                decision: String::new(),
            };
            self.push(step);
        }
    }

    fn begin(&mut self, task: &GracefulEvictionTask) {
        self.push(FailoverStep {
            time: task.creation_timestamp.unwrap_or(self.now).truncated(),
            state: FailoverState::Evicted,
            from: task.from_cluster.clone(),
            to: Vec::new(),
            reason: task.reason.clone(),
            message: shortened(&task.message),
            decision: String::new(),
        });
    }

    fn push(&mut self, mut step: FailoverStep) {
        let FailoverRecordStatus {
            leaving,
            evicted,
            released,
            called_off,
            ..
        } = &mut self.record;
        match step.state {
            FailoverState::Evicted => {
                *evicted += 1;
                leaving.push(step.from.clone());
            }
            FailoverState::Held => {}
            FailoverState::Released | FailoverState::CalledOff => {
                let count = if step.state == FailoverState::Released {
                    released
                } else {
                    called_off
                };
                *count += 1;
                leaving.retain(|name| *name != step.from);
                step.to = targets(self.spec);
            }
        }
        self.record.steps.push(step);
    }

    /// Sets the targets of each eviction in progress: they are often chosen after it.
    fn name_targets(&mut self) {
        let targets = targets(self.spec);
        for from in self.record.leaving.clone() {
            if let Some(step) = self.latest(&from, |state| state == FailoverState::Evicted) {
                step.to.clone_from(&targets);
            }
        }
    }

    fn task(&self, cluster: &str) -> Option<GracefulEvictionTask> {
        let mut tasks = self.spec.graceful_eviction_tasks.iter();
        tasks.find(|task| task.from_cluster == cluster).cloned()
    }

    fn has_step_since(&self, cluster: &str, time: Time) -> bool {
        let mut steps = self.record.steps.iter();
        steps.any(|step| step.from == cluster && step.time >= time.truncated())
    }

    fn is_leaving(&self, cluster: &str) -> bool {
        self.record.leaving.iter().any(|name| name == cluster)
    }

    /// Returns the latest step about a cluster that has one of these states.
    fn latest(&mut self, cluster: &str, is_wanted: impl Fn(FailoverState) -> bool) -> Option<&mut FailoverStep> {
        let mut steps = self.record.steps.iter_mut().rev();
        steps.find(|step| step.from == cluster && is_wanted(step.state))
    }
}

fn step_of(note: &FailoverNote) -> FailoverStep {
    FailoverStep {
        time: note.time.truncated(),
        state: note.state,
        from: note.cluster.clone(),
        to: Vec::new(),
        reason: note.reason.clone(),
        message: shortened(&note.message),
        decision: note.decision.clone(),
    }
}

/// Gives a step the reason and the id of a decision.
fn explain(step: &mut FailoverStep, note: &FailoverNote) {
    step.reason.clone_from(&note.reason);
    step.message = shortened(&note.message);
    step.decision.clone_from(&note.decision);
}

fn targets(spec: &BindingSpec) -> Vec<String> {
    let names = spec.clusters.iter().map(|target| target.name.clone());
    names.take(TARGETS_MAX).collect()
}

fn shortened(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
