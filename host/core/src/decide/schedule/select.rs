//! Selection among the feasible clusters (Karmada: `core/common.go:SelectClusters`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ScheduleError;
use super::candidate::Candidate;
use super::explanation::SelectionRule;
use super::region::{self, RegionChoice};
use super::selection::Selection;
use crate::model::{Placement, ReplicaDivisionPreference, ReplicaSchedulingType, SpreadConstraint};

/// Selection rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule<'a> {
    Everything,
    ByCluster(&'a SpreadConstraint),
    ByRegion(&'a SpreadConstraint, Option<&'a SpreadConstraint>),
}

/// Returns the selection rule of a placement.
pub(super) fn rule(placement: &Placement) -> Result<Rule<'_>, ScheduleError> {
    let constraints = &placement.spread_constraints;
    if constraints.is_empty() || ignores_spread_constraints(placement) {
        return Ok(Rule::Everything);
    }
    // If a field is repeated, the last constraint wins.
    let by = |field: &str| {
        constraints
            .iter()
            .rev()
            .find(|constraint| constraint.spread_by_field == field)
    };
    match (by("region"), by("cluster")) {
        (Some(region), cluster) => Ok(Rule::ByRegion(region, cluster)),
        (None, Some(cluster)) => Ok(Rule::ByCluster(cluster)),
        (None, None) => Err(ScheduleError::Select(
            "just support cluster and region spread constraint".to_owned(),
        )),
    }
}

/// Returns the maximum number of clusters by the spread constraints of a placement; `None` without a limit.
pub fn clusters_max(placement: &Placement) -> Option<usize> {
    let (Rule::ByCluster(cluster) | Rule::ByRegion(_, Some(cluster))) = rule(placement).ok()? else {
        return None;
    };
    usize::try_from(cluster.max_groups).ok().filter(|max| *max > 0)
}

impl From<Rule<'_>> for SelectionRule {
    fn from(rule: Rule<'_>) -> Self {
        match rule {
            Rule::Everything => Self::Everything,
            Rule::ByCluster(cluster) => Self::ByCluster {
                min: cluster.min_groups,
                max: cluster.max_groups,
            },
            Rule::ByRegion(region, cluster) => Self::ByRegion {
                regions_min: region.min_groups,
                regions_max: region.max_groups,
                clusters_min: cluster.map_or(0, |cluster| cluster.min_groups),
                clusters_max: cluster.map_or(0, |cluster| cluster.max_groups),
            },
        }
    }
}

/// Returns the clusters to use, in assignment order, and the regions that were considered.
pub(super) fn select(
    selection: &Selection<'_>,
    candidates: Vec<Candidate>,
) -> Result<(Vec<Candidate>, Vec<RegionChoice>), ScheduleError> {
    match rule(selection.placement)? {
        Rule::Everything => Ok((candidates, Vec::new())),
        Rule::ByCluster(constraint) => Ok((by_cluster(selection, constraint, candidates)?, Vec::new())),
        Rule::ByRegion(region, cluster) => region::select(selection, region, cluster, &candidates),
    }
}

/// Selects by cluster (Karmada: `select_clusters_by_cluster.go`).
fn by_cluster(
    selection: &Selection<'_>,
    constraint: &SpreadConstraint,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, ScheduleError> {
    if (candidates.len() as i64) < constraint.min_groups {
        let message = "the number of feasible clusters is less than spreadConstraint.MinGroups";
        return Err(ScheduleError::Select(message.to_owned()));
    }
    let need = candidates
        .len()
        .min(usize::try_from(constraint.max_groups).unwrap_or(0));
    let rest = candidates.split_off(need);
    match selection.needed {
        None => Ok(candidates),
        Some(needed) => cover(candidates, &rest, needed),
    }
}

/// Swaps in larger clusters, from the back, until the selection has capacity for all replicas. Scores are ignored, so
/// a cluster in use may be displaced, as in Karmada.
fn cover(mut keep: Vec<Candidate>, rest: &[Candidate], needed: i64) -> Result<Vec<Candidate>, ScheduleError> {
    let mut room = keep
        .iter()
        .fold(0_i64, |sum, candidate| sum.wrapping_add(candidate.available));
    // Largest first, ties in list order. A displaced cluster takes the place of its replacement.
    let mut others: BinaryHeap<_> = rest
        .iter()
        .enumerate()
        .map(|(place, candidate)| (candidate.available, Reverse(place), HeapCandidate(*candidate)))
        .collect();
    for kept in keep.iter_mut().rev() {
        if room >= needed {
            break;
        }
        let Some(mut largest) = others.peek_mut().filter(|largest| largest.0 > kept.available) else {
            continue;
        };
        room = room.wrapping_sub(kept.available).wrapping_add(largest.0);
        let displaced = std::mem::replace(kept, largest.2.0);
        largest.0 = displaced.available;
        largest.2 = HeapCandidate(displaced);
    }
    if keep.is_empty() || room < needed {
        let message = format!("no enough resource when selecting {} clusters", keep.len());
        return Err(ScheduleError::Select(message));
    }
    Ok(keep)
}

/// Candidate that does not affect the order of its heap.
#[derive(Clone, Copy, Debug)]
struct HeapCandidate(Candidate);

impl PartialEq for HeapCandidate {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HeapCandidate {}

impl PartialOrd for HeapCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeapCandidate {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// Returns true for static weights. `weightPreference: {}` respects spread constraints, although it divides the same
/// way.
pub(super) fn ignores_spread_constraints(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else {
        return false;
    };
    scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided
        && scheduling.replica_division_preference == Some(ReplicaDivisionPreference::Weighted)
        && scheduling
            .weight_preference
            .as_ref()
            .is_none_or(|preference| !preference.static_weight_list.is_empty() && preference.dynamic_weight.is_empty())
}
