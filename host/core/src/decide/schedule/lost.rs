//! Clusters that an evicted workload must not move to: those that are not ready, and those that would evict it at once.
//!
//! Taints keep new workloads away from a lost cluster, but not one that tolerates them, and not the additional replicas
//! of a current target. A workload that leaves one cluster would wait on the next one that is lost. Karmada's filter
//! also accepts a toleration whose time is over, so that two clusters with the same taint would pass a workload to and
//! fro. Replicas that run on such a cluster stay there: only an eviction takes them away.

use std::collections::BTreeSet;

use super::SchedulingSnapshot;
use crate::combine::Attribution;
use crate::decide::eviction::taint_based;
use crate::model::{Cluster, ConditionStatus};

/// Returns the rows of these clusters; none unless the binding is being evicted from a cluster.
pub(super) fn rows(snapshot: SchedulingSnapshot<'_>) -> BTreeSet<u32> {
    let SchedulingSnapshot {
        binding,
        clusters,
        options,
        now,
        ..
    } = snapshot;
    if !options.spares_lost || binding.spec.graceful_eviction_tasks.is_empty() {
        return BTreeSet::new();
    }
    let placement = binding.spec.placement.as_ref();
    let tolerations = placement.map_or(&[][..], |placement| &placement.cluster_tolerations);
    let present = clusters.present();
    let lost =
        present.rows().iter().zip(present.iter()).filter(|(_, cluster)| {
            is_lost(cluster) || taint_based::evicts_at_once(&cluster.spec.taints, tolerations, now)
        });
    lost.map(|(row, _)| *row).collect()
}

/// Returns true if the cluster reports that it is not ready, or does not report any more.
fn is_lost(cluster: &Cluster) -> bool {
    cluster
        .ready()
        .is_some_and(|ready| ready.status != ConditionStatus::True)
}

/// Returns the rejection of a cluster of [`rows`] that is no target yet.
pub(super) fn rejection(cluster: &Cluster) -> Attribution {
    if is_lost(cluster) {
        Attribution::rule(
            "ClusterLost",
            "cluster(s) is not ready while the workload is being evicted",
        )
    } else {
        Attribution::rule(
            "TolerationExpired",
            "cluster(s) had a taint whose toleration has expired",
        )
    }
}
