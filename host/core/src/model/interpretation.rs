use serde::{Deserialize, Serialize};

use super::{LabelSelector, ReplicaRequirements};

/// One of several pod templates in an object (Karmada: `work/v1alpha2.Component`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Name, unique in the object.
    pub name: String,
    /// Desired replicas.
    #[serde(default)]
    pub replicas: i32,
    /// What one replica needs; absent when nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// An object that another one needs beside it (Karmada: `config/v1alpha1.DependentObjectReference`). It is told by
/// name or by selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name; empty when a selector tells which.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which objects, when no name tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}
