use serde::{Deserialize, Serialize};

use super::{LabelSelector, ReplicaRequirements};

/// Pod template of an object with several of them (Karmada: `work/v1alpha2.Component`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Name, unique in the object.
    pub name: String,
    /// Desired replicas.
    #[serde(default)]
    pub replicas: i32,
    /// Requirements of one replica; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// Object on which another one depends (Karmada: `config/v1alpha1.DependentObjectReference`), identified by name or
/// by selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// `group/version`, or `v1`.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Namespace; empty for cluster scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name; empty if a selector is used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Label selector of the objects, used if the name is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

impl DependentObjectReference {
    /// Validates the reference. Returns the invalid field with a reason, or `None` if the reference is valid.
    /// (Karmada: `pkg/util/interpreter/validation/validation.go`.)
    pub fn problem(&self) -> Option<String> {
        if self.api_version.is_empty() {
            return Some(".apiVersion: missing required apiVersion".to_owned());
        }
        if self.kind.is_empty() {
            return Some(".kind: missing required kind".to_owned());
        }
        match &self.label_selector {
            // A selector beside a name is not used, but must be valid too.
            Some(selector) => selector.problem().map(|problem| format!(".labelSelector{problem}")),
            None if self.name.is_empty() => {
                Some(": dependency can not leave name and labelSelector all empty".to_owned())
            }
            None => None,
        }
    }
}
