//! Validation of `ClusterDrain` and `EvictionPause`. They are Bulkhead's own kinds, so Karmada has no rules for them.

use bulkhead_core::model::{ClusterDrainSpec, EvictionPauseSpec};

use super::denied::Denied;

pub(super) fn validate_drain(spec: &ClusterDrainSpec) -> Result<(), Denied> {
    if spec.cluster_name.is_empty() {
        return Err(Denied::required("spec.clusterName", "the cluster to drain"));
    }
    match spec.evictions_per_second {
        Some(rate) if !rate.is_finite() || rate < 0.0 => {
            let detail = "must be 0 (pause) or a positive number of evictions per second";
            Err(Denied::invalid("spec.evictionsPerSecond", rate, detail))
        }
        _ => Ok(()),
    }
}

/// Refuses workloads without a name: they would cover all objects of their kind, which is most likely a mistake.
pub(super) fn validate_pause(spec: &EvictionPauseSpec) -> Result<(), Denied> {
    let nameless = spec.workloads.iter().position(|workload| workload.name.is_empty());
    match nameless {
        Some(index) => Err(Denied::required(
            format!("spec.workloads[{index}].name"),
            "the workload to protect from eviction",
        )),
        None => Ok(()),
    }
}
