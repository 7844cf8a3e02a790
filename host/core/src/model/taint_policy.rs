use serde::{Deserialize, Serialize};

use super::{ClusterAffinity, TaintEffect};

/// `spec` of a `ClusterTaintPolicy`, in one of two forms: Karmada's (`addOnConditions`, `removeOnConditions`,
/// `taints`) or that of the proposal "Optimize Cluster Failover" (`matchConditions`, `taintsToAdd`), which is not in
/// any Karmada release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// Clusters to which the policy applies; absent means all clusters. Named `targetCluster` in the proposal.
    #[serde(default, alias = "targetCluster", skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,
    /// Conditions for adding the taints; all must match. Empty means never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// Conditions for removing the taints; all must match. Empty means never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// Taints to add or remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<PolicyTaint>,
    /// Conditions under which `taintsToAdd` are present; all must match. Empty means always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// Taints that are present while `matchConditions` match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints_to_add: Vec<PolicyTaint>,
}

impl ClusterTaintPolicySpec {
    /// Returns true if the desired taints can change through the passage of time alone.
    pub fn has_windows(&self) -> bool {
        let windowed =
            |taint: &PolicyTaint| taint.add_on_match_seconds.is_some() || taint.remove_on_mismatch_seconds.is_some();
        !self.taints_to_add.is_empty() || self.taints.iter().any(windowed)
    }
}

/// Default delay in seconds between a match and the addition of a taint of [`ClusterTaintPolicySpec::taints_to_add`].
pub const ADD_ON_MATCH_SECONDS: i32 = 300;
/// Default delay in seconds between a mismatch and the removal of such a taint.
pub const REMOVE_ON_MISMATCH_SECONDS: i32 = 180;

/// Requirement on a cluster's conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// Type of the condition; a cluster without this condition never matches.
    pub condition_type: String,
    /// `In` or `NotIn`; with any other operator, the whole match is false.
    pub operator: String,
    /// Statuses to compare with, for example `False` or `Unknown`.
    #[serde(default)]
    pub status_values: Vec<String>,
}

/// Taint declared by a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyTaint {
    /// Qualified name.
    pub key: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// Label value, often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Seconds for which the conditions must match before the taint is added, at least 1. If absent, it is added
    /// immediately for `taints` and after [`ADD_ON_MATCH_SECONDS`] for `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_match_seconds: Option<i32>,
    /// Seconds for which the conditions for removal must hold before the taint is removed, at least 1. If absent, it
    /// is removed immediately for `taints` and after [`REMOVE_ON_MISMATCH_SECONDS`] for `taintsToAdd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_on_mismatch_seconds: Option<i32>,
}
