//! Graceful removal of copies from clusters that are not in a new scheduling result.
//!
//! Karmada deletes such a copy immediately. Here it gets a graceful eviction task like every other evicted copy. A
//! result is not cleared while copies run on existing clusters. A filter that rejects all clusters, for example a
//! faulty plugin, therefore removes no workload.
//!
//! Explicit user requests are exempt: a new placement and a smaller number of replicas take effect immediately, and a
//! cluster that is being removed takes its copies with it. Copies that only shrink are not covered, because the API
//! has no task for a part of a copy.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::trigger::{Trigger, trigger};
use super::{Outcome, SchedulingSnapshot};
use crate::decide::eviction::taint_based::graceful_evict;
use crate::decide::reasons::{PRODUCER_SCHEDULER, REASON_RESCHEDULED};
use crate::model::{BindingSpec, GracefulEvictionTask, PurgeMode, ReplicaSchedulingType, TargetCluster};

/// Replaces an outcome that would delete copies. Returns the tasks that evict them instead.
pub(super) fn keep(snapshot: SchedulingSnapshot<'_>, outcome: Outcome) -> (Outcome, Vec<GracefulEvictionTask>) {
    let SchedulingSnapshot {
        binding, options, now, ..
    } = snapshot;
    let given_up = match &outcome {
        Outcome::Place(targets) => left(&binding.spec.clusters, targets),
        Outcome::Clear(_) => binding.spec.clusters.iter().collect(),
        Outcome::Keep(_) | Outcome::Nothing => Vec::new(),
    };
    let given_up: Vec<_> = given_up.into_iter().filter(|target| stands(snapshot, target)).collect();
    if !options.evicts_standing || given_up.is_empty() || is_requested(snapshot) {
        return (outcome, Vec::new());
    }
    if let Outcome::Clear(error) = outcome {
        return (Outcome::Keep(error), Vec::new());
    }
    let mut spec = BindingSpec {
        clusters: binding.spec.clusters.clone(),
        ..BindingSpec::default()
    };
    spec.graceful_eviction_tasks
        .clone_from(&binding.spec.graceful_eviction_tasks);
    for target in given_up {
        let task = GracefulEvictionTask {
            purge_mode: Some(PurgeMode::Gracefully),
            reason: REASON_RESCHEDULED.to_owned(),
            producer: PRODUCER_SCHEDULER.to_owned(),
            creation_timestamp: Some(now.truncated()),
            ..GracefulEvictionTask::default()
        };
        graceful_evict(&mut spec, &target.name, task);
    }
    let tasks = spec
        .graceful_eviction_tasks
        .split_off(binding.spec.graceful_eviction_tasks.len());
    (outcome, tasks)
}

/// Returns the targets that are not in a new result. Most results have the same clusters in the same order.
fn left<'a>(targets: &'a [TargetCluster], chosen: &[TargetCluster]) -> Vec<&'a TargetCluster> {
    let is_same = |(target, chosen): (&TargetCluster, &TargetCluster)| target.name == chosen.name;
    let same = targets.iter().zip(chosen).take_while(|pair| is_same(*pair)).count();
    let rest = targets.get(same..).unwrap_or_default();
    if rest.is_empty() {
        return Vec::new();
    }
    let names: HashSet<&str, FixedState> = chosen.iter().map(|chosen| chosen.name.as_str()).collect();
    rest.iter()
        .filter(|target| !names.contains(target.name.as_str()))
        .collect()
}

/// Returns true if the target has a copy on a cluster that is not being removed.
fn stands(snapshot: SchedulingSnapshot<'_>, target: &TargetCluster) -> bool {
    let SchedulingSnapshot { binding, clusters, .. } = snapshot;
    let cluster = clusters.row(&target.name).and_then(|row| clusters.cluster(row));
    let has_copy = target.replicas > 0 || !binding.spec.is_workload() || !binding.spec.components.is_empty();
    has_copy && cluster.is_some_and(|cluster| !cluster.is_terminating())
}

/// Returns true if a user or a policy requested the change that triggered the scheduling.
fn is_requested(snapshot: SchedulingSnapshot<'_>) -> bool {
    let SchedulingSnapshot {
        binding,
        clusters,
        options,
        ..
    } = snapshot;
    let Some(placement) = &binding.spec.placement else {
        return false;
    };
    match trigger(binding, placement, clusters, options) {
        Some(Trigger::PlacementChanged) => true,
        Some(Trigger::ReplicasChanged) => {
            let divided = placement.replica_scheduling_type() == ReplicaSchedulingType::Divided;
            let assigned: i64 = binding
                .spec
                .clusters
                .iter()
                .map(|target| i64::from(target.replicas))
                .sum();
            divided && assigned > i64::from(binding.spec.replicas)
        }
        Some(Trigger::RescheduleRequested | Trigger::Always | Trigger::TargetTerminating) | None => false,
    }
}
