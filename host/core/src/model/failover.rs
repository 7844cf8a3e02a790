use serde::{Deserialize, Serialize};

use super::Health;

/// Handling of the old copy when a workload leaves a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PurgeMode {
    /// The old copy is deleted before the new one is created. Also reads the old spelling `Immediately`.
    #[serde(alias = "Immediately")]
    Directly,
    /// The old copy is kept until the new one is healthy or the grace period ends. Also reads the old spelling
    /// `Graciously`.
    #[default]
    #[serde(alias = "Graciously")]
    Gracefully,
    /// The old copy is kept until an operator confirms its deletion.
    Never,
}

/// `spec.failover` of a policy and of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailoverBehavior {
    /// Application failover; absent disables it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFailover>,
    /// Cluster failover; if absent, the controller's flags apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFailover>,
}

/// `spec.failover.application`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApplicationFailover {
    /// Preconditions for failover. Not in any Karmada release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_conditions: Option<PreConditions>,
    /// Conditions under which an application counts as failed.
    pub decision_conditions: DecisionConditions,
    /// Handling of the old copy.
    #[serde(default)]
    pub purge_mode: PurgeMode,
    /// Seconds for which a `Gracefully` purge waits for the new copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// Seconds for which the workload is not scheduled to the cluster that it left; 0 is permanent, absent disables
    /// the block. Not in any Karmada release: only control planes whose CRDs have the field can set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_predecessor_seconds: Option<i32>,
    /// Parts of the old copy's status to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// `spec.failover.application.decisionConditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecisionConditions {
    /// Seconds for which an application may be unhealthy; 300 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i32>,
    /// Health states that count as failed; an empty list means `Unhealthy`. Only in the proposal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub healthy_state: Vec<Health>,
}

/// `spec.failover.application.preConditions`; all of them must hold independently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreConditions {
    /// Seconds after the first status report during which no failover takes place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<i32>,
    /// `Healthy`: excludes applications that have never been healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_state: Option<Health>,
}

/// `spec.failover.cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterFailover {
    /// Handling of the old copy.
    #[serde(default)]
    pub purge_mode: PurgeMode,
    /// Seconds for which a `PreferNoExecute` taint is tolerated; 300 if absent. `NoExecute` taints are subject to the
    /// placement's tolerations instead. Not in any Karmada release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i32>,
    /// Seconds for which a `Gracefully` purge waits for the new copy; if absent, the controller's flag applies. Not
    /// in any Karmada release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// Parts of the old copy's status to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// Parts of the old copy's status that become labels of the new copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatePreservation {
    /// Rules, one label each.
    pub rules: Vec<StatePreservationRule>,
}

/// Rule of a [`StatePreservation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatePreservationRule {
    /// Name of the label.
    pub alias_label_name: String,
    /// JSONPath template over the status.
    pub json_path: String,
}
