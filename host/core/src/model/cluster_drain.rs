use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `spec` of a `ClusterDrain`, an object of our own: everything leaves the cluster, for as long as the object exists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterDrainSpec {
    /// The cluster to empty.
    pub cluster_name: String,
    /// How fast, at most; absent is as fast as the other limits allow, 0 is a drain that stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions_per_second: Option<f64>,
}

/// `status` of a `ClusterDrain`. It says what is left; nothing is decided from it, so a drain goes on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterDrainStatus {
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<DrainPhase>,
    /// Bindings that are still placed on the cluster.
    #[serde(default)]
    pub bindings_left: u64,
    /// Bindings that left the placement and whose old copy is still there.
    #[serde(default)]
    pub copies_left: u64,
    /// When the first of them was seen to be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the last one was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DrainPhase {
    /// There is no such cluster.
    Pending,
    /// Something is still there.
    Draining,
    /// Nothing is there.
    Drained,
}
