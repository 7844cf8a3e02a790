use serde::{Deserialize, Serialize};

use super::Health;

/// What happens to the old copy when a workload leaves a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PurgeMode {
    /// Deleted first, then created elsewhere. Reads the old spelling `Immediately` too.
    #[serde(alias = "Immediately")]
    Directly,
    /// Kept until the new copy is healthy or the grace period ends. Reads the old spelling `Graciously` too.
    #[default]
    #[serde(alias = "Graciously")]
    Gracefully,
    /// Kept until a person confirms.
    Never,
}

/// `spec.failover` of a policy and of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailoverBehavior {
    /// Application failover; absent is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFailover>,
    /// Cluster failover; absent leaves it to the controller's flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFailover>,
}

/// `spec.failover.application`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApplicationFailover {
    /// What must have happened before failover is considered at all; in no release of Karmada.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_conditions: Option<PreConditions>,
    /// When an application counts as failed.
    pub decision_conditions: DecisionConditions,
    /// What happens to the old copy.
    #[serde(default)]
    pub purge_mode: PurgeMode,
    /// How long a `Gracefully` purge waits for the new copy, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// For how long, in seconds, the workload is kept away from the cluster that it left; 0 is for good, absent is
    /// not at all. In no release of Karmada: only control planes whose CRDs have the field can set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_predecessor_seconds: Option<i32>,
    /// What to carry over from the old copy's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// `spec.failover.application.decisionConditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecisionConditions {
    /// How long an application may be unhealthy, in seconds; 300 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i32>,
    /// Which health counts as failed: `Unhealthy`, which is also what an empty list means. Only in the proposal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub healthy_state: Vec<Health>,
}

/// `spec.failover.application.preConditions`: all of them must hold, each on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreConditions {
    /// For how long after its status was first collected an application is left alone, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<i32>,
    /// `Healthy`: an application that never was healthy is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_state: Option<Health>,
}

/// `spec.failover.cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterFailover {
    /// What happens to the old copy.
    #[serde(default)]
    pub purge_mode: PurgeMode,
    /// How long a `PreferNoExecute` taint is put up with, in seconds; 300 when absent. `NoExecute` taints go by the
    /// placement's tolerations instead. In no release of Karmada.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i32>,
    /// How long a `Gracefully` purge waits for the new copy, in seconds; absent leaves it to the controller's flag.
    /// In no release of Karmada.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// What to carry over from the old copy's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// Which parts of the old copy's status become labels of the new copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatePreservation {
    /// One label per rule.
    pub rules: Vec<StatePreservationRule>,
}

/// One rule of a [`StatePreservation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatePreservationRule {
    /// Name of the label.
    pub alias_label_name: String,
    /// JSONPath template over the status.
    pub json_path: String,
}
