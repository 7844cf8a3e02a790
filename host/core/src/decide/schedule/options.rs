use std::time::Duration;

/// Scheduler options with Karmada's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerOptions {
    /// Feature gate MultiplePodTemplatesScheduling, default off: multi-component workloads are sized as sets.
    pub multiple_pod_templates: bool,
    /// Feature gate CustomizedClusterResourceModeling, default on: node grades replace the resource summary.
    pub resource_models: bool,
    /// Feature gate SchedulingOvercommitProtection, default off: recently placed workloads reduce the free capacity.
    pub overcommit_protection: bool,
    /// `--enable-empty-workload-propagation`, default off: selected clusters without replicas are targets too.
    pub empty_workload_propagation: bool,
    /// True if copies on clusters outside of a new result are removed by graceful eviction tasks. Karmada deletes
    /// them.
    #[serde(default)]
    pub evicts_standing: bool,
    /// True if a workload that is being evicted gets no replicas on clusters that are not ready. Karmada relies on
    /// taints, which a toleration or a current target overrides.
    #[serde(default)]
    pub spares_lost: bool,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            multiple_pod_templates: false,
            resource_models: true,
            overcommit_protection: false,
            empty_workload_propagation: false,
            evicts_standing: false,
            spares_lost: false,
        }
    }
}

/// Delay before the first retry.
const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// Maximum delay between retries.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Returns the delay before the next attempt, by the number of attempts so far (Karmada:
/// `internal/queue/scheduling_queue.go:calculateBackoffDuration`).
pub fn backoff(attempts: u32) -> Duration {
    match attempts.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => BACKOFF_BASE
            .saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(BACKOFF_MAX),
    }
}
