use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `spec` of an `EvictionPause`, an object of our own: evictions that it covers wait. Lists narrow it down, and an
/// empty spec covers everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvictionPauseSpec {
    /// Only evictions from these clusters; empty is from any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// Only workloads of these namespaces; empty is of any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Only these workloads; empty is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<PausedWorkload>,
    /// When it ends by itself; absent is when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl EvictionPauseSpec {
    /// Whether it has not ended yet.
    pub fn is_in_force(&self, now: Time) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// A resource template that an `EvictionPause` covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PausedWorkload {
    /// `group/version`, or `v1`; empty is any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind; empty is any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace; empty is any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}
