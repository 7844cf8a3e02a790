//! Plugins as objects: `kubectl apply` is enough to activate one.

use std::borrow::Cow;

use bulkhead_core::manifest::{PluginManifest, PluginObject};
use bulkhead_core::model::{Condition, set_condition};
use kube::ResourceExt;
use kube::core::ClusterResourceScope;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::object::api_object;

api_object! {
    /// Policy plugin with its code: a Lua script, or a Wasm component in base64.
    Plugin {
        group: "bulkhead.dev",
        version: "v1alpha1",
        plural: "plugins",
        scope: ClusterResourceScope,
        spec: PluginSpec,
        status: PluginStatus
    }
}

impl Plugin {
    /// Converts the plugin to the form that catalogs use.
    pub fn to_object(&self) -> PluginObject {
        let generation = self.metadata.generation.unwrap_or_default();
        PluginObject {
            name: self.name_any(),
            generation,
            spec: self.spec.0.clone(),
        }
    }
}

/// `spec` of a `Plugin`: the fields of [`PluginManifest`] except its name, with the code itself in `lua` or `wasm`.
/// It is stored as written; [`PluginObject`] reads and validates it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginSpec(pub Map<String, Value>);

impl JsonSchema for PluginSpec {
    fn schema_name() -> Cow<'static, str> {
        "PluginSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.root_schema_for::<PluginManifest>();
        // A later release may choose a better default for an absent field, so no default is written into objects.
        without_defaults(&mut schema);
        schema.remove("required");
        schema.remove("additionalProperties");
        let description = "Specification of the plugin. Exactly one of wasm and lua must be set.";
        schema.insert("description".to_owned(), description.into());
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.remove("name");
            let text = |description: &str| json!({"type": "string", "description": description, "minLength": 1});
            fields.insert("lua".to_owned(), text("The script."));
            fields.insert("wasm".to_owned(), text("The component, in base64."));
        }
        schema
    }
}

fn without_defaults(schema: &mut Schema) {
    schema.remove("default");
    schemars::transform::transform_subschemas(&mut without_defaults, schema);
}

/// `status` of a `Plugin`, as reported by the leader. No decision depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// Generation of the object that the status is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Loaded`: True if the newest version is in force. `Answering`: True if a version is called and its answers are
    /// used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Version in force, as the plugin declares it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// SHA-256 of the code in force, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Warnings for the author of a plugin that loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl PluginStatus {
    /// Sets a condition; the time of the last transition stays unless the status changes.
    pub fn set(&mut self, condition: Condition) {
        set_condition(&mut self.conditions, condition);
    }
}
