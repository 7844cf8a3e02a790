//! Cancellation of an eviction whose cluster recovered before the workload found another place, or of a failed
//! application that found none before its template changed or its grace period was over.
//!
//! Karmada's proposal of an optimized cluster failover describes this for a failed scheduling. It prevents the
//! deadlock of Karmada issue 3747: the scheduler must not use a cluster that the workload is leaving, and the
//! eviction waits for the scheduler. The source becomes a target in the same write that ends its task, so the old
//! copy is protected at all times.

use serde::{Deserialize, Serialize};

use super::result::{self, ScheduleResult, schedule_result};
use super::{GracefulEvictionSnapshot, failed_templates};
use crate::affinity;
use crate::combine::Attribution;
use crate::decide::eviction::taint_based::{self, Tolerance};
use crate::decide::reasons::{
    REASON_APPLICATION_FAILURE, REASON_DRAINED, REASON_FAILBACK, REASON_RESCHEDULED, REASON_TAINT_UNTOLERATED,
};
use crate::decide::schedule::{blocked_until, clusters_max};
use crate::model::{
    Binding, Cluster, GracefulEvictionTask, Health, Placement, PurgeMode, ReplicaSchedulingType, TaintEffect,
    TargetCluster,
};
use crate::time::Time;

/// Rule for canceling an eviction if its cluster recovers before the old copy is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestoreSource {
    /// Cancel it if at least part of the workload found no other place. An eviction with a complete new placement
    /// continues.
    #[default]
    WhenUnplaced,
    /// Never cancel it (Karmada).
    Never,
}

/// Returns the target that restores the cluster of a task, if its eviction is to be canceled. `targets` is the
/// current scheduling result.
pub(super) fn target(
    snapshot: &GracefulEvictionSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
) -> Option<(TargetCluster, Attribution)> {
    let is_on = snapshot.options.restore_source != RestoreSource::Never;
    if !is_on || !is_unplaced(snapshot.binding) || !is_recovered(snapshot, task) {
        return None;
    }
    let replicas = replicas(snapshot, targets, task, is_recovered)?;
    let message = "the cluster has recovered and the workload has no other target, so it stays";
    Some((
        TargetCluster::new(&task.from_cluster, replicas),
        Attribution::rule("SourceRecovered", message),
    ))
}

/// Returns the target that keeps a failed application on the cluster of a task whose grace period is over, if no other
/// cluster takes the application: without a target it could not recover, because no change of its template would reach a
/// member. Karmada deletes the old copy at that moment and creates it again.
pub(super) fn last_place(
    snapshot: &GracefulEvictionSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
) -> Option<(TargetCluster, Attribution)> {
    let message =
        "the grace period is over and no other cluster takes the application, so it stays and follows its template";
    failed_place(snapshot, targets, task, Attribution::rule("LastPlace", message))
}

/// Returns the target that brings a changed template to the cluster of a task, if the template of the failed application
/// changed after the task was made and no other cluster takes the application. The eviction rests on reports about the
/// former template, and nothing else would bring the new one to a member before the grace period is over.
pub(super) fn changed_template(
    snapshot: &GracefulEvictionSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
) -> Option<(TargetCluster, Attribution)> {
    if !failed_templates::is_changed(snapshot.binding, task) {
        return None;
    }
    let message = "the template changed after the application failed and no other cluster takes it, so the cluster \
                   gets the new template";
    failed_place(snapshot, targets, task, Attribution::rule("TemplateChanged", message))
}

/// Returns the target that keeps a failed application on the cluster of a task, if no other cluster takes it and the
/// placement allows one more cluster.
fn failed_place(
    snapshot: &GracefulEvictionSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
    attribution: Attribution,
) -> Option<(TargetCluster, Attribution)> {
    let GracefulEvictionSnapshot { binding, options, .. } = *snapshot;
    if !options.restores_failed_places() || !is_unplaced(binding) || !is_last_place(snapshot, task) {
        return None;
    }
    let placement = binding.spec.placement.as_ref();
    let is_full = |max| targets.len() >= max;
    if placement.and_then(clusters_max).is_some_and(is_full) {
        return None;
    }
    let replicas = replicas(snapshot, targets, task, is_last_place)?;
    Some((TargetCluster::new(&task.from_cluster, replicas), attribution))
}

fn is_last_place(snapshot: &GracefulEvictionSnapshot<'_>, task: &GracefulEvictionTask) -> bool {
    task.reason == REASON_APPLICATION_FAILURE && is_possible(snapshot, task)
}

/// Returns true if the scheduler decided, and at least part of the workload found no place.
fn is_unplaced(binding: &Binding) -> bool {
    match schedule_result(binding) {
        ScheduleResult::Present => false,
        ScheduleResult::Empty => true,
        ScheduleResult::NoneYet => result::failed(binding),
    }
}

/// Returns true if the workload could run on the cluster of a task again, and the cause of the eviction is gone.
fn is_recovered(snapshot: &GracefulEvictionSnapshot<'_>, task: &GracefulEvictionTask) -> bool {
    is_possible(snapshot, task) && cause_is_gone(snapshot.binding, task)
}

