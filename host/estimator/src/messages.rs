//! The messages of the `Estimator` service, as far as a scheduler sends and receives them
//! (Karmada: `pkg/estimator/pb/estimator.proto`), and of Kubernetes inside them
//! (`k8s.io/api/core/v1/generated.proto`, `k8s.io/apimachinery/pkg/api/resource/generated.proto`).
//!
//! Written by hand, so that no build needs a protobuf compiler. Numbers are the wire; a test compares bytes.

use std::collections::BTreeMap;

use prost::Message;

/// How many replicas a cluster has room for.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableReplicasRequest {
    /// The cluster that is asked about.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// What one replica needs.
    #[prost(message, optional, tag = "2")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// What was placed there a moment ago.
    #[prost(message, repeated, tag = "3")]
    pub assumed_workloads: Vec<AssumedWorkload>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableReplicasResponse {
    /// Replicas; -1 is "cannot tell".
    #[prost(int32, tag = "1")]
    pub max_replicas: i32,
}

/// How many complete sets of components a cluster has room for.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableComponentSetsRequest {
    /// The cluster that is asked about.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// The components of one set.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<Component>,
    /// Namespace of the workload.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// What was placed there a moment ago.
    #[prost(message, repeated, tag = "4")]
    pub assumed_workloads: Vec<AssumedWorkload>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableComponentSetsResponse {
    /// Sets; -1 is "cannot tell".
    #[prost(int32, tag = "1")]
    pub max_sets: i32,
}

/// What one replica needs.
#[derive(Clone, PartialEq, Message)]
pub struct ReplicaRequirements {
    /// Which nodes will do.
    #[prost(message, optional, tag = "1")]
    pub node_claim: Option<NodeClaim>,
    /// Namespace of the workload, for its quotas.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Priority class, for quotas of that class.
    #[prost(string, tag = "4")]
    pub priority_class_name: String,
    /// A serialised [`Quantity`] by resource.
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// What one replica of a component needs.
#[derive(Clone, PartialEq, Message)]
pub struct ComponentReplicaRequirements {
    /// Which nodes will do.
    #[prost(message, optional, tag = "1")]
    pub node_claim: Option<NodeClaim>,
    /// Priority class, for quotas of that class.
    #[prost(string, tag = "3")]
    pub priority_class_name: String,
    /// A serialised [`Quantity`] by resource.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// A component of a workload.
#[derive(Clone, PartialEq, Message)]
pub struct Component {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What one replica of it needs.
    #[prost(message, optional, tag = "2")]
    pub replica_requirements: Option<ComponentReplicaRequirements>,
    /// Replicas in one set.
    #[prost(int32, tag = "3")]
    pub replicas: i32,
}

/// Something that was placed a moment ago, whose pods are not on nodes yet.
#[derive(Clone, PartialEq, Message)]
pub struct AssumedWorkload {
    /// Its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its components with all replicas.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<Component>,
}

/// Which nodes will do.
#[derive(Clone, PartialEq, Message)]
pub struct NodeClaim {
    /// Labels that a node must have.
    #[prost(btree_map = "string, string", tag = "2")]
    pub node_selector: BTreeMap<String, String>,
    /// A serialised [`NodeSelector`], empty for none.
    #[prost(bytes = "vec", tag = "4")]
    pub node_affinity_bytes: Vec<u8>,
    /// Serialised [`Toleration`]s.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub tolerations_bytes: Vec<Vec<u8>>,
}

/// Kubernetes: an amount, as text.
#[derive(Clone, PartialEq, Message)]
pub struct Quantity {
    /// For example `250m`.
    #[prost(string, optional, tag = "1")]
    pub string: Option<String>,
}

/// Kubernetes: terms of which one must match a node.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms.
    #[prost(message, repeated, tag = "1")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Kubernetes: requirements all of which must hold.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// About labels.
    #[prost(message, repeated, tag = "1")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// About fields.
    #[prost(message, repeated, tag = "2")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// Kubernetes: one requirement.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(default)]
pub struct NodeSelectorRequirement {
    /// Label or field.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[prost(string, optional, tag = "2")]
    pub operator: Option<String>,
    /// What it is compared with.
    #[prost(string, repeated, tag = "3")]
    pub values: Vec<String>,
}

/// Kubernetes: a taint that does not matter.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Key of the taint; empty is any.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[prost(string, optional, tag = "2")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[prost(string, optional, tag = "3")]
    pub value: Option<String>,
    /// Effect of the taint; empty is any.
    #[prost(string, optional, tag = "4")]
    pub effect: Option<String>,
    /// For how long.
    #[prost(int64, optional, tag = "5")]
    pub toleration_seconds: Option<i64>,
}
