//! How many replicas each selected cluster gets (Karmada: `core/assignment.go`).

use super::ScheduleError;
use super::select::Candidate;
use super::webster::{self, Party};
use crate::decide::affinity;
use crate::model::{
    Binding, Placement, ReplicaDivisionPreference, ReplicaScheduling, ReplicaSchedulingType, TargetCluster,
};

/// The scheduling result for the selected clusters.
pub(super) fn assign(
    binding: &Binding,
    placement: &Placement,
    selected: &[Candidate],
) -> Result<Vec<TargetCluster>, ScheduleError> {
    if selected.is_empty() {
        return Err(ScheduleError::Assign("no clusters available to schedule".to_owned()));
    }
    let spec = &binding.spec;
    let counts_replicas = spec.replicas > 0 || spec.replica_requirements.is_some();
    if !counts_replicas || spec.components.len() > 1 {
        return Ok(selected.iter().map(|candidate| TargetCluster::new(&candidate.cluster.name, 0)).collect());
    }
    let mut targets = match &placement.replica_scheduling {
        None => duplicated(binding, selected),
        Some(scheduling) => match scheduling.replica_scheduling_type {
            ReplicaSchedulingType::Duplicated => duplicated(binding, selected),
            ReplicaSchedulingType::Divided => divided(binding, scheduling, selected)?,
        },
    };
    targets.retain(|target| target.replicas > 0);
    Ok(targets)
}

fn duplicated(binding: &Binding, selected: &[Candidate]) -> Vec<TargetCluster> {
    selected.iter().map(|candidate| TargetCluster::new(&candidate.cluster.name, binding.spec.replicas)).collect()
}

fn divided(
    binding: &Binding,
    scheduling: &ReplicaScheduling,
    selected: &[Candidate],
) -> Result<Vec<TargetCluster>, ScheduleError> {
    let preference = scheduling.weight_preference.as_ref();
    match scheduling.replica_division_preference {
        Some(ReplicaDivisionPreference::Weighted) if preference.is_none_or(|p| p.dynamic_weight.is_empty()) => {
            Ok(by_static_weight(binding, scheduling, selected))
        }
        Some(ReplicaDivisionPreference::Weighted) => Err(ScheduleError::Unsupported("dynamic weights".to_owned())),
        Some(ReplicaDivisionPreference::Aggregated) => {
            Err(ScheduleError::Unsupported("the division preference Aggregated".to_owned()))
        }
        None => Err(ScheduleError::Assign(
            "unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: , \
             please try another scheduling strategy"
                .to_owned(),
        )),
    }
}

/// Previous result and capacity play no part; the result is in order of name.
fn by_static_weight(binding: &Binding, scheduling: &ReplicaScheduling, selected: &[Candidate]) -> Vec<TargetCluster> {
    let equal = |candidate: &Candidate| Party { name: candidate.cluster.name.clone(), votes: 1, seats: 0 };
    let weighted = |candidate: &Candidate| {
        let rules = scheduling.weight_preference.iter().flat_map(|preference| &preference.static_weight_list);
        let matching = rules.filter(|rule| affinity::matches(&rule.target_cluster, &candidate.cluster));
        let votes = matching.map(|rule| rule.weight).max().filter(|weight| *weight != 0)?;
        Some(Party { name: candidate.cluster.name.clone(), votes, seats: 0 })
    };
    let mut parties: Vec<Party> = match &scheduling.weight_preference {
        None => selected.iter().map(equal).collect(),
        Some(_) => selected.iter().filter_map(weighted).collect(),
    };
    if parties.iter().fold(0_i64, |sum, party| sum.wrapping_add(party.votes)) == 0 {
        parties = selected.iter().map(equal).collect();
    }
    let uid = &binding.spec.resource.uid;
    let parties = webster::allocate(binding.spec.replicas, parties, uid);
    parties.into_iter().map(|party| TargetCluster::new(party.name, party.seats)).collect()
}
