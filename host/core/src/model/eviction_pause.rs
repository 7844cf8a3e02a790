use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `spec` of an `EvictionPause` (a Bulkhead API). The evictions that it selects are delayed. Each list narrows the
/// selection; an empty spec selects all evictions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvictionPauseSpec {
    /// Clusters whose evictions are paused; empty means all clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Namespaces of the workloads; empty means all namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Workloads; empty means all workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<PausedWorkload>,
    /// Time at which the pause ends; if absent, it lasts until the object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Human-readable reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl EvictionPauseSpec {
    /// Returns true if the pause has not ended.
    pub fn is_in_force(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Resource template selected by an `EvictionPause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PausedWorkload {
    /// `group/version`, or `v1`; empty matches any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind; empty matches any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace; empty matches any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}
