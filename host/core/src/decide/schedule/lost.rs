//! Clusters that are not ready, which an evicted workload must not move to.
//!
//! Taints keep new workloads away from a lost cluster, but not one that tolerates them, and not the additional replicas
//! of a current target. A workload that leaves one cluster would wait on the next one that is lost. Replicas that run on
//! such a cluster stay there: only an eviction takes them away.

use std::collections::BTreeSet;

use super::SchedulingSnapshot;
use crate::combine::Attribution;
use crate::model::{Cluster, ConditionStatus};

/// Returns the rows of the lost clusters; none unless the binding is being evicted from a cluster.
pub(super) fn rows(snapshot: SchedulingSnapshot<'_>) -> BTreeSet<u32> {
    let SchedulingSnapshot { binding, clusters, options, .. } = snapshot;
    if !options.spares_lost || binding.spec.graceful_eviction_tasks.is_empty() {
        return BTreeSet::new();
    }
    let present = clusters.present();
    let lost = present.rows().iter().zip(present.iter()).filter(|(_, cluster)| is_lost(cluster));
    lost.map(|(row, _)| *row).collect()
}

/// Returns true if the cluster reports that it is not ready, or does not report any more.
fn is_lost(cluster: &Cluster) -> bool {
    cluster.ready().is_some_and(|ready| ready.status != ConditionStatus::True)
}

/// Returns the rejection of a lost cluster that is no target yet.
pub(super) fn rejection() -> Attribution {
    Attribution::rule("ClusterLost", "cluster(s) is not ready while the workload is being evicted")
}
