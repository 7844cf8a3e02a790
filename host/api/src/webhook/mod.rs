//! Webhooks that interpret resources
//! (Karmada: `pkg/apis/config/v1alpha1/resourceinterpreterwebhook_types.go`).
//!
//! [`Hook::matches`] decides whether a hook answers an operation, and [`choose`] selects the hook to call.
//! [`context`] defines requests and responses; [`serve`] answers as such a hook. Requests are not sent here.

pub mod context;
pub mod serve;

use bulkhead_core::names::split_api_version;
use kube::Resource;
use kube::core::{ClusterResourceScope, ObjectMeta};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::object::null_is_default;
use crate::schemas::{HasDefinition, Schemas};

/// Wildcard of a rule.
const ALL: &str = "*";

/// Configuration of interpreter hooks, which has no `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ResourceInterpreterWebhookConfiguration {
    /// Kubernetes metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The hooks.
    #[serde(default, deserialize_with = "null_is_default")]
    pub webhooks: Vec<Hook>,
}

/// Webhook that interprets objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// Name, unique in its configuration.
    #[serde(default)]
    pub name: String,
    /// Address of the hook.
    #[serde(default)]
    pub client_config: ClientConfig,
    /// Operations and kinds that the hook answers; none if empty.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Timeout of a call, 1 to 30 seconds. Absent is 30: Karmada documents a default of 10 but does not apply it
    /// either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// Versions of [`context`] that the hook understands; only `v1alpha1` exists.
    #[serde(default, deserialize_with = "null_is_default")]
    pub interpreter_context_versions: Vec<String>,
}

/// Address of a hook: exactly one of a URL and a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Full URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Service of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceReference>,
    /// CA certificates for verifying the server, as PEM in base64. Absent means those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// Reference to a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceReference {
    /// Namespace of the Service.
    #[serde(default)]
    pub namespace: String,
    /// Name of the Service.
    #[serde(default)]
    pub name: String,
    /// Path of the URL; begins with a slash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Port of the Service; 443 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Operations on kinds; each list may contain `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Names of operations.
    #[serde(default, deserialize_with = "null_is_default")]
    pub operations: Vec<String>,
    /// API groups; the core group is the empty string.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_groups: Vec<String>,
    /// API versions.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_versions: Vec<String>,
    /// Kinds.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kinds: Vec<String>,
}

impl HasDefinition for ResourceInterpreterWebhookConfiguration {
    fn schemas(generator: &mut SchemaGenerator) -> Schemas {
        Schemas {
            description: "Webhooks that interpret objects.".to_owned(),
            required: "webhooks",
            fields: vec![("webhooks", generator.root_schema_for::<Vec<Hook>>())],
        }
    }
}

impl Hook {
    /// Returns true if the hook answers an operation on objects of a kind. Names are compared exactly; `*` matches at
    /// any position of a list. (Karmada: `pkg/util/interpreter/matcher.go`.)
    pub fn matches(&self, operation: &str, api_version: &str, kind: &str) -> bool {
        let (group, version) = split_api_version(api_version);
        let has = |list: &[String], wanted: &str| list.iter().any(|entry| entry == ALL || entry == wanted);
        self.rules.iter().any(|rule| {
            has(&rule.operations, operation)
                && has(&rule.api_groups, group)
                && has(&rule.api_versions, version)
                && has(&rule.kinds, kind)
        })
    }
}

/// Returns the hook to call, with its name as `configuration/hook`. Among matching hooks it is the one whose name
/// sorts first; no other is called in its place. (Karmada: `customized/webhook/customized.go`.)
pub fn choose<'a>(
    configurations: impl IntoIterator<Item = &'a ResourceInterpreterWebhookConfiguration>,
    operation: &str,
    api_version: &str,
    kind: &str,
) -> Option<(String, &'a Hook)> {
    let hooks = configurations.into_iter().flat_map(|configuration| {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        configuration
            .webhooks
            .iter()
            .map(move |hook| (format!("{name}/{}", hook.name), hook))
    });
    hooks
        .filter(|(_, hook)| hook.matches(operation, api_version, kind))
        .min_by(|left, right| left.0.cmp(&right.0))
}

impl Resource for ResourceInterpreterWebhookConfiguration {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "ResourceInterpreterWebhookConfiguration".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "config.karmada.io".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "resourceinterpreterwebhookconfigurations".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Serializes `apiVersion` and `kind` too, which a body sent to an API server needs.
impl Serialize for ResourceInterpreterWebhookConfiguration {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("ResourceInterpreterWebhookConfiguration", 4)?;
        object.serialize_field("apiVersion", "config.karmada.io/v1alpha1")?;
        object.serialize_field("kind", "ResourceInterpreterWebhookConfiguration")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("webhooks", &self.webhooks)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn configuration(name: &str, hooks: Value) -> ResourceInterpreterWebhookConfiguration {
        serde_json::from_value(json!({"metadata": {"name": name}, "webhooks": hooks})).unwrap()
    }

    #[test]
    fn a_rule_matches_exactly_or_by_a_star() {
        let check = |operations: Value, groups: Value, versions: Value, kinds: Value, expected: bool| {
            let rule = json!({"operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": kinds});
            let one = configuration("c", json!([{"name": "h", "rules": [rule]}]));
            assert_eq!(
                one.webhooks[0].matches("Retain", "example.io/v1", "Widget"),
                expected,
                "{rule}"
            );
        };
        let star = || json!(["*"]);
        check(
            json!(["Retain"]),
            json!(["example.io"]),
            json!(["v1"]),
            json!(["Widget"]),
            true,
        );
        check(json!(["InterpretHealth", "*"]), star(), star(), star(), true);
        check(star(), star(), json!(["v2"]), star(), false);
        check(star(), star(), star(), json!(["widget"]), false);
        check(star(), json!(["example.*"]), star(), star(), false);
        check(json!(null), star(), star(), star(), false);
    }

    #[test]
    fn the_name_that_sorts_first_is_asked() {
        let hook = |name: &str, kinds: &str| {
            let rule = json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": [kinds]});
            json!({"name": name, "rules": [rule]})
        };
        let configurations = [
            configuration("b", json!([hook("a", "*")])),
            configuration("a", json!([hook("z", "*"), hook("b", "Service"), hook("y", "Pod")])),
        ];
        let chosen = |kind: &str| choose(&configurations, "Retain", "v1", kind).map(|(name, _)| name);
        assert_eq!(chosen("Pod").as_deref(), Some("a/y"));
        assert_eq!(chosen("Service").as_deref(), Some("a/b"));
        assert_eq!(choose(&configurations, "Retain", "apps/v1", "Deployment"), None);
    }

    #[test]
    fn a_configuration_is_written_as_it_was_read() {
        let object = json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "h.example.io",
                "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 8443}, "caBundle": "YQ=="},
                "rules": [{"operations": ["Retain"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["Pod"]}],
                "timeoutSeconds": 3,
                "interpreterContextVersions": ["v1alpha1"],
            }],
        });
        let read: ResourceInterpreterWebhookConfiguration = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), object);
    }
}
