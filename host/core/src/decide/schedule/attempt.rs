//! One scheduling attempt: filter → score → estimate → select → assign (Karmada:
//! `core/generic_scheduler.go:Schedule`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::assign::{self, Assignment};
use super::capacity::{self, Availability};
use super::components;
use super::explanation::{AttemptExplanation, ScheduleExplanation};
use super::rejections::Rejections;
use super::select;
use super::selection::Selection;
use super::{ScheduleError, SchedulingSnapshot, candidate, lost};
use crate::call::{FilterCall, ScoreCall};
use crate::combine::{self, Diagnostics};
use crate::model::{Placement, ReplicaSchedulingType, TargetCluster};
use crate::policy::PolicySet;
use crate::snapshot::Candidates;

/// Additional results of an attempt.
#[derive(Debug, Default)]
pub(super) struct AttemptOutput {
    /// Rejections of the current attempt.
    pub(super) rejections: Rejections,
    pub(super) diagnostics: Diagnostics,
    /// Absent unless requested.
    pub(super) explanation: Option<ScheduleExplanation>,
}

impl AttemptOutput {
    /// Returns the explanation of the current attempt, if requested.
    fn attempt(&mut self) -> Option<&mut AttemptExplanation> {
        self.explanation.as_mut()?.attempts.last_mut()
    }
}

/// Schedules to the clusters of one affinity group, or of the whole placement without groups.
pub(super) fn attempt(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    output: &mut AttemptOutput,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    output.rejections = Rejections::default();
    if let Some(explanation) = &mut output.explanation {
        let group = &snapshot.binding.status.scheduler_observed_affinity_name;
        let affinity_name = placement.cluster_affinities.is_some().then(|| group.clone());
        explanation.attempts.push(AttemptExplanation {
            affinity_name,
            ..AttemptExplanation::default()
        });
    }
    let result = place(snapshot, placement, policies, output);
    if let Some(attempt) = output
        .explanation
        .as_mut()
        .and_then(|explanation| explanation.attempts.last_mut())
    {
        attempt.conclude(&output.rejections, &result);
    }
    result
}

fn place(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    output: &mut AttemptOutput,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    let SchedulingSnapshot {
        binding,
        clusters,
        options,
        now,
        ..
    } = snapshot;
    let spec = &binding.spec;
    if spec.replicas < 0 {
        return Err(ScheduleError::BadInput(format!(
            "spec.replicas is {}, it must be 0 or more",
            spec.replicas
        )));
    }
    let lost = lost::rows(snapshot);
    let feasible = filter(snapshot, policies, &lost, output);
    if feasible.is_empty() {
        return Err(ScheduleError::NoClusterFit(output.rejections.no_cluster_fits()));
    }
    let feasible = Candidates::of_rows(clusters, &feasible);
    let scored = combine::score(
        policies,
        ScoreCall {
            binding,
            clusters: feasible,
            now,
        },
    );
    output.diagnostics.extend(scored.diagnostics);
    let (assumed, accurate) = (snapshot.assumed, snapshot.accurate);
    let mut estimates = capacity::available(
        &Availability {
            spec,
            placement,
            options,
            assumed,
            accurate,
        },
        feasible,
    )?;
    for (row, available) in feasible.rows().iter().zip(&mut estimates.available) {
        if lost.contains(row) {
            *available = 0;
        }
    }
    let candidates = candidate::rank(binding, placement, feasible, &scored.totals, &estimates.available);
    if let Some(attempt) = output.attempt() {
        attempt.note_candidates(feasible, &candidates, &scored.by_policy, &estimates);
        attempt.selection = select::rule(placement).ok().map(Into::into);
    }

    let needed = match placement.replica_scheduling_type() {
        ReplicaSchedulingType::Duplicated => None,
        ReplicaSchedulingType::Divided if components::placed_as_sets(spec, placement, options) => Some(1),
        ReplicaSchedulingType::Divided => Some(i64::from(spec.replicas)),
    };
    let selection = Selection {
        placement,
        replicas: spec.replicas,
        needed,
        snapshot: clusters,
    };
    let (selected, regions) = select::select(&selection, candidates)?;
    let assignment = Assignment {
        binding,
        placement,
        snapshot: clusters,
        options,
        selected: &selected,
        lost: &lost,
    };
    if let Some(attempt) = output.attempt() {
        attempt.regions = regions;
        attempt.division = assign::explain(&assignment);
        attempt.note_selected(assign::weights(&assignment).map(|(row, weight)| (clusters.name(row), weight)));
    }
    assign::assign(&assignment)
}

/// Returns the rows of the clusters that pass all filters. Terminating clusters are excluded without a reason.
/// `lost` has the clusters that an evicted workload must not move to; taints cover the rest.
fn filter(
    snapshot: SchedulingSnapshot<'_>,
    policies: &PolicySet,
    lost: &BTreeSet<u32>,
    output: &mut AttemptOutput,
) -> Vec<u32> {
    let SchedulingSnapshot {
        binding,
        clusters,
        peers,
        now,
        ..
    } = snapshot;
    let present = clusters.present();
    let mut filtered = combine::filter(
        policies,
        FilterCall {
            binding,
            clusters: present,
            peers,
            now,
        },
    );
    for ((row, cluster), rejection) in present.rows().iter().zip(present.iter()).zip(&mut filtered.rejections) {
        if rejection.is_none() && lost.contains(row) && !binding.spec.targets(&cluster.name) {
            *rejection = Some(Box::new(lost::rejection(cluster)));
        }
    }
    let passed = present
        .rows()
        .iter()
        .zip(&filtered.rejections)
        .filter(|(_, rejection)| rejection.is_none());
    let feasible = passed.map(|(row, _)| *row).collect();
    output.diagnostics.extend(filtered.diagnostics);
    let (clusters, asked) = (Arc::clone(clusters), present.rows().to_vec());
    output.rejections = Rejections {
        clusters,
        asked,
        rejections: filtered.rejections,
    };
    feasible
}
