use serde::{Deserialize, Serialize};

use super::{ClusterAffinity, TaintEffect};

/// `spec` of a `ClusterTaintPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// Which clusters; absent is every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,
    /// When all hold the taints are added; empty is never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// When all hold the taints are removed; empty is never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// The taints in question.
    pub taints: Vec<PolicyTaint>,
}

/// One requirement on a cluster's conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Type of the condition; a cluster without such a condition never matches.
    pub condition_type: String,
    /// `In` or `NotIn`; any other text makes the whole match false.
    pub operator: String,
    /// Statuses compared with, for example `False`, `Unknown`.
    #[serde(default)]
    pub status_values: Vec<String>,
}

/// A taint as a policy declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyTaint {
    /// Qualified name.
    pub key: String,
    /// What it does.
    pub effect: TaintEffect,
    /// Label value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}
