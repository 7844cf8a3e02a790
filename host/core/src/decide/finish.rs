//! When a graceful eviction task may end, that is, when the old copy may go.

use crate::call::EvictionCheckCall;
use crate::combine::{self, Because, Remarks};
use crate::model::{Binding, GracefulEvictionTask};
use crate::policy::PolicySet;
use crate::time::Time;

/// What to do about the tasks of one binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishPlan {
    /// The complete new list; absent when nothing changes.
    pub tasks: Option<Vec<GracefulEvictionTask>>,
    /// Tasks that end, each with who allowed it.
    pub released: Vec<(GracefulEvictionTask, Because)>,
    /// Tasks that stay, each with who holds it.
    pub held: Vec<(GracefulEvictionTask, Because)>,
    /// When to decide again if nothing changes before, in milliseconds.
    pub again_after_ms: Option<i64>,
    /// Eviction checks that did not answer; each of them holds.
    pub remarks: Remarks,
}

/// Decides about the tasks of one binding (Karmada: `pkg/controllers/gracefuleviction/evictiontask.go`, with the
/// health rule behind the plugin port). In this order: a new task is only stamped; a person's word counts
/// (`suppressDeletion`); then the grace period; then the eviction checks.
pub fn decide(binding: &Binding, policies: &PolicySet, default_timeout_s: i64, now: Time) -> FinishPlan {
    let mut plan = FinishPlan::default();
    let mut kept = Vec::new();
    for task in &binding.spec.graceful_eviction_tasks {
        let timeout_s = task.grace_period_seconds.map_or(default_timeout_s, i64::from);
        let Some(created) = task.creation_timestamp else {
            kept.push(GracefulEvictionTask { creation_timestamp: Some(now.truncated()), ..task.clone() });
            again(&mut plan, timeout_s * 1000);
            continue;
        };
        let left_ms = created.plus_seconds(timeout_s).millis_since(now);
        match assess(binding, policies, task, left_ms, now, &mut plan) {
            Verdict::Release(because) => plan.released.push((task.clone(), because)),
            Verdict::Hold(because) => {
                plan.held.push((task.clone(), because));
                kept.push(task.clone());
            }
        }
    }
    if kept != binding.spec.graceful_eviction_tasks {
        plan.tasks = Some(kept);
    }
    plan
}

enum Verdict {
    Release(Because),
    Hold(Because),
}

fn assess(
    binding: &Binding,
    policies: &PolicySet,
    task: &GracefulEvictionTask,
    left_ms: i64,
    now: Time,
    plan: &mut FinishPlan,
) -> Verdict {
    match task.suppress_deletion {
        Some(true) => {
            let message = "suppressDeletion is true: kept until a person confirms";
            return Verdict::Hold(Because::rule("DeletionSuppressed", message));
        }
        Some(false) => {
            let message = "suppressDeletion is false: a person confirmed that the old copy may go";
            return Verdict::Release(Because::rule("DeletionConfirmed", message));
        }
        None => {}
    }
    if left_ms < 0 {
        let message = "the grace period is over; the old copy goes with or without a healthy replacement";
        return Verdict::Release(Because::rule("GracePeriodExceeded", message));
    }
    let observed = &binding.status.aggregated_status;
    let outcome = combine::eviction_check(policies, EvictionCheckCall { binding, task, observed, now });
    plan.remarks.extend(outcome.remarks);
    if outcome.released {
        return Verdict::Release(outcome.because);
    }
    again(plan, left_ms);
    if let Some(recheck_after_s) = outcome.recheck_after_s {
        again(plan, i64::from(recheck_after_s) * 1000);
    }
    Verdict::Hold(outcome.because)
}

/// The grace period is over only strictly after its last moment, so look one millisecond later.
fn again(plan: &mut FinishPlan, after_ms: i64) {
    let after_ms = after_ms.max(0) + 1;
    plan.again_after_ms = Some(plan.again_after_ms.map_or(after_ms, |earlier| earlier.min(after_ms)));
}
