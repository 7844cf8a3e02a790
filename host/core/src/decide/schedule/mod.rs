//! Where a binding runs: filter → score → estimate → select → assign, filters and scores through the plugin port.
//!
//! Decision for decision Karmada's (`pkg/scheduler`), in the order in which it happens:
//!
//! 1. [`trigger`](fn@trigger): does the binding need scheduling at all?
//! 2. [`decide`]: the groups of the placement, one attempt each.
//! 3. [`SchedulePlan::conclude`]: once the result was written, or the write was refused: condition, events, retry.
//!
//! What Karmada leaves to chance (maps of Go, order of plugins) has one answer here, one of those that Karmada
//! could give. Start reading at [`decide`], then `attempt`.

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
mod options;
mod plan;
mod plugins;
mod region;
mod rejections;
mod select;
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
pub use assign::Strategy;
use attempt::Told;
use capacity::{AccurateEstimates, AssumedWorkload};
pub use divide::{Mode, Packing};
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
pub use standing::{PRODUCER_SCHEDULER, REASON_RESCHEDULED};
pub use trigger::{Trigger, placement_changed, reschedule_required, trigger};

/// What scheduling one binding depends on.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingSnapshot<'a> {
    /// The binding.
    pub binding: &'a Binding,
    /// Every cluster.
    pub clusters: &'a Arc<ClusterSnapshot>,
    /// Other bindings of the same groups of workload affinity.
    pub peers: &'a [Peer],
    /// What accurate estimators answered; absent when there are none.
    pub accurate: Option<&'a AccurateEstimates>,
    /// What was placed on each cluster a moment ago.
    pub assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
    /// Settings.
    pub options: &'a SchedulerOptions,
    /// The time to reason with.
    pub now: Time,
}

/// Schedules one binding, whatever its trigger.
pub fn decide(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet) -> SchedulePlan {
    plan(snapshot, policies, Told::default())
}

/// The same decision, and how it came about. Costs more: everything that was looked at is named.
pub fn decide_explained(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet) -> SchedulePlan {
    plan(snapshot, policies, Told { explanation: Some(ScheduleExplanation::default()), ..Told::default() })
}

fn plan(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet, mut told: Told) -> SchedulePlan {
    let (outcome, affinity_name, failed_terms) = match &snapshot.binding.spec.placement {
        None => (Outcome::Keep(ScheduleError::NoPlacement), None, Vec::new()),
        Some(placement) => by_placement(snapshot, placement, policies, &mut told),
    };
    let Told { rejections, remarks, explanation } = told;
    let (outcome, displaced) = standing::keep(snapshot, outcome);
    SchedulePlan { outcome, displaced, affinity_name, failed_terms, rejections, explanation, remarks }
}

/// The outcome, the group that it came from, and the groups that failed before.
type Decided = (Outcome, Option<String>, Vec<FailedTerm>);

/// A placement with groups is walked group by group, even if it has the other affinity too.
fn by_placement(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    told: &mut Told,
) -> Decided {
    if let Some(terms) = &placement.cluster_affinities {
        return by_terms(snapshot, placement, terms, policies, told);
    }
    let result = attempt::attempt(snapshot, placement, policies, told);
    (result.map_or_else(unplaced, Outcome::Place), None, Vec::new())
}

/// What an error does to the result.
fn unplaced(error: ScheduleError) -> Outcome {
    if matches!(error, ScheduleError::NoClusterFit(_)) { Outcome::Clear(error) } else { Outcome::Keep(error) }
}

/// Groups are tried from the observed one onwards, all-or-nothing, whatever the error; if all fail, the first
/// one's error counts. Only a rescheduling goes back to the first group
/// (Karmada: `scheduler.go:scheduleResourceBindingWithClusterAffinities`).
fn by_terms(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    terms: &[ClusterAffinityTerm],
    policies: &PolicySet,
    told: &mut Told,
) -> Decided {
    let observed = &snapshot.binding.status.scheduler_observed_affinity_name;
    let first = if reschedule_required(snapshot.binding) {
        0
    } else {
        terms.iter().position(|term| term.affinity_name == *observed).unwrap_or(0)
    };
    let mut failed_terms = Vec::new();
    for (index, term) in terms.iter().enumerate().skip(first) {
        // Filters find the group under evaluation where they find the observed one.
        let mut binding;
        let evaluated = if term.affinity_name == *observed {
            snapshot
        } else {
            binding = snapshot.binding.clone();
            binding.status.scheduler_observed_affinity_name.clone_from(&term.affinity_name);
            SchedulingSnapshot { binding: &binding, ..snapshot }
        };
        let result = attempt::attempt(evaluated, placement, policies, told);
        match result {
            Ok(targets) => return (Outcome::Place(targets), Some(term.affinity_name.clone()), failed_terms),
            Err(error) => failed_terms.push(FailedTerm { index, error }),
        }
    }
    let outcome = failed_terms.first().map_or(Outcome::Nothing, |failed| unplaced(failed.error.clone()));
    (outcome, None, failed_terms)
}
