//! Check if a binding needs scheduling (Karmada: `scheduler.go:doScheduleBinding`).

use super::options::SchedulerOptions;
use crate::model::{Binding, Placement, ReplicaSchedulingType};
use crate::names::keys;
use crate::snapshot::ClusterSnapshot;

/// Reason for scheduling a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The placement differs from the last applied one.
    PlacementChanged,
    /// The assigned replicas do not add up to the desired ones.
    ReplicasChanged,
    /// A rescheduling was requested after the last scheduling.
    RescheduleRequested,
    /// Duplicated workloads and non-workloads are scheduled every time.
    Always,
    /// A target cluster is being removed.
    TargetTerminating,
}

impl Trigger {
    /// Returns a human-readable description.
    pub fn describe(self) -> &'static str {
        match self {
            Self::PlacementChanged => "the placement changed",
            Self::ReplicasChanged => "the assigned replicas do not add up to the desired ones",
            Self::RescheduleRequested => "a rescheduling was requested",
            Self::Always => "duplicated workloads and non-workloads are checked on every change",
            Self::TargetTerminating => "a target cluster is being removed",
        }
    }
}

/// Returns the first trigger that applies, if any (Karmada: `scheduler.go:doScheduleBinding`).
pub fn trigger(
    binding: &Binding,
    placement: &Placement,
    clusters: &ClusterSnapshot,
    options: &SchedulerOptions,
) -> Option<Trigger> {
    if is_placement_changed(binding, placement) {
        return Some(Trigger::PlacementChanged);
    }
    if replicas_changed(binding, placement, options) {
        return Some(Trigger::ReplicasChanged);
    }
    if reschedule_required(binding) {
        return Some(Trigger::RescheduleRequested);
    }
    let duplicated = placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated;
    if duplicated || !binding.spec.is_workload() {
        return Some(Trigger::Always);
    }
    let terminating = |name: &str| {
        let cluster = clusters.row(name).and_then(|row| clusters.cluster(row));
        cluster.is_some_and(|cluster| cluster.is_terminating())
    };
    binding
        .spec
        .clusters
        .iter()
        .any(|target| terminating(&target.name))
        .then_some(Trigger::TargetTerminating)
}

/// Returns true if a rescheduling was requested after the last scheduling.
pub fn reschedule_required(binding: &Binding) -> bool {
    match (binding.spec.reschedule_triggered_at, binding.status.last_scheduled_time) {
        (Some(triggered), Some(scheduled)) => triggered > scheduled,
        _ => false,
    }
}

/// Compares the placement with the annotation that has the placement of the last scheduling.
fn is_placement_changed(binding: &Binding, placement: &Placement) -> bool {
    let applied = binding
        .annotations
        .get(keys::APPLIED_PLACEMENT)
        .map_or("", String::as_str);
    placement_changed(placement, applied, &binding.status.scheduler_observed_affinity_name)
}

/// Returns true if a placement requires scheduling. `applied` is the placement of the last scheduling as JSON text:
/// empty counts as changed, malformed text as unchanged. While a group is observed, changes of other groups do not
/// count (Karmada: `helper.go:placementChanged`).
pub fn placement_changed(placement: &Placement, applied: &str, observed: &str) -> bool {
    if applied.is_empty() {
        return true;
    }
    let Ok(applied) = Placement::from_json(applied) else {
        return false;
    };
    if applied == *placement {
        return false;
    }
    let rest_differs = applied.cluster_affinity != placement.cluster_affinity
        || applied.cluster_tolerations != placement.cluster_tolerations
        || applied.spread_constraints != placement.spread_constraints
        || applied.replica_scheduling != placement.replica_scheduling;
    if rest_differs || observed.is_empty() {
        return true;
    }
    let term = |placement: &Placement| {
        let terms = placement.cluster_affinities.as_deref().unwrap_or_default();
        terms.iter().find(|term| term.affinity_name == observed).cloned()
    };
    match (term(&applied), term(placement)) {
        (Some(before), Some(after)) => before != after,
        _ => true,
    }
}

/// Returns true if the assigned replicas are outdated (Karmada: `pkg/util/binding.go:IsBindingReplicasChanged`).
fn replicas_changed(binding: &Binding, placement: &Placement, options: &SchedulerOptions) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else {
        return false;
    };
    let targets = &binding.spec.clusters;
    if options.multiple_pod_templates && !binding.spec.components.is_empty() && targets.is_empty() {
        return true;
    }
    match scheduling.replica_scheduling_type {
        ReplicaSchedulingType::Duplicated => targets.iter().any(|target| target.replicas != binding.spec.replicas),
        ReplicaSchedulingType::Divided => {
            targets
                .iter()
                .fold(0_i32, |sum, target| sum.wrapping_add(target.replicas))
                != binding.spec.replicas
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_trigger_has_a_description_of_its_own() {
        let triggers = [
            Trigger::PlacementChanged,
            Trigger::ReplicasChanged,
            Trigger::RescheduleRequested,
            Trigger::Always,
            Trigger::TargetTerminating,
        ];
        let descriptions: BTreeSet<_> = triggers.iter().map(|trigger| trigger.describe()).collect();
        assert_eq!(descriptions.len(), triggers.len());
        assert!(!descriptions.contains(""));
    }
}
