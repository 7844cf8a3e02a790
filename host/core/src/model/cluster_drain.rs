use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `spec` of a `ClusterDrain` (a Bulkhead API). While the object exists, all workloads are evicted from the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterDrainSpec {
    /// Name of the cluster to drain.
    pub cluster_name: String,
    /// Maximum evictions per second; if absent, only the other limits apply. 0 pauses the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions_per_second: Option<f64>,
}

/// `status` of a `ClusterDrain`. It reports progress only; no decision reads it, so a drain continues after a
/// restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterDrainStatus {
    /// Progress of the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<DrainPhase>,
    /// Number of bindings that are still placed on the cluster.
    #[serde(default)]
    pub bindings_left: u64,
    /// Number of bindings that are no longer placed on the cluster and whose old copy still exists.
    #[serde(default)]
    pub copies_left: u64,
    /// Time at which such bindings were first observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Time at which the last of them was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Human-readable message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Progress of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DrainPhase {
    /// The cluster does not exist.
    Pending,
    /// Bindings or old copies remain on the cluster.
    Draining,
    /// No bindings or old copies remain on the cluster.
    Drained,
}
