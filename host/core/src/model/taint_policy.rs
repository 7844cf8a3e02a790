use serde::{Deserialize, Serialize};

use super::{ClusterAffinity, TaintEffect};

/// `spec` of a `ClusterTaintPolicy`, in either of two shapes: that of Karmada (`addOnConditions`,
/// `removeOnConditions`, `taints`) and that of the proposal "Optimize Cluster Failover" (`matchConditions`,
/// `taintsToAdd`), which no release of Karmada has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// Which clusters; absent is every cluster. The proposal spells it `targetCluster`.
    #[serde(default, alias = "targetCluster", skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,
    /// When all hold the taints are added; empty is never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// When all hold the taints are removed; empty is never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// The taints in question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<PolicyTaint>,
    /// While all hold `taints_to_add` are there; empty is always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// Taints that are there while `match_conditions` hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints_to_add: Vec<PolicyTaint>,
}

impl ClusterTaintPolicySpec {
    /// Whether time alone can change what the policy wants.
    pub fn has_windows(&self) -> bool {
        let windowed =
            |taint: &PolicyTaint| taint.add_on_match_seconds.is_some() || taint.remove_on_mismatch_seconds.is_some();
        !self.taints_to_add.is_empty() || self.taints.iter().any(windowed)
    }
}

/// Seconds that a match must last before a taint of [`ClusterTaintPolicySpec::taints_to_add`] is added, where it does
/// not say.
pub const ADD_ON_MATCH_SECONDS: i32 = 300;
/// Seconds that a mismatch must last before it is removed, where it does not say.
pub const REMOVE_ON_MISMATCH_SECONDS: i32 = 180;

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
    /// For how long the conditions must hold before it is added, in seconds, at least 1. Absent is at once in `taints`,
    /// and [`ADD_ON_MATCH_SECONDS`] in `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_match_seconds: Option<i32>,
    /// For how long the conditions for its removal must hold, in seconds, at least 1. Absent is at once in `taints`,
    /// and [`REMOVE_ON_MISMATCH_SECONDS`] in `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_on_mismatch_seconds: Option<i32>,
}
