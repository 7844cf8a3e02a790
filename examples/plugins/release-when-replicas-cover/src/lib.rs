//! Releases an old copy as soon as the replicas available elsewhere cover what is desired.

use std::collections::BTreeSet;

use bulkhead_sdk::{Document, EvictionCheck, EvictionVerdict, Plugin, PolicyError, Reason};

struct ReplicasCover;

impl Plugin for ReplicasCover {
    const NAME: &'static str = "release-when-replicas-cover";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

/// The available replicas that one member cluster reports, if the workload is meant to run there.
fn available(binding: &Document, targets: &BTreeSet<String>, index: u32) -> i64 {
    let field = |name: &str| format!("/status/aggregatedStatus/{index}/{name}");
    let cluster = binding.get_string(&field("clusterName")).unwrap_or_default();
    if targets.contains(&cluster) { binding.get_s64(&field("status/availableReplicas")).unwrap_or(0) } else { 0 }
}

impl EvictionCheck for ReplicasCover {
    fn check(&self, binding: &Document, _task: &Document, _now_s: i64) -> Result<EvictionVerdict, PolicyError> {
        let Some(desired) = binding.get_s64("/spec/replicas").filter(|desired| *desired > 0) else {
            return Ok(EvictionVerdict::Abstain);
        };
        let count = binding.length("/spec/clusters").unwrap_or(0);
        let target = |index| binding.get_string(&format!("/spec/clusters/{index}/name"));
        // A set: with a list, the work would grow with the square of the clusters.
        let targets: BTreeSet<_> = (0..count).filter_map(target).collect();
        let reports = binding.length("/status/aggregatedStatus").unwrap_or(0);
        let available: i64 = (0..reports).map(|index| available(binding, &targets, index)).sum();
        let message = format!("{available} of {desired} replicas are available on the clusters it moved to");
        Ok(if available >= desired {
            EvictionVerdict::Release(Reason::new("ReplicasCover", message))
        } else {
            EvictionVerdict::hold_for(Reason::new("ReplicasMissing", message), 10)
        })
    }
}

bulkhead_sdk::export_eviction_check!(ReplicasCover);
