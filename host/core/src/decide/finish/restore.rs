//! The way back: an eviction is called off when its cluster is well again and the workload found no other place.
//!
//! This is what Karmada's proposal of an optimized cluster failover describes for a scheduling that failed, and what
//! keeps clear of the deadlock of Karmada's issue 3747: the scheduler may not use a cluster that is being left, and
//! leaving waits for the scheduler. The source becomes a target in the write that ends its task, so that there is
//! no moment at which nothing holds the old copy.

use serde::{Deserialize, Serialize};

use super::FinishSnapshot;
use super::result::{self, ScheduleResult, schedule_result};
use crate::combine::Because;
use crate::decide::affinity;
use crate::decide::evict::{self, REASON_DRAINED, REASON_TAINT_UNTOLERATED, Tolerance};
use crate::decide::failback::REASON_FAILBACK;
use crate::decide::failover::REASON_APPLICATION_FAILURE;
use crate::decide::schedule::{REASON_RESCHEDULED, blocked_until};
use crate::model::{
    Binding, Cluster, GracefulEvictionTask, Health, Placement, PurgeMode, ReplicaSchedulingType, TaintEffect,
    TargetCluster,
};
use crate::mutation::{self, Mutation};
use crate::time::Time;

/// Whether an eviction is called off when its cluster is well again before anything replaces the old copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestoreSource {
    /// When the workload, or a part of it, found no other place. An eviction that is placed elsewhere goes on.
    #[default]
    WhenUnplaced,
    /// Never (Karmada).
    Never,
}

/// The entry that takes the cluster of a task back, if its eviction is to be called off. `targets` is the
/// scheduling result as it is by now.
pub(super) fn target(
    snapshot: &FinishSnapshot<'_>,
    targets: &[TargetCluster],
    task: &GracefulEvictionTask,
) -> Option<(TargetCluster, Because)> {
    let FinishSnapshot { binding, sources, options, now, .. } = *snapshot;
    if options.restore_source == RestoreSource::Never || mutation::on(Mutation::Karmada3747) {
        return None;
    }
    let unplaced = match schedule_result(binding) {
        ScheduleResult::Present => false,
        ScheduleResult::Empty => true,
        ScheduleResult::NoneYet => result::failed(binding),
    };
    let source = sources.iter().find(|cluster| cluster.name == task.from_cluster).filter(|_| unplaced)?;
    if !may_host(binding, source, now) || !cause_is_gone(binding, task) {
        return None;
    }
    let replicas = replicas(binding, targets, task)?;
    let message = "the cluster is well again and the workload found no other place, so it stays";
    Some((TargetCluster::new(&task.from_cluster, replicas), Because::rule("SourceRecovered", message)))
}

/// Whether the scheduler could choose the cluster for the workload, were it not for tasks.
pub(crate) fn may_host(binding: &Binding, cluster: &Cluster, now: Time) -> bool {
    let Some(placement) = &binding.spec.placement else { return false };
    let tolerations = &placement.cluster_tolerations;
    let scheduling = cluster.spec.taints.iter().filter(|taint| taint.effect == TaintEffect::NoSchedule);
    let stays = match evict::tolerance(&cluster.spec.taints, tolerations, now) {
        Tolerance::Untainted | Tolerance::Forever => true,
        Tolerance::For { .. } | Tolerance::Not(_) => false,
    };
    cluster.is_ready()
        && !cluster.is_terminating()
        && stays
        && scheduling.clone().all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
        && is_selected(placement, cluster)
        && !blocked_until(binding, now).iter().any(|(name, _)| *name == cluster.name)
}

/// Whether some group of affinities selects the cluster, or the one affinity does.
pub(crate) fn is_selected(placement: &Placement, cluster: &Cluster) -> bool {
    match &placement.cluster_affinities {
        Some(terms) => terms.iter().any(|term| affinity::matches(&term.affinity, cluster)),
        None => placement.cluster_affinity.as_ref().is_none_or(|affinity| affinity::matches(affinity, cluster)),
    }
}

/// A taint is seen on the cluster; a failed application has to be healthy again; nothing was ever wrong with a cluster
/// that only stood in, or that the scheduler gave up. Why another program evicts, only that program knows.
fn cause_is_gone(binding: &Binding, task: &GracefulEvictionTask) -> bool {
    let reported = || binding.status.aggregated_status.iter().find(|item| item.cluster_name == task.from_cluster);
    match task.reason.as_str() {
        REASON_TAINT_UNTOLERATED | REASON_DRAINED | REASON_FAILBACK | REASON_RESCHEDULED => true,
        REASON_APPLICATION_FAILURE => match reported() {
            Some(item) => item.health == Some(Health::Healthy),
            // What was purged first cannot get well, only be started anew; there is nowhere else to start it.
            None => task.purge_mode == Some(PurgeMode::Directly),
        },
        _ => false,
    }
}

/// Replicas of the entry: those that it had, but no more than are missing. Absent when none is missing.
fn replicas(binding: &Binding, targets: &[TargetCluster], task: &GracefulEvictionTask) -> Option<i32> {
    let spec = &binding.spec;
    let kind = spec.placement.as_ref().map(Placement::replica_scheduling_type);
    match kind {
        _ if !spec.is_workload() => Some(0),
        Some(ReplicaSchedulingType::Divided) => {
            let placed = targets.iter().map(|target| i64::from(target.replicas)).sum::<i64>();
            let missing = i32::try_from(i64::from(spec.replicas) - placed).unwrap_or(0);
            let restored = task.replicas.unwrap_or(0).min(missing);
            (restored > 0).then_some(restored)
        }
        Some(ReplicaSchedulingType::Duplicated) | None => Some(spec.replicas),
    }
}
