//! Reasons and producers of eviction tasks.

/// Reason of tasks created because of a taint.
pub const REASON_TAINT_UNTOLERATED: &str = "TaintUntolerated";
/// Reason of tasks created because of a cluster drain.
pub const REASON_DRAINED: &str = "ClusterDrained";
/// Reason of tasks that application failover creates.
pub const REASON_APPLICATION_FAILURE: &str = "ApplicationFailure";
/// Reason of tasks that return a workload to its home.
pub const REASON_FAILBACK: &str = "Failback";
/// Reason of tasks created because the scheduler chose other clusters.
pub const REASON_RESCHEDULED: &str = "Rescheduled";

/// Producer of tasks created because of a taint.
pub const PRODUCER_TAINT_MANAGER: &str = "TaintManager";
/// Producer of tasks created by the scheduler.
pub const PRODUCER_SCHEDULER: &str = "Scheduler";
