//! Result of scheduling, and its conclusion after the result was written or the write failed.

use super::error::{self, Retry, ScheduleError, Verdict, WriteError};
use super::explanation::ScheduleExplanation;
use super::rejections::Rejections;
use crate::combine::Diagnostics;
use crate::model::{Binding, BindingStatus, Condition, GracefulEvictionTask, TargetCluster, set_condition};
use crate::time::Time;

/// Planned change to `spec.clusters`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Write a new result.
    Place(Vec<TargetCluster>),
    /// Clear the result, because no cluster fits.
    Clear(ScheduleError),
    /// Keep the current result.
    Keep(ScheduleError),
    /// Succeed without a change, because `clusterAffinities` is an empty list.
    Nothing,
}

/// Affinity group that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTerm {
    /// Index in `clusterAffinities`.
    pub index: usize,
    /// Error of the attempt.
    pub error: ScheduleError,
}

/// Result of scheduling.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// Planned change to `spec.clusters`.
    pub outcome: Outcome,
    /// Tasks that evict copies from clusters outside of the new result, to be written together with it.
    pub displaced: Vec<GracefulEvictionTask>,
    /// Affinity group to observe from now on; absent if the placement has none or all failed.
    pub affinity_name: Option<String>,
    /// Groups that failed before, in the order of the attempts.
    pub failed_terms: Vec<FailedTerm>,
    /// Rejected clusters; if several groups were tried, those of the last attempt.
    pub rejections: Rejections,
    /// Explanation, if requested.
    pub explanation: Option<ScheduleExplanation>,
    /// Diagnostics of the plugins.
    pub diagnostics: Diagnostics,
}

/// Conclusion of a plan after its result was written or the write failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Condition and time of the next attempt.
    pub verdict: Verdict,
    /// Events in order; the last one may report success.
    pub events: Vec<ScheduleEvent>,
    /// Affinity group to observe from now on; set even if the write failed.
    pub affinity_name: Option<String>,
}

/// Event on the binding and its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEvent {
    /// True if the event reports success.
    pub succeeded: bool,
    /// Message of the event.
    pub message: String,
}

impl ScheduleEvent {
    /// Returns the reason of the event.
    pub fn reason(&self) -> &'static str {
        if self.succeeded {
            "ScheduleBindingSucceed"
        } else {
            "ScheduleBindingFailed"
        }
    }

    fn failed(message: impl Into<String>) -> Self {
        Self {
            succeeded: false,
            message: message.into(),
        }
    }
}

impl SchedulePlan {
    /// Returns the error if nothing was placed.
    pub fn error(&self) -> Option<&ScheduleError> {
        match &self.outcome {
            Outcome::Clear(error) | Outcome::Keep(error) => Some(error),
            Outcome::Place(_) | Outcome::Nothing => None,
        }
    }

    /// Returns the `spec.clusters` to write together with the applied placement; `None` if nothing is written.
    pub fn targets(&self) -> Option<&[TargetCluster]> {
        match &self.outcome {
            Outcome::Place(targets) => Some(targets),
            Outcome::Clear(_) => Some(&[]),
            Outcome::Keep(_) | Outcome::Nothing => None,
        }
    }

    /// Returns the conclusion. `written` is the result of the write; it is ignored if there was nothing to write.
    pub fn conclude(&self, binding: &Binding, written: Result<(), &WriteError>) -> Conclusion {
        let written = if self.targets().is_some() { written } else { Ok(()) };
        let mut verdict = error::verdict(self.error(), written);
        verdict.retry = self.retry_after_faults(verdict.retry);
        let mut events: Vec<_> = self.failed_terms.iter().map(|failed| failed.event(binding)).collect();
        match &self.outcome {
            Outcome::Place(targets) if written.is_ok() => {
                let message = success_message(binding, targets);
                events.push(ScheduleEvent {
                    succeeded: true,
                    message,
                });
            }
            Outcome::Place(_) | Outcome::Clear(_) => events.push(ScheduleEvent::failed(&verdict.message)),
            // Errors of affinity groups are already reported individually.
            Outcome::Keep(error) if self.failed_terms.is_empty() => {
                events.push(ScheduleEvent::failed(error.to_string()));
            }
            Outcome::Keep(_) | Outcome::Nothing => {}
        }
        Conclusion {
            verdict,
            events,
            affinity_name: self.affinity_name.clone(),
        }
    }

    /// Returns an earlier retry if a plugin faulted: a fault excludes clusters from a result, and the recovery of the
    /// plugin is not a change that triggers another attempt.
    fn retry_after_faults(&self, retry: Retry) -> Retry {
        match retry {
            _ if self.diagnostics.faults.is_empty() => retry,
            Retry::Forget if self.error().is_none() => Retry::Unschedulable,
            Retry::Forget | Retry::Unschedulable | Retry::Backoff => Retry::Backoff,
        }
    }
}

/// Returns the event for a binding that is being deleted and is no longer scheduled.
pub fn deleting_event(binding: &Binding) -> ScheduleEvent {
    let kind = if binding.namespace.is_some() {
        "resourceBinding"
    } else {
        "clusterResourceBinding"
    };
    ScheduleEvent::failed(format!("skip schedule deleting {kind}: {}", binding.key()))
}

impl FailedTerm {
    fn event(&self, binding: &Binding) -> ScheduleEvent {
        let Self { index, error } = self;
        let (kind, key) = (binding.kind(), binding.key());
        // Karmada has the same misspelling.
        let message = format!("failed to schedule {kind}({key}) with clusterAffiliates index({index}): {error}");
        ScheduleEvent::failed(message)
    }
}

/// Returns Karmada's success message, which has no colon for a ClusterResourceBinding.
fn success_message(binding: &Binding, targets: &[TargetCluster]) -> String {
    let colon = if binding.namespace.is_some() { ":" } else { "" };
    let targets: Vec<_> = targets
        .iter()
        .map(|target| format!("{}:{}", target.name, target.replicas))
        .collect();
    format!(
        "Binding has been scheduled successfully. Result{colon} {{{}}}",
        targets.join(", ")
    )
}

impl Conclusion {
    /// Applies the conclusion to the status of a binding whose `generation` was scheduled. Returns true if the status
    /// changed. A failure changes neither the observed generation nor the last scheduling time.
    pub fn apply(&self, status: &mut BindingStatus, generation: i64, now: Time) -> bool {
        let mut changed = false;
        if let Some(name) = &self.affinity_name
            && status.scheduler_observed_affinity_name != *name
        {
            status.scheduler_observed_affinity_name.clone_from(name);
            changed = true;
        }
        let Verdict {
            status: scheduled,
            reason,
            message,
            ..
        } = &self.verdict;
        if *scheduled == crate::model::ConditionStatus::True {
            status.scheduler_observed_generation = generation;
            status.last_scheduled_time = Some(now.truncated());
            changed = true;
        }
        let condition = Condition::new("Scheduled", *scheduled, reason, message, now);
        set_condition(&mut status.conditions, condition) || changed
    }
}
