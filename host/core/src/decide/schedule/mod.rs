//! Scheduling of bindings: filter → score → estimate → select → assign, with filters and scores through the plugin
//! port.
//!
//! Equivalent to Karmada's scheduler (`pkg/scheduler`) for every decision, in this order:
//!
//! 1. [`trigger`](fn@trigger): determines if the binding needs scheduling.
//! 2. [`decide`]: makes one attempt for each affinity group of the placement.
//! 3. [`SchedulePlan::conclude`]: returns condition, events and retry after the result was written or the write
//!    failed.
//!
//! For nondeterministic steps of Karmada (Go maps, plugin order), this module has one fixed result that Karmada could
//! also produce. Start with [`decide`], then `attempt`.

mod assign;
mod attempt;
mod candidate;
pub mod capacity;
mod components;
mod divide;
mod error;
mod explanation;
mod gosort;
pub mod groups;
mod history;
mod lost;
mod options;
mod plan;
mod plugins;
mod region;
mod rejections;
mod select;
mod selection;
mod standing;
mod trigger;
pub mod webster;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call::Peer;
use crate::model::{Binding, ClusterAffinityTerm, Placement};
use crate::policy::PolicySet;
use crate::snapshot::ClusterSnapshot;
use crate::time::Time;
use attempt::AttemptOutput;
use capacity::{AccurateEstimates, AssumedWorkload};
pub use divide::{Mode, Packing, Strategy};
pub use error::{Retry, ScheduleError, Verdict, WriteError};
pub use explanation::{
    AttemptExplanation, CandidateExplanation, DivisionExplanation, ScheduleExplanation, SelectionRule,
};
pub use history::{EVICTION_HISTORY, blocked_until};
pub use options::{SchedulerOptions, backoff};
pub use plan::{Conclusion, FailedTerm, Outcome, ScheduleEvent, SchedulePlan, deleting_event};
pub use plugins::{IN_TREE, IN_TREE_WORKLOAD_AFFINITY, enabled_plugins};
pub use region::RegionChoice;
pub use rejections::Rejections;
pub use select::clusters_max;
pub use trigger::{Trigger, placement_changed, reschedule_required, trigger};

/// Inputs for scheduling one binding.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingSnapshot<'a> {
    /// Binding to schedule.
    pub binding: &'a Binding,
    /// All clusters.
    pub clusters: &'a Arc<ClusterSnapshot>,
    /// Other bindings in the same workload affinity groups.
    pub peers: &'a [Peer],
    /// Results of accurate estimators; absent if there are none.
    pub accurate: Option<&'a AccurateEstimates>,
    /// Workloads recently placed on each cluster and not yet visible in its status.
    pub assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
    /// Scheduler options.
    pub options: &'a SchedulerOptions,
    /// Evaluation time.
    pub now: Time,
}

/// Schedules one binding, regardless of its trigger.
pub fn decide(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet) -> SchedulePlan {
    plan(snapshot, policies, AttemptOutput::default())
}

/// Schedules one binding like [`decide`] and adds an explanation. Costs more, because all considered data is recorded
/// by name.
pub fn decide_explained(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet) -> SchedulePlan {
    plan(
        snapshot,
        policies,
        AttemptOutput {
            explanation: Some(ScheduleExplanation::default()),
            ..AttemptOutput::default()
        },
    )
}

fn plan(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet, mut output: AttemptOutput) -> SchedulePlan {
    let (outcome, affinity_name, failed_terms) = match &snapshot.binding.spec.placement {
        None => (Outcome::Keep(ScheduleError::NoPlacement), None, Vec::new()),
        Some(placement) => by_placement(snapshot, placement, policies, &mut output),
    };
    let AttemptOutput {
        rejections,
        diagnostics,
        explanation,
    } = output;
    let (outcome, displaced) = standing::keep(snapshot, outcome);
    SchedulePlan {
        outcome,
        displaced,
        affinity_name,
        failed_terms,
        rejections,
        explanation,
        diagnostics,
    }
}

/// Outcome, affinity group that it comes from, and groups that failed before.
type Decided = (Outcome, Option<String>, Vec<FailedTerm>);

/// Schedules by placement. `clusterAffinities` takes precedence over `clusterAffinity`.
fn by_placement(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    output: &mut AttemptOutput,
) -> Decided {
    if let Some(terms) = &placement.cluster_affinities {
        return by_terms(snapshot, placement, terms, policies, output);
    }
    let result = attempt::attempt(snapshot, placement, policies, output);
    (result.map_or_else(unplaced, Outcome::Place), None, Vec::new())
}

/// Converts an error to an outcome.
fn unplaced(error: ScheduleError) -> Outcome {
    if matches!(error, ScheduleError::NoClusterFit(_)) {
        Outcome::Clear(error)
    } else {
        Outcome::Keep(error)
    }
}

/// Tries the affinity groups in order, starting with the observed one; each must succeed completely. If all fail, the
/// error of the first one counts. Only a rescheduling restarts with the first group (Karmada:
/// `scheduler.go:scheduleResourceBindingWithClusterAffinities`).
fn by_terms(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    terms: &[ClusterAffinityTerm],
    policies: &PolicySet,
    output: &mut AttemptOutput,
) -> Decided {
    let observed = &snapshot.binding.status.scheduler_observed_affinity_name;
    let first = if reschedule_required(snapshot.binding) {
        0
    } else {
        terms
            .iter()
            .position(|term| term.affinity_name == *observed)
            .unwrap_or(0)
    };
    let mut failed_terms = Vec::new();
    for (index, term) in terms.iter().enumerate().skip(first) {
        // Filters read the evaluated group from the field of the observed group.
        let mut binding;
        let evaluated = if term.affinity_name == *observed {
            snapshot
        } else {
            binding = snapshot.binding.clone();
            binding
                .status
                .scheduler_observed_affinity_name
                .clone_from(&term.affinity_name);
            SchedulingSnapshot {
                binding: &binding,
                ..snapshot
            }
        };
        let result = attempt::attempt(evaluated, placement, policies, output);
        match result {
            Ok(targets) => return (Outcome::Place(targets), Some(term.affinity_name.clone()), failed_terms),
            Err(error) => failed_terms.push(FailedTerm { index, error }),
        }
    }
    let outcome = failed_terms
        .first()
        .map_or(Outcome::Nothing, |failed| unplaced(failed.error.clone()));
    (outcome, None, failed_terms)
}
