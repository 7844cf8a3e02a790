//! Policies (Karmada: `pkg/apis/policy/v1alpha1`).

use bulkhead_core::model::{ClusterTaintPolicySpec, FailoverBehavior, LabelSelector, Placement};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::api_object;

api_object! {
    /// Propagation of resource templates of one namespace to member clusters.
    PropagationPolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "propagationpolicies",
        scope: NamespaceResourceScope,
        spec: PropagationSpec
    }
}

api_object! {
    /// Propagation of resource templates of any namespace, or of cluster scope, to member clusters.
    ClusterPropagationPolicy {
        group: "policy.karmada.io",
        version: "v1alpha1",
        plural: "clusterpropagationpolicies",
        scope: ClusterResourceScope,
        spec: PropagationSpec
    }
}

api_object! {
    /// Rules that add taints to member clusters, and remove them, according to the conditions of each cluster.
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
    /// Resource templates that the policy selects; at least one.
    pub resource_selectors: Vec<ResourceSelector>,
    /// Deprecated form of `propagate_deps`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub association: bool,
    /// True if dependencies are propagated too; application failover requires it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagate_deps: bool,
    /// Placement on member clusters. Always written, even when empty.
    #[serde(default)]
    pub placement: Placement,
    /// Priority among explicit policies; absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Permission to take over templates from a policy of lower priority.
    #[serde(default)]
    pub preemption: PreemptionBehavior,
    /// Override policies that must exist first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependent_overrides: Vec<String>,
    /// Name of the scheduler; immutable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler_name: String,
    /// Failover behaviour; absent leaves it to the controller's flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = bounded_cluster_failover)]
    pub failover: Option<FailoverBehavior>,
    /// Behaviour if a member object exists already.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,
    /// `Lazy`: a change of the policy takes effect with the next change of the template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub activation_preference: String,
    /// Suspension of dispatching.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// True if member objects outlive the template; absent is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Priority class for the scheduling queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
}

/// Adds the bounds of `failover.cluster` to the schema of policies. The schema of bindings has none, so that the failover
/// of a binding of an older policy can be written.
fn bounded_cluster_failover(schema: &mut Schema) {
    let cluster = schema.pointer_mut("/properties/cluster").and_then(Value::as_object_mut);
    let Some(cluster) = cluster else { return };
    for (name, least) in [("gracePeriodSeconds", 1), ("tolerationSeconds", 0)] {
        if let Some(field) = cluster
            .get_mut("properties")
            .and_then(|fields| fields.get_mut(name)?.as_object_mut())
        {
            field.insert("minimum".to_owned(), json!(least));
        }
    }
    let rule =
        "!has(self.gracePeriodSeconds) || !has(self.purgeMode) || self.purgeMode in ['Gracefully', 'Graciously']";
    let message = "gracePeriodSeconds only takes effect when purgeMode is Gracefully";
    cluster.insert(
        "x-kubernetes-validations".to_owned(),
        json!([{"rule": rule, "message": message}]),
    );
}

/// Selector of resource templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty selects every namespace, or for a [`PropagationPolicy`] the policy's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name; empty selects by `label_selector`, or every name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Selector on the template's labels; ignored if a name is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Permission to take over templates of other policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreemptionBehavior {
    /// Templates of any policy of lower priority are taken over.
    Always,
    /// No templates are taken over.
    #[default]
    Never,
}

/// Behaviour if a member object exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConflictResolution {
    /// The object is left alone, and the Work reports it.
    #[default]
    Abort,
    /// The object is taken over.
    Overwrite,
}

impl ConflictResolution {
    /// Returns the wire spelling, which bindings carry as text.
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
    /// True suspends dispatching to every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,
    /// Clusters to which dispatching is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
}

/// Clusters to which dispatching is suspended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspendClusters {
    /// Names of the clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// `spec.schedulePriority` of a propagation policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulePriority {
    /// Source of the class: `KubePriorityClass`.
    pub priority_class_source: String,
    /// Name of the class.
    pub priority_class_name: String,
}
