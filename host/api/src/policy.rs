//! Policies (Karmada: `pkg/apis/policy/v1alpha1`).

use bulkhead_core::model::{ClusterTaintPolicySpec, FailoverBehavior, LabelSelector, Placement};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::api_object;

api_object! {
    /// How resource templates of one namespace are spread over member clusters.
    PropagationPolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "propagationpolicies",
        scope: NamespaceResourceScope,
        spec: PropagationSpec
    }
}

api_object! {
    /// How resource templates of any namespace, or of cluster scope, are spread over member clusters.
    ClusterPropagationPolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "clusterpropagationpolicies",
        scope: ClusterResourceScope,
        spec: PropagationSpec
    }
}

api_object! {
    /// Which conditions of a member cluster put which taints on it.
    ClusterTaintPolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "clustertaintpolicies",
        scope: ClusterResourceScope,
        spec: ClusterTaintPolicySpec
    }
}

/// `spec` of both propagation policies (Karmada: `propagation_types.go:PropagationSpec`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropagationSpec {
    /// Which templates; at least one.
    pub resource_selectors: Vec<ResourceSelector>,
    /// Deprecated form of `propagate_deps`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub association: bool,
    /// Whether dependencies travel along; application failover requires it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagate_deps: bool,
    /// Where to. Always written, even when empty.
    #[serde(default)]
    pub placement: Placement,
    /// Which of several explicit policies wins; absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Whether this policy may take templates over from one of lower priority.
    #[serde(default)]
    pub preemption: PreemptionBehavior,
    /// Override policies that must exist first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependent_overrides: Vec<String>,
    /// Which scheduler is in charge; immutable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// Failover; absent leaves it to the controller's flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,
    /// What happens when a member object exists already.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,
    /// `Lazy`: a change of the policy waits for a change of the template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub activation_preference: String,
    /// What is put on hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Whether member objects outlive the template; absent is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Which priority class the scheduling queue goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
}

/// Selects resource templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty is every namespace, or the policy's own for a [`PropagationPolicy`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name; empty leaves it to `label_selector`, or to every name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// On the template's labels; ignored when there is a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Whether a policy takes templates over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreemptionBehavior {
    /// From any policy of lower priority.
    Always,
    /// From none.
    #[default]
    Never,
}

/// What happens when a member object exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConflictResolution {
    /// It is left alone and the Work reports it.
    #[default]
    Abort,
    /// It is taken over.
    Overwrite,
}

impl ConflictResolution {
    /// The wire spelling, which bindings carry as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "Abort",
            Self::Overwrite => "Overwrite",
        }
    }
}

/// `spec.suspension` of a propagation policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// Dispatching to every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,
    /// Dispatching to some clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
}

/// Clusters that dispatching is suspended on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspendClusters {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// `spec.schedulePriority` of a propagation policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulePriority {
    /// `KubePriorityClass`.
    pub priority_class_source: String,
    /// Name of the class.
    pub priority_class_name: String,
}
