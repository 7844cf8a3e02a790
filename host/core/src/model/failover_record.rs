use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Maximum number of steps in a record; older ones are dropped.
pub const FAILOVER_STEPS_MAX: usize = 20;

/// `status` of a `FailoverRecord` or a `ClusterFailoverRecord` (Bulkhead APIs): the latest steps of the failovers of one
/// binding. It reports only; no decision reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailoverRecordStatus {
    /// Clusters that the workload is leaving: their old copies exist until they are released.
    #[serde(default)]
    pub leaving: Vec<String>,
    /// Number of evictions since the record was created.
    #[serde(default)]
    pub evicted: u64,
    /// Number of old copies that were released since the record was created.
    #[serde(default)]
    pub released: u64,
    /// Number of evictions that were canceled since the record was created.
    #[serde(default)]
    pub called_off: u64,
    /// Latest steps, oldest first; at most 20. Older steps are dropped.
    #[serde(default)]
    pub steps: Vec<FailoverStep>,
}

/// Step of a failover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailoverStep {
    /// Time of the step. The time of a hold is that of its first reason.
    pub time: Time,
    /// State of the old copy since this step.
    pub state: FailoverState,
    /// Cluster of the old copy.
    pub from: String,
    /// Target clusters of the workload, in the order of the binding; at most ten. Absent for a hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// `CamelCase` reason, such as `TaintUntolerated` or `ApplicationFailure`. The reason of a hold is the latest one.
    pub reason: String,
    /// Human-readable reason, cut after 512 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// ID of the decision for `bulkhead explain`; empty without a journal, and for decisions of other programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decision: String,
}

/// State of an old copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FailoverState {
    /// The workload leaves the cluster; the old copy exists.
    Evicted,
    /// The old copy is kept, for the stated reason.
    Held,
    /// The old copy is deleted.
    Released,
    /// The eviction was canceled, and the workload stays.
    CalledOff,
}
