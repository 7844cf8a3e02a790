use std::time::Duration;

/// Settings of the scheduler with Karmada's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerOptions {
    /// Feature gate MultiplePodTemplatesScheduling, off: workloads of several components are sized as sets.
    pub multiple_pod_templates: bool,
    /// Feature gate CustomizedClusterResourceModeling, on: grades of nodes replace the resource summary.
    pub resource_models: bool,
    /// Feature gate SchedulingOvercommitProtection, off: what was placed a moment ago counts as taken.
    pub overcommit_protection: bool,
    /// `--enable-empty-workload-propagation`, off: selected clusters without a replica are targets too.
    pub empty_workload_propagation: bool,
    /// True if copies leave clusters that a new result gives up through graceful eviction tasks. Karmada deletes them.
    #[serde(default)]
    pub evicts_standing: bool,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            multiple_pod_templates: false,
            resource_models: true,
            overcommit_protection: false,
            empty_workload_propagation: false,
            evicts_standing: false,
        }
    }
}

/// First retry of what failed.
const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// Longest pause between retries.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// How long an attempt that failed is put off, by the number of attempts so far (Karmada:
/// `internal/queue/scheduling_queue.go:calculateBackoffDuration`).
pub fn backoff(attempts: u32) -> Duration {
    match attempts.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => {
            BACKOFF_BASE.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(BACKOFF_MAX)
        }
    }
}
