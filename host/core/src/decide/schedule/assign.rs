//! Number of replicas for each selected cluster (Karmada: `core/common.go:AssignReplicas`, `core/assignment.go`).

use std::collections::BTreeSet;

use super::ScheduleError;
use super::candidate::Candidate;
use super::components;
use super::divide::{self, Division, Mode, Packing, Share, Strategy};
use super::explanation::DivisionExplanation;
use super::options::SchedulerOptions;
use super::trigger::reschedule_required;
use super::webster::TieBreak;
use crate::model::{Binding, Placement, ReplicaDivisionPreference, ReplicaSchedulingType, TargetCluster};
use crate::snapshot::ClusterSnapshot;

/// Inputs of an assignment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment<'a> {
    pub(super) binding: &'a Binding,
    pub(super) placement: &'a Placement,
    pub(super) snapshot: &'a ClusterSnapshot,
    pub(super) options: &'a SchedulerOptions,
    /// Selected clusters in selection order.
    pub(super) selected: &'a [Candidate],
    /// Rows of lost clusters, which keep their replicas and get no more.
    pub(super) lost: &'a BTreeSet<u32>,
}

/// Returns the strategy of a placement (Karmada: `core/assignment.go:newAssignState`).
pub(super) fn strategy(binding: &Binding, placement: &Placement) -> Result<Strategy, ScheduleError> {
    let spec = &binding.spec;
    if (spec.replicas <= 0 && spec.replica_requirements.is_none()) || spec.components.len() > 1 {
        return Ok(Strategy::Whole);
    }
    let Some(scheduling) = &placement.replica_scheduling else {
        return Ok(Strategy::Duplicated);
    };
    if scheduling.replica_scheduling_type == ReplicaSchedulingType::Duplicated {
        return Ok(Strategy::Duplicated);
    }
    let dynamic = || {
        scheduling
            .weight_preference
            .as_ref()
            .is_some_and(|weights| !weights.dynamic_weight.is_empty())
    };
    match scheduling.replica_division_preference {
        Some(ReplicaDivisionPreference::Aggregated) => Ok(Strategy::Dynamic(Packing::Aggregated)),
        Some(ReplicaDivisionPreference::Weighted) if dynamic() => Ok(Strategy::Dynamic(Packing::Spread)),
        Some(ReplicaDivisionPreference::Weighted) => Ok(Strategy::StaticWeight),
        None => Err(ScheduleError::Assign(
            "unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: , \
             please try another scheduling strategy"
                .to_owned(),
        )),
    }
}

/// Returns the mode of dynamic division.
fn mode(binding: &Binding) -> Mode {
    if reschedule_required(binding) {
        Mode::Fresh
    } else {
        Mode::Steady
    }
}

/// Returns an explanation of the assignment.
pub(super) fn explain(assignment: &Assignment<'_>) -> Option<DivisionExplanation> {
    let Assignment {
        binding,
        placement,
        selected,
        ..
    } = *assignment;
    let assigned = divide::sum(&scheduled(assignment, selected));
    let strategy = strategy(binding, placement).ok()?;
    Some(DivisionExplanation {
        strategy,
        mode: mode(binding),
        replicas: binding.spec.replicas,
        assigned,
    })
}

/// Returns the rows of the selected clusters with their static weights; `None` for other strategies.
pub(super) fn weights(assignment: &Assignment<'_>) -> impl Iterator<Item = (u32, Option<i64>)> {
    let fixed = match strategy(assignment.binding, assignment.placement) {
        Ok(Strategy::StaticWeight) => Some(static_weights(assignment, assignment.selected)),
        _ => None,
    };
    assignment.selected.iter().map(move |candidate| {
        let weight = |fixed: &Vec<(u32, i64)>| {
            fixed
                .iter()
                .find(|(row, _)| *row == candidate.row)
                .map_or(0, |(_, weight)| *weight)
        };
        (candidate.row, fixed.as_ref().map(weight))
    })
}