/// Returns true if the workload could run on the cluster of a task again. A `NoSchedule` taint concerns new copies
/// only, so a copy that still stands may stay beside one. A copy that was purged first has to be created anew.
fn is_possible(snapshot: &GracefulEvictionSnapshot<'_>, task: &GracefulEvictionTask) -> bool {
    let GracefulEvictionSnapshot {
        binding, sources, now, ..
    } = *snapshot;
    let source = sources.iter().find(|cluster| cluster.name == task.from_cluster);
    let may_run = match task.purge_mode {
        Some(PurgeMode::Directly) => may_host,
        _ => may_return,
    };
    source.is_some_and(|source| may_run(binding, source, now))
}

/// Returns true if the scheduler could choose the cluster for the workload, ignoring eviction tasks.
pub(crate) fn may_host(binding: &Binding, cluster: &Cluster, now: Time) -> bool {
    let Some(placement) = &binding.spec.placement else {
        return false;
    };
    let tolerations = &placement.cluster_tolerations;
    let scheduling = cluster
        .spec
        .taints
        .iter()
        .filter(|taint| taint.effect == TaintEffect::NoSchedule);
    may_return(binding, cluster, now)
        && scheduling
            .clone()
            .all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

/// Returns true if a copy that runs on the cluster may become a target again: it may stay there, and the workload did
/// not leave the cluster too recently.
fn may_return(binding: &Binding, cluster: &Cluster, now: Time) -> bool {
    let placement = binding.spec.placement.as_ref();
    placement.is_some_and(|placement| may_keep(placement, cluster, now))
        && !blocked_until(binding, now)
            .iter()
            .any(|(name, _)| *name == cluster.name)
}

/// Returns true if a copy that runs on the cluster may stay there: the cluster is ready and selected, and has no taint
/// that evicts the workload, now or later.
pub(super) fn may_keep(placement: &Placement, cluster: &Cluster, now: Time) -> bool {
    let stays = match taint_based::tolerance(&cluster.spec.taints, &placement.cluster_tolerations, now) {
        Tolerance::Untainted | Tolerance::Forever => true,
        Tolerance::For { .. } | Tolerance::Not(_) => false,
    };
    cluster.is_ready() && !cluster.is_terminating() && stays && is_selected(placement, cluster)
}

/// Returns true if the affinity, or one of the affinity groups, selects the cluster.
pub(crate) fn is_selected(placement: &Placement, cluster: &Cluster) -> bool {
    match &placement.cluster_affinities {
        Some(terms) => terms.iter().any(|term| affinity::group_matches(term, cluster)),
        None => placement
            .cluster_affinity
            .as_ref()
            .is_none_or(|affinity| affinity::matches(affinity, cluster)),
    }
}

/// Returns true if the cause of the eviction is gone. Taints are checked on the cluster itself. A failed application
/// has to be healthy again. A failback or a rescheduling had no cause on the cluster. The causes of other programs
/// are unknown.
fn cause_is_gone(binding: &Binding, task: &GracefulEvictionTask) -> bool {
    let reported = || {
        binding
            .status
            .aggregated_status
            .iter()
            .find(|item| item.cluster_name == task.from_cluster)
    };
    match task.reason.as_str() {
        REASON_TAINT_UNTOLERATED | REASON_DRAINED | REASON_FAILBACK | REASON_RESCHEDULED => true,
        REASON_APPLICATION_FAILURE => match reported() {
            Some(item) => item.health == Some(Health::Healthy),
            // A copy that was purged first cannot recover and can only be recreated; no other cluster is available
            // for that.
            None => task.purge_mode == Some(PurgeMode::Directly),
        },
        _ => false,
    }
}

/// Returns the replicas to restore: the former number, limited to the missing ones. A task of another program may have
/// no number; it gets the missing replicas that no other cluster had that `may_return` too. `None` if none is missing.
fn replicas(
    snapshot: &GracefulEvictionSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
    may_return: impl Fn(&GracefulEvictionSnapshot<'_>, &GracefulEvictionTask) -> bool,
) -> Option<i32> {
    let spec = &snapshot.binding.spec;
    let kind = spec.placement.as_ref().map(Placement::replica_scheduling_type);
    match kind {
        _ if !spec.is_workload() => Some(0),
        Some(ReplicaSchedulingType::Divided) => {
            let placed = targets.iter().map(|target| i64::from(target.replicas)).sum::<i64>();
            let missing = i64::from(spec.replicas) - placed;
            let others = || {
                let tasks = spec.graceful_eviction_tasks.iter();
                let returning = tasks.filter(|task| may_return(snapshot, task));
                returning.filter_map(|task| task.replicas).map(i64::from).sum::<i64>()
            };
            let restored = task
                .replicas
                .map_or_else(|| missing - others(), |former| missing.min(i64::from(former)));
            i32::try_from(restored).ok().filter(|restored| *restored > 0)
        }
        Some(ReplicaSchedulingType::Duplicated) | None => Some(spec.replicas),
    }
}
