use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ClusterAffinity;

/// Changes for the copies of an object in some clusters (Karmada: `override_types.go:RuleWithCluster`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverrideRule {
    /// Clusters to which the rule applies; absent means all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster: Option<ClusterAffinity>,
    /// Changes of the object.
    pub overriders: Overriders,
}

/// Changes of an object. Kinds of changes are applied in this order: `imageOverrider`, `commandOverrider`,
/// `argsOverrider`, `labelsOverrider`, `annotationsOverrider`, `fieldOverrider`, `plaintext`; those of one kind in the
/// order of their list. (Karmada: `override_types.go:Overriders`.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overriders {
    /// Operations of one JSON patch of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plaintext: Vec<PlaintextOverrider>,
    /// Changes of image names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_overrider: Vec<ImageOverrider>,
    /// Changes of the command of a container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_overrider: Vec<CommandArgsOverrider>,
    /// Changes of the arguments of a container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args_overrider: Vec<CommandArgsOverrider>,
    /// Changes of the object's labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes of the object's annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes inside of a text that is itself a document, such as a file in a ConfigMap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_overrider: Vec<FieldOverrider>,
}

impl Overriders {
    /// Returns true if there is no change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Operation of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OverriderOperator {
    /// Adds the value.
    Add,
    /// Removes the target.
    Remove,
    /// Replaces the target with the value.
    Replace,
}

/// Operation of a JSON patch of the object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlaintextOverrider {
    /// JSON pointer to the target (RFC 6901).
    pub path: String,
    /// Operation on the target.
    pub operator: OverriderOperator,
    /// Value for `add` and `replace`; absent counts as null. Ignored for `remove`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

/// Change of one part of image names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageOverrider {
    /// Place of the image. If absent, the images of all containers of a Pod, ReplicaSet, Deployment, DaemonSet,
    /// StatefulSet or Job are changed, without its init containers, and objects of other kinds stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ImagePredicate>,
    /// Part of the image name `[registry/]repository[:tag]` or `[registry/]repository[@digest]`.
    pub component: ImageComponent,
    /// Operation on the part: `add` appends to it.
    pub operator: OverriderOperator,
    /// Text for `add` and `replace`; ignored for `remove`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Place of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImagePredicate {
    /// JSON pointer to the image (RFC 6901).
    pub path: String,
}

/// Part of an image name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ImageComponent {
    /// Host of the registry with its port, such as `registry.example:5000`.
    Registry,
    /// Path of the repository, such as `library/nginx`.
    Repository,
    /// Tag such as `v1.19.1`, or digest such as `sha256:…`.
    Tag,
}

/// Change of the command or of the arguments of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandArgsOverrider {
    /// Name of the container; an absent container is not an error.
    pub container_name: String,
    /// Operation on the list.
    pub operator: CommandArgsOperator,
    /// Items to append, or to remove wherever they occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
}

/// Operation on a command or on arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandArgsOperator {
    /// Appends items.
    Add,
    /// Removes items.
    Remove,
}

/// Change of labels or annotations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelAnnotationOverrider {
    /// Operation on each key. `add` also replaces; `remove` and `replace` skip keys that the object does not have.
    pub operator: OverriderOperator,
    /// Keys with their values; the values are ignored for `remove`.
    pub value: BTreeMap<String, String>,
}

/// Change inside of a text that is itself a JSON or YAML document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldOverrider {
    /// JSON pointer to the text (RFC 6901), such as `/data/config.yaml`.
    pub field_path: String,
    /// Operations on a JSON document. Exactly one of `json` and `yaml` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<FieldPatchOperation>,
    /// Operations on a YAML document. The result has neither the comments nor the anchors of the original.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yaml: Vec<FieldPatchOperation>,
}

/// Operation on a document inside of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldPatchOperation {
    /// JSON pointer to the target inside of the document (RFC 6901).
    pub sub_path: String,
    /// Operation on the target.
    pub operator: OverriderOperator,
    /// Value for `add` and `replace`. Must be absent for `remove`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
}