/// Returns the scheduling result.
pub(super) fn assign(assignment: &Assignment<'_>) -> Result<Vec<TargetCluster>, ScheduleError> {
    if assignment.selected.is_empty() {
        return Err(ScheduleError::Assign("no clusters available to schedule".to_owned()));
    }
    let strategy = strategy(assignment.binding, assignment.placement)?;
    if strategy == Strategy::Whole {
        return assign_whole(assignment);
    }
    let name = |row: u32| assignment.snapshot.name(row);
    let shares: Vec<_> = shares(assignment, strategy)?
        .into_iter()
        .filter(|share| share.replicas != 0)
        .collect();
    let mut targets: Vec<_> = shares
        .iter()
        .map(|share| TargetCluster::new(name(share.row), share.replicas))
        .collect();
    if assignment.options.empty_workload_propagation {
        let rows: BTreeSet<u32> = shares.iter().map(|share| share.row).collect();
        let missing = assignment
            .selected
            .iter()
            .filter(|candidate| !rows.contains(&candidate.row));
        targets.extend(missing.map(|candidate| TargetCluster::new(name(candidate.row), 0)));
    }
    Ok(targets)
}

/// Assigns the whole workload to every selected cluster.
fn assign_whole(assignment: &Assignment<'_>) -> Result<Vec<TargetCluster>, ScheduleError> {
    let Assignment {
        binding,
        placement,
        snapshot,
        options,
        selected,
        ..
    } = *assignment;
    let listed = if binding.spec.components.len() > 1 && components::placed_as_sets(&binding.spec, placement, options) {
        components::as_assigned(&components::parse(&binding.spec)?)
    } else {
        Vec::new()
    };
    let target = |candidate: &Candidate| TargetCluster {
        components: listed.clone(),
        ..TargetCluster::new(snapshot.name(candidate.row), 0)
    };
    Ok(selected.iter().map(target).collect())
}

fn shares(assignment: &Assignment<'_>, strategy: Strategy) -> Result<Vec<Share>, ScheduleError> {
    let replicas = assignment.binding.spec.replicas;
    if has_overflow(assignment) {
        return by_tiers(assignment, strategy, replicas);
    }
    divide(assignment, strategy, assignment.selected, replicas)
}

fn divide(
    assignment: &Assignment<'_>,
    strategy: Strategy,
    selected: &[Candidate],
    replicas: i32,
) -> Result<Vec<Share>, ScheduleError> {
    let ties = TieBreak::of_uid(&assignment.binding.spec.resource.uid);
    match strategy {
        Strategy::Duplicated | Strategy::Whole => Ok(selected
            .iter()
            .map(|candidate| Share {
                row: candidate.row,
                replicas,
            })
            .collect()),
        Strategy::StaticWeight => {
            let weights = static_weights(assignment, selected);
            let mut kept = Vec::new();
            if !assignment.lost.is_empty() {
                kept = scheduled(assignment, selected);
                kept.retain(|share| assignment.lost.contains(&share.row));
            }
            match replicas.checked_sub(divide::sum(&kept)) {
                Some(missing) if !kept.is_empty() && missing >= 0 => beside_lost(assignment, kept, missing, weights),
                _ => Ok(divide::dispense_by_row(replicas, weights, ties)),
            }
        }
        Strategy::Dynamic(packing) => {
            let scheduled = scheduled(assignment, selected);
            let mode = mode(assignment.binding);
            divide::divide(&Division {
                replicas,
                packing,
                mode,
                ties,
                selected,
                scheduled: &scheduled,
            })
        }
    }
}

/// Divides the missing replicas over the clusters that are not lost, by weight. Lost clusters keep theirs.
fn beside_lost(
    assignment: &Assignment<'_>,
    mut kept: Vec<Share>,
    missing: i32,
    mut weights: Vec<(u32, i64)>,
) -> Result<Vec<Share>, ScheduleError> {
    weights.retain(|(row, _)| !assignment.lost.contains(row));
    if weights.is_empty() && missing > 0 {
        let message = "Clusters available replicas are not enough to schedule.";
        return Err(ScheduleError::Unschedulable(message.to_owned()));
    }
    let ties = TieBreak::of_uid(&assignment.binding.spec.resource.uid);
    kept.extend(divide::dispense_by_row(missing, weights, ties));
    kept.sort_by_key(|share| share.row);
    Ok(kept)
}

