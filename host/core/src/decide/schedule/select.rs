//! Which of the feasible clusters are used (Karmada: `core/common.go:SelectClusters`).

use std::cmp::Reverse;
use std::sync::Arc;

use super::ScheduleError;
use crate::model::{Binding, Cluster, Placement, ReplicaDivisionPreference, ReplicaSchedulingType};

/// A feasible cluster with its score.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The cluster.
    pub(super) cluster: Arc<Cluster>,
    /// Sum over the score plugins.
    pub(super) score: i64,
    /// Replicas that the cluster has room for, those of this binding included.
    pub(super) available: i64,
}

/// The clusters to use, in the order that assignment sees.
pub(super) fn select(
    binding: &Binding,
    placement: &Placement,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, ScheduleError> {
    candidates.sort_by(|a, b| {
        let key = |c: &Candidate| (Reverse(c.score), Reverse(c.available));
        key(a).cmp(&key(b)).then_with(|| a.cluster.name.cmp(&b.cluster.name))
    });
    let constraints = &placement.spread_constraints;
    if constraints.is_empty() || ignores_spread_constraints(placement) {
        return Ok(candidates);
    }
    if constraints.iter().any(|constraint| constraint.spread_by_field == "region") {
        return Err(ScheduleError::Unsupported("spread constraints by region".to_owned()));
    }
    // The last one wins when a field is repeated.
    let by_cluster = constraints.iter().rev().find(|constraint| constraint.spread_by_field == "cluster");
    let Some(constraint) = by_cluster else {
        return Err(ScheduleError::Select("just support cluster and region spread constraint".to_owned()));
    };
    if (candidates.len() as i64) < constraint.min_groups {
        let message = "the number of feasible clusters is less than spreadConstraint.MinGroups";
        return Err(ScheduleError::Select(message.to_owned()));
    }
    let need = candidates.len().min(usize::try_from(constraint.max_groups).unwrap_or(0));
    let rest = candidates.split_off(need);
    if placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated {
        return Ok(candidates);
    }
    cover_replicas(candidates, rest, i64::from(binding.spec.replicas))
}

/// Swaps larger clusters in, from the back, until the selection has room for all replicas. The score is not
/// looked at, so a cluster in use may be displaced, as in Karmada.
fn cover_replicas(
    mut keep: Vec<Candidate>,
    mut rest: Vec<Candidate>,
    replicas: i64,
) -> Result<Vec<Candidate>, ScheduleError> {
    let room = |keep: &[Candidate]| keep.iter().fold(0_i64, |sum, c| sum.wrapping_add(c.available));
    for position in (0..keep.len()).rev() {
        if room(&keep) >= replicas {
            break;
        }
        let mut largest: Option<usize> = None;
        for (index, candidate) in rest.iter().enumerate() {
            let to_beat = largest.map_or(keep[position].available, |best| rest[best].available);
            if candidate.available > to_beat {
                largest = Some(index);
            }
        }
        if let Some(index) = largest {
            std::mem::swap(&mut keep[position], &mut rest[index]);
        }
    }
    if keep.is_empty() || room(&keep) < replicas {
        let message = format!("no enough resource when selecting {} clusters", keep.len());
        return Err(ScheduleError::Select(message));
    }
    Ok(keep)
}

/// Static weights ignore spread constraints; `weightPreference: {}` does not, although it is divided the same way.
fn ignores_spread_constraints(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else { return false };
    scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided
        && scheduling.replica_division_preference == Some(ReplicaDivisionPreference::Weighted)
        && scheduling
            .weight_preference
            .as_ref()
            .is_none_or(|preference| !preference.static_weight_list.is_empty() && preference.dynamic_weight.is_empty())
}
