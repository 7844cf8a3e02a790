//! Messages of the `Estimator` service that a scheduler sends and receives (Karmada:
//! `pkg/estimator/pb/estimator.proto`), and Kubernetes messages inside them (`k8s.io/api/core/v1/generated.proto`,
//! `k8s.io/apimachinery/pkg/api/resource/generated.proto`).
//!
//! Written by hand, so that no build needs a protobuf compiler. Tags define the wire format; a test compares bytes.

use std::collections::BTreeMap;

use prost::Message;

/// Request for the number of replicas that a cluster has room for.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableReplicasRequest {
    /// Name of the cluster.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// Requirements of one replica.
    #[prost(message, optional, tag = "2")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// Workloads that were placed there a moment ago.
    #[prost(message, repeated, tag = "3")]
    pub assumed_workloads: Vec<AssumedWorkload>,
}

/// Response to [`MaxAvailableReplicasRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableReplicasResponse {
    /// Number of replicas; -1 if unknown.
    #[prost(int32, tag = "1")]
    pub max_replicas: i32,
}

/// Request for the number of complete component sets that a cluster has room for.
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableComponentSetsRequest {
    /// Name of the cluster.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// Components of one set.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<Component>,
    /// Namespace of the workload.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Workloads that were placed there a moment ago.
    #[prost(message, repeated, tag = "4")]
    pub assumed_workloads: Vec<AssumedWorkload>,
}

/// Response to [`MaxAvailableComponentSetsRequest`].
#[derive(Clone, PartialEq, Message)]
pub struct MaxAvailableComponentSetsResponse {
    /// Number of sets; -1 if unknown.
    #[prost(int32, tag = "1")]
    pub max_sets: i32,
}

/// Requirements of one replica.
#[derive(Clone, PartialEq, Message)]
pub struct ReplicaRequirements {
    /// Node requirements.
    #[prost(message, optional, tag = "1")]
    pub node_claim: Option<NodeClaim>,
    /// Namespace of the workload, for its quotas.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// Priority class, for quotas of that class.
    #[prost(string, tag = "4")]
    pub priority_class_name: String,
    /// Serialised [`Quantity`] of each resource.
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// Requirements of one replica of a component.
#[derive(Clone, PartialEq, Message)]
pub struct ComponentReplicaRequirements {
    /// Node requirements.
    #[prost(message, optional, tag = "1")]
    pub node_claim: Option<NodeClaim>,
    /// Priority class, for quotas of that class.
    #[prost(string, tag = "3")]
    pub priority_class_name: String,
    /// Serialised [`Quantity`] of each resource.
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub resource_request_bytes: BTreeMap<String, Vec<u8>>,
}

/// Component of a workload.
#[derive(Clone, PartialEq, Message)]
pub struct Component {
    /// Name of the component.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Requirements of one replica.
    #[prost(message, optional, tag = "2")]
    pub replica_requirements: Option<ComponentReplicaRequirements>,
    /// Replicas in one set.
    #[prost(int32, tag = "3")]
    pub replicas: i32,
}

/// Workload that was placed a moment ago, and whose pods are not on nodes yet.
#[derive(Clone, PartialEq, Message)]
pub struct AssumedWorkload {
    /// Namespace of the workload.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Components with all replicas.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<Component>,
}

/// Node requirements.
#[derive(Clone, PartialEq, Message)]
pub struct NodeClaim {
    /// Labels that a node must have.
    #[prost(btree_map = "string, string", tag = "2")]
    pub node_selector: BTreeMap<String, String>,
    /// Serialised [`NodeSelector`]; empty if there is none.
    #[prost(bytes = "vec", tag = "4")]
    pub node_affinity_bytes: Vec<u8>,
    /// Serialised [`Toleration`]s.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub tolerations_bytes: Vec<Vec<u8>>,
}

/// Kubernetes: quantity as text.
#[derive(Clone, PartialEq, Message)]
pub struct Quantity {
    /// Quantity, for example `250m`.
    #[prost(string, optional, tag = "1")]
    pub string: Option<String>,
}

/// Kubernetes: terms, at least one of which must match a node.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms.
    #[prost(message, repeated, tag = "1")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Kubernetes: requirements, all of which must hold.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[prost(message, repeated, tag = "1")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Requirements on fields.
    #[prost(message, repeated, tag = "2")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// Kubernetes: requirement on a label or field.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(default)]
pub struct NodeSelectorRequirement {
    /// Name of the label or field.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[prost(string, optional, tag = "2")]
    pub operator: Option<String>,
    /// Values to compare with.
    #[prost(string, repeated, tag = "3")]
    pub values: Vec<String>,
}

/// Kubernetes: toleration of a taint.
#[derive(Clone, PartialEq, Message, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Key of the taint; empty matches any.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[prost(string, optional, tag = "2")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[prost(string, optional, tag = "3")]
    pub value: Option<String>,
    /// Effect of the taint; empty matches any.
    #[prost(string, optional, tag = "4")]
    pub effect: Option<String>,
    /// Duration of the toleration, in seconds.
    #[prost(int64, optional, tag = "5")]
    pub toleration_seconds: Option<i64>,
}