/// Returns the previous result on the selected clusters.
fn scheduled(assignment: &Assignment<'_>, selected: &[Candidate]) -> Vec<Share> {
    let spec = &assignment.binding.spec;
    if spec.clusters.is_empty() {
        return Vec::new();
    }
    let rows: BTreeSet<u32> = selected.iter().map(|candidate| candidate.row).collect();
    let share = |target: &TargetCluster| {
        let row = assignment.snapshot.row(&target.name).filter(|row| rows.contains(row))?;
        Some(Share {
            row,
            replicas: target.replicas,
        })
    };
    spec.clusters.iter().filter_map(share).collect()
}

/// Returns the static weights. Previous result and capacity are ignored. A cluster that matches several rules gets
/// the largest weight. A cluster without weight is left out, unless all are without (Karmada:
/// `division_algorithm.go:getStaticWeightInfoList`).
fn static_weights(assignment: &Assignment<'_>, selected: &[Candidate]) -> Vec<(u32, i64)> {
    let scheduling = assignment.placement.replica_scheduling.as_ref();
    let preference = scheduling.and_then(|scheduling| scheduling.weight_preference.as_ref());
    let equal = || selected.iter().map(|candidate| (candidate.row, 1)).collect();
    let Some(preference) = preference else { return equal() };
    let mut weights = vec![0_i64; assignment.snapshot.len()];
    for rule in &preference.static_weight_list {
        let selected = assignment.snapshot.selected_by(&rule.target_cluster);
        for (weight, _) in weights.iter_mut().zip(selected).filter(|(_, selected)| *selected) {
            *weight = (*weight).max(rule.weight);
        }
    }
    let weight = |candidate: &Candidate| weights.get(candidate.row as usize).copied().unwrap_or(0);
    let weighted = |candidate: &Candidate| Some((candidate.row, weight(candidate))).filter(|(_, weight)| *weight > 0);
    let weights: Vec<_> = selected.iter().filter_map(weighted).collect();
    if weights.iter().fold(0_i64, |sum, (_, weight)| sum.wrapping_add(*weight)) == 0 {
        equal()
    } else {
        weights
    }
}

/// Returns true if the evaluated group has a list of overflow entries, even an empty one.
fn has_overflow(assignment: &Assignment<'_>) -> bool {
    let observed = &assignment.binding.status.scheduler_observed_affinity_name;
    let terms = assignment.placement.cluster_affinities.as_deref().unwrap_or_default();
    let term = terms.iter().find(|term| term.affinity_name == *observed);
    assignment.placement.cluster_affinity.is_none()
        && !observed.is_empty()
        && term.is_some_and(|term| {
            term.overflow_affinities
                .as_ref()
                .is_some_and(|entries| !entries.is_null())
        })
}

/// Assigns as many replicas to the group itself as it has capacity for, then to its overflow entries in order
/// (Karmada: `assignment.go:assignWorkloadReplicas`).
fn by_tiers(assignment: &Assignment<'_>, strategy: Strategy, replicas: i32) -> Result<Vec<Share>, ScheduleError> {
    let mut tiers: std::collections::BTreeMap<u32, Vec<Candidate>> = std::collections::BTreeMap::new();
    for candidate in assignment.selected {
        tiers.entry(candidate.overflow).or_default().push(*candidate);
    }
    let (mut shares, mut remaining) = (Vec::new(), replicas);
    for tier in tiers.values() {
        let room = tier
            .iter()
            .fold(0_i64, |sum, candidate| sum.wrapping_add(candidate.available));
        let replicas = i32::try_from(room.min(i64::from(remaining))).unwrap_or(0);
        if replicas <= 0 {
            continue;
        }
        shares.extend(divide(assignment, strategy, tier, replicas)?);
        remaining -= replicas;
        if remaining == 0 {
            break;
        }
    }
    if remaining > 0 {
        let message = "Clusters available replicas are not enough to schedule.";
        return Err(ScheduleError::Unschedulable(message.to_owned()));
    }
    Ok(shares)
}
