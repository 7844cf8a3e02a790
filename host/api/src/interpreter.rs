//! Lua customizations of the resource interpreter
//! (Karmada: `pkg/apis/config/v1alpha1/resourceinterpretercustomization_types.go`).

use kube::core::ClusterResourceScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::api_object;

api_object! {
    /// Lua scripts that interpret one kind of object.
    ResourceInterpreterCustomization {
        group: "config.karmada.io",
        version: "v1alpha1",
        plural: "resourceinterpretercustomizations",
        scope: ClusterResourceScope,
        spec: CustomizationSpec
    }
}

/// `spec` of a [`ResourceInterpreterCustomization`].
///
/// Rules are also read from beside `target`, where the application failover document puts them; a rule under
/// `customizations` wins. They are written under `customizations` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "CustomizationSpecWire")]
pub struct CustomizationSpec {
    /// The kind the scripts are for.
    pub target: CustomizationTarget,
    /// The scripts.
    pub customizations: CustomizationRules,
}

/// `spec.target`, compared exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizationTarget {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LuaRule {
    /// The script; an empty one means that the rule is not set.
    pub lua_script: String,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $field:ident = $wire:literal,)*) => {
        /// The rules of a customization, all optional.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct CustomizationRules {
            $(
                $(#[$doc])*
                #[serde(default, rename = $wire, skip_serializing_if = "Option::is_none")]
                pub $field: Option<LuaRule>,
            )*
        }

        impl CustomizationRules {
            /// The name on the wire and the script of each rule that is set, in the API's order.
            pub fn scripts(&self) -> impl Iterator<Item = (&'static str, &str)> {
                let rules = [$(($wire, self.$field.as_ref())),*];
                rules.into_iter().filter_map(|(name, rule)| Some((name, rule?.lua_script.as_str())))
                    .filter(|(_, script)| !script.is_empty())
            }

            /// Takes from `other` what is not here.
            fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field)),* }
            }
        }
    };
}

rules! {
    /// Which fields of the member's object win over the template.
    retention = "retention",
    /// How many replicas the object wants, and what one of them needs.
    replica_resource = "replicaResource",
    /// The same for several pod templates.
    component_resource = "componentResource",
    /// The object with another number of replicas.
    replica_revision = "replicaRevision",
    /// Which part of the member's object is its status.
    status_reflection = "statusReflection",
    /// The template's status from those of the members.
    status_aggregation = "statusAggregation",
    /// Whether the object does its work.
    health_interpretation = "healthInterpretation",
    /// What the object needs beside it.
    dependency_interpretation = "dependencyInterpretation",
}

/// What a customization must not be stored for: another one has a script for the same kind and operation. Scripts for
/// dependencies never conflict. (Karmada: `pkg/webhook/resourceinterpretercustomization/helper.go`.)
pub fn conflict(
    new: &ResourceInterpreterCustomization,
    existing: &[ResourceInterpreterCustomization],
) -> Option<String> {
    let others = existing.iter().filter(|other| other.metadata.name != new.metadata.name);
    for other in others.filter(|other| other.spec.target == new.spec.target) {
        let taken = |rule: &str| other.spec.customizations.scripts().any(|(other, _)| other == rule);
        let mut rules = new.spec.customizations.scripts().map(|(rule, _)| rule);
        if let Some(rule) = rules.find(|rule| *rule != "dependencyInterpretation" && taken(rule)) {
            let name = other.metadata.name.as_deref().unwrap_or_default();
            let message = format!("conflicting with {rule} of existing ResourceInterpreterCustomization({name})");
            return Some(message);
        }
    }
    None
}

#[derive(Deserialize, JsonSchema)]
struct CustomizationSpecWire {
    target: CustomizationTarget,
    #[serde(default)]
    customizations: CustomizationRules,
    #[serde(flatten)]
    beside_target: CustomizationRules,
}

impl From<CustomizationSpecWire> for CustomizationSpec {
    fn from(wire: CustomizationSpecWire) -> Self {
        Self { target: wire.target, customizations: wire.customizations.or(wire.beside_target) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SCRIPT: &str = "function InterpretHealth(observedObj)\n\
                          return observedObj.status.readyReplicas == observedObj.spec.replicas\nend";

    fn check(spec: Value, expected: &[(&str, &str)]) {
        let object = json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": "declarative-configuration-example"},
            "spec": spec,
        });
        let customization: ResourceInterpreterCustomization = serde_json::from_value(object).unwrap();
        assert_eq!(customization.spec.customizations.scripts().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rules_are_read_from_both_places() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        let rule = |script: &str| json!({"luaScript": script});
        check(json!({"target": target}), &[]);
        check(
            json!({"target": target, "customizations": {"healthInterpretation": rule(SCRIPT)}}),
            &[("healthInterpretation", SCRIPT)],
        );
        check(json!({"target": target, "healthInterpretation": rule(SCRIPT)}), &[("healthInterpretation", SCRIPT)]);
        check(
            json!({
                "target": target,
                "customizations": {"healthInterpretation": rule("new"), "retention": rule("")},
                "healthInterpretation": rule("old"),
                "replicaResource": rule("replicas"),
            }),
            &[("replicaResource", "replicas"), ("healthInterpretation", "new")],
        );
    }

    #[test]
    fn the_document_shape_is_written_as_the_current_one() {
        let spec = json!({
            "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "healthInterpretation": {"luaScript": SCRIPT},
        });
        let spec: CustomizationSpec = serde_json::from_value(spec).unwrap();
        let expected = json!({
            "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "customizations": {"healthInterpretation": {"luaScript": SCRIPT}},
        });
        assert_eq!(serde_json::to_value(spec).unwrap(), expected);
    }
}
