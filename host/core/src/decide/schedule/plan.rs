//! What an attempt came to, and what follows once its result was written or refused.

use super::error::{self, ScheduleError, Verdict, WriteError};
use super::explanation::ScheduleExplanation;
use super::rejections::Rejections;
use crate::combine::Remarks;
use crate::model::{Binding, BindingStatus, Condition, GracefulEvictionTask, TargetCluster, set_condition};
use crate::time::Time;

/// What is to happen to `spec.clusters`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// This is the new result.
    Place(Vec<TargetCluster>),
    /// No cluster fits: the result is cleared.
    Clear(ScheduleError),
    /// The result stays as it is.
    Keep(ScheduleError),
    /// Success without doing anything: `clusterAffinities` is a list without entries.
    Nothing,
}

/// A group of clusters that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTerm {
    /// Index in `clusterAffinities`.
    pub index: usize,
    /// Why it failed.
    pub error: ScheduleError,
}

/// What scheduling came to.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// What is to happen.
    pub outcome: Outcome,
    /// Tasks by which copies leave clusters that the new result gives up, to be written together with it.
    pub displaced: Vec<GracefulEvictionTask>,
    /// The affinity group to observe from now on; absent when the placement has none or all failed.
    pub affinity_name: Option<String>,
    /// Groups that failed before, in the order in which they were tried.
    pub failed_terms: Vec<FailedTerm>,
    /// Which clusters were rejected; for several groups, by the last one tried.
    pub rejections: Rejections,
    /// How it came about, if somebody asked.
    pub explanation: Option<ScheduleExplanation>,
    /// What is worth telling about the plugins.
    pub remarks: Remarks,
}

/// What follows from a plan once its result was written, or the write was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The condition, and when to look again.
    pub verdict: Verdict,
    /// Texts of the events, in order; the last one may be the success.
    pub events: Vec<ScheduleEvent>,
    /// The affinity group to observe from now on; also when the write was refused.
    pub affinity_name: Option<String>,
}

/// An event on the binding and on its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEvent {
    /// Whether it is good news.
    pub succeeded: bool,
    /// Its text.
    pub message: String,
}

impl ScheduleEvent {
    /// The reason that goes with it.
    pub fn reason(&self) -> &'static str {
        if self.succeeded { "ScheduleBindingSucceed" } else { "ScheduleBindingFailed" }
    }

    fn failed(message: impl Into<String>) -> Self {
        Self { succeeded: false, message: message.into() }
    }
}

impl SchedulePlan {
    /// Why nothing was placed.
    pub fn error(&self) -> Option<&ScheduleError> {
        match &self.outcome {
            Outcome::Clear(error) | Outcome::Keep(error) => Some(error),
            Outcome::Place(_) | Outcome::Nothing => None,
        }
    }

    /// The `spec.clusters` to write, together with the applied placement; absent when nothing is written.
    pub fn targets(&self) -> Option<&[TargetCluster]> {
        match &self.outcome {
            Outcome::Place(targets) => Some(targets),
            Outcome::Clear(_) => Some(&[]),
            Outcome::Keep(_) | Outcome::Nothing => None,
        }
    }

    /// What follows. `written` is how the write went; it does not matter when there was nothing to write.
    pub fn conclude(&self, binding: &Binding, written: Result<(), &WriteError>) -> Conclusion {
        let written = if self.targets().is_some() { written } else { Ok(()) };
        let verdict = error::verdict(self.error(), written);
        let mut events: Vec<_> = self.failed_terms.iter().map(|failed| failed.event(binding)).collect();
        match &self.outcome {
            Outcome::Place(targets) if written.is_ok() => {
                let message = success_message(binding, targets);
                events.push(ScheduleEvent { succeeded: true, message });
            }
            Outcome::Place(_) | Outcome::Clear(_) => events.push(ScheduleEvent::failed(&verdict.message)),
            // With groups, each of them has been reported.
            Outcome::Keep(error) if self.failed_terms.is_empty() => {
                events.push(ScheduleEvent::failed(error.to_string()));
            }
            Outcome::Keep(_) | Outcome::Nothing => {}
        }
        Conclusion { verdict, events, affinity_name: self.affinity_name.clone() }
    }
}

/// The event about a binding that is being deleted, which is not scheduled any more.
pub fn deleting_event(binding: &Binding) -> ScheduleEvent {
    let kind = if binding.namespace.is_some() { "resourceBinding" } else { "clusterResourceBinding" };
    ScheduleEvent::failed(format!("skip schedule deleting {kind}: {}", binding.key()))
}

impl FailedTerm {
    fn event(&self, binding: &Binding) -> ScheduleEvent {
        let Self { index, error } = self;
        let (kind, key) = (binding.kind(), binding.key());
        // The misspelling is Karmada's.
        let message = format!("failed to schedule {kind}({key}) with clusterAffiliates index({index}): {error}");
        ScheduleEvent::failed(message)
    }
}

/// Karmada's text for a ClusterResourceBinding lacks the colon.
fn success_message(binding: &Binding, targets: &[TargetCluster]) -> String {
    let colon = if binding.namespace.is_some() { ":" } else { "" };
    let targets: Vec<_> = targets.iter().map(|target| format!("{}:{}", target.name, target.replicas)).collect();
    format!("Binding has been scheduled successfully. Result{colon} {{{}}}", targets.join(", "))
}

impl Conclusion {
    /// Puts the conclusion into the status of a binding of which `generation` was scheduled. Returns whether that
    /// changed anything. A failure moves neither the observed generation nor the time of the last scheduling.
    pub fn apply(&self, status: &mut BindingStatus, generation: i64, now: Time) -> bool {
        let mut changed = false;
        if let Some(name) = &self.affinity_name
            && status.scheduler_observed_affinity_name != *name
        {
            status.scheduler_observed_affinity_name.clone_from(name);
            changed = true;
        }
        let Verdict { status: scheduled, reason, message, .. } = &self.verdict;
        if *scheduled == crate::model::ConditionStatus::True {
            status.scheduler_observed_generation = generation;
            status.last_scheduled_time = Some(now.truncated());
            changed = true;
        }
        let condition = Condition::new("Scheduled", *scheduled, reason, message, now);
        set_condition(&mut status.conditions, condition) || changed
    }
}
