//! One attempt: filter → score → estimate → select → assign (Karmada: `core/generic_scheduler.go:Schedule`).

use std::sync::Arc;

use super::assign::{self, Assignment};
use super::capacity::{self, Availability};
use super::components;
use super::explanation::{DivisionChoice, Explanation};
use super::select::{self, Selection};
use super::{ScheduleError, SchedulingSnapshot, candidate};
use crate::call::{FilterCall, ScoreCall};
use crate::combine::{self, Remarks};
use crate::model::{Placement, ReplicaSchedulingType, TargetCluster};
use crate::policy::PolicySet;
use crate::snapshot::Candidates;

/// What an attempt tells besides its result.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) explanation: Explanation,
    pub(super) remarks: Remarks,
}

/// Schedules onto the clusters of one group, or of the whole placement when it has none.
pub(super) fn attempt(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    told: &mut Told,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    let SchedulingSnapshot { binding, clusters, options, now, .. } = snapshot;
    let spec = &binding.spec;
    if spec.replicas < 0 {
        return Err(ScheduleError::BadInput(format!("spec.replicas is {}, it must be 0 or more", spec.replicas)));
    }
    let feasible = filter(snapshot, policies, told);
    if feasible.is_empty() {
        return Err(ScheduleError::NoClusterFit(told.explanation.no_cluster_fits()));
    }
    let feasible = Candidates::of_rows(clusters, &feasible);
    let scored = combine::score(policies, ScoreCall { binding, clusters: feasible, now });
    told.remarks.extend(scored.remarks);
    told.explanation.scores = scored.by_policy;
    let (assumed, accurate) = (snapshot.assumed, snapshot.accurate);
    let available = capacity::available(&Availability { spec, placement, options, assumed, accurate }, feasible)?;
    let candidates = candidate::rank(binding, placement, feasible, &scored.totals, &available);
    told.explanation.feasible = feasible.rows().to_vec();
    told.explanation.ranked.clone_from(&candidates);

    let needed = match placement.replica_scheduling_type() {
        ReplicaSchedulingType::Duplicated => None,
        ReplicaSchedulingType::Divided if components::placed_as_sets(spec, placement, options) => Some(1),
        ReplicaSchedulingType::Divided => Some(i64::from(spec.replicas)),
    };
    let selection = Selection { placement, replicas: spec.replicas, needed, snapshot: clusters };
    let (selected, regions) = select::select(&selection, candidates)?;
    told.explanation.regions = regions;
    told.explanation.selected = selected.iter().map(|candidate| candidate.row).collect();
    told.explanation.division = assign::strategy(binding, placement).ok().map(|strategy| DivisionChoice {
        strategy,
        mode: assign::mode(binding),
        replicas: spec.replicas,
    });
    assign::assign(&Assignment { binding, placement, snapshot: clusters, options, selected: &selected })
}

/// Rows of the clusters that every filter lets pass. Terminating ones are left out without a reason; whether a
/// cluster is ready does not matter here, its taints do.
fn filter(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet, told: &mut Told) -> Vec<u32> {
    let SchedulingSnapshot { binding, clusters, peers, now, .. } = snapshot;
    let present = clusters.present();
    let filtered = combine::filter(policies, FilterCall { binding, clusters: present, peers, now });
    let passed = present.rows().iter().zip(&filtered.rejections).filter(|(_, rejection)| rejection.is_none());
    let feasible = passed.map(|(row, _)| *row).collect();
    told.remarks.extend(filtered.remarks);
    told.explanation.clusters = Arc::clone(clusters);
    told.explanation.asked = present.rows().to_vec();
    told.explanation.rejections = filtered.rejections;
    feasible
}
