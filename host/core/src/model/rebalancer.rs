use serde::{Deserialize, Serialize};

use crate::time::Time;

/// `spec` of a `WorkloadRebalancer` (Karmada: `workloadrebalancer_types.go:WorkloadRebalancerSpec`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRebalancerSpec {
    /// Objects to schedule again; at least one.
    pub workloads: Vec<RebalancedWorkload>,
    /// Seconds from the end of the rebalancing to the deletion of this object. Absent keeps the object, 0 deletes it
    /// at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Object to schedule again (Karmada: `workloadrebalancer_types.go:ObjectReference`). Ordered as in a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RebalancedWorkload {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace; empty for an object of cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// `status` of a `WorkloadRebalancer` (Karmada: `workloadrebalancer_types.go:WorkloadRebalancerStatus`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRebalancerStatus {
    /// Results so far, by API version, kind, namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_workloads: Vec<ObservedWorkload>,
    /// Generation that the results belong to; 0 before the first result.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Time of the last result of this generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<Time>,
}

/// Object with its result (Karmada: `workloadrebalancer_types.go:ObservedWorkload`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObservedWorkload {
    /// The object.
    pub workload: RebalancedWorkload,
    /// Result; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RebalanceResult>,
    /// Reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RebalanceFailedReason>,
}

/// Result of a request to schedule an object again (Karmada: `workloadrebalancer_types.go:RebalanceResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RebalanceResult {
    /// The request is final: there is nothing to schedule.
    Failed,
    /// The scheduler has the request.
    Successful,
}

/// Reason of a failure (Karmada: `workloadrebalancer_types.go:RebalanceFailedReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RebalanceFailedReason {
    /// The object has no binding.
    ReferencedBindingNotFound,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}
