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
/// Rules beside `target`, as in the application failover document, are read too; a rule under `customizations` takes
/// precedence. Rules are written under `customizations` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "CustomizationSpecWire")]
pub struct CustomizationSpec {
    /// Kind that the scripts interpret.
    pub target: CustomizationTarget,
    /// Scripts of the customization.
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

/// Rule with one script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LuaRule {
    /// Lua script; an empty one means that the rule is not set.
    pub lua_script: String,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $field:ident = $wire:literal,)*) => {
        /// Rules of a customization, all optional.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct CustomizationRules {
            $(
                $(#[$doc])*
                #[serde(default, rename = $wire, skip_serializing_if = "Option::is_none")]
                pub $field: Option<LuaRule>,
            )*
        }

        impl CustomizationRules {
            /// Returns wire name and script of each rule that is set, in the order of the API.
            pub fn scripts(&self) -> impl Iterator<Item = (&'static str, &str)> {
                let rules = [$(($wire, self.$field.as_ref())),*];
                rules.into_iter().filter_map(|(name, rule)| Some((name, rule?.lua_script.as_str())))
                    .filter(|(_, script)| !script.is_empty())
            }

            /// Takes rules that are not set here from `other`.
            fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field)),* }
            }
        }
    };
}

rules! {
    /// Script that selects the fields of the member's object that win over the template.
    retention = "retention",
    /// Script that returns the number of replicas, and the requirements of one replica.
    replica_resource = "replicaResource",
    /// Script that returns replicas and requirements for each of several pod templates.
    component_resource = "componentResource",
    /// Script that changes the number of replicas.
    replica_revision = "replicaRevision",
    /// Script that extracts the status from the member's object.
    status_reflection = "statusReflection",
    /// Script that computes the template's status from those of the members.
    status_aggregation = "statusAggregation",
    /// Script that determines the health of the object.
    health_interpretation = "healthInterpretation",
    /// Script that returns the objects that the object depends on.
    dependency_interpretation = "dependencyInterpretation",
}

/// Returns a message if another customization has a script for the same kind and operation; then `new` must not be
/// stored. Scripts for dependencies never conflict. (Karmada:
/// `pkg/webhook/resourceinterpretercustomization/helper.go`.)
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
        Self {
            target: wire.target,
            customizations: wire.customizations.or(wire.beside_target),
        }
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
        assert_eq!(
            customization.spec.customizations.scripts().collect::<Vec<_>>(),
            expected
        );
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
        check(
            json!({"target": target, "healthInterpretation": rule(SCRIPT)}),
            &[("healthInterpretation", SCRIPT)],
        );
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
