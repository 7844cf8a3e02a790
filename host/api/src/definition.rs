//! Definitions (CRDs) of the kinds in [`REGISTERED`], for a control plane that does not serve them yet.
//!
//! The schemas are generated from the Rust types. If a type keeps fields that it does not read, the schema preserves
//! them, so that an object written by Karmada loses nothing. The spec of a Cluster lists all of Karmada's fields and
//! admits no others, so that a typo is refused.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::kinds::{KindInfo, REGISTERED};
use crate::schemas::{HasDefinition, Schemas};
use crate::{
    Cluster, ClusterDrain, ClusterFailoverRecord, ClusterOverridePolicy, ClusterPropagationPolicy,
    ClusterResourceBinding, ClusterTaintPolicy, EvictionPause, FailoverRecord, OverridePolicy, Plugin, PluginTrust,
    PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration,
    Work, WorkloadRebalancer,
};

/// Returns the definitions of all registered kinds, in the order of [`REGISTERED`].
///
/// `Cluster` is included: without Karmada's aggregated API server it is a custom resource like the others.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    REGISTERED.iter().filter_map(definition).collect()
}

fn definition(info: &KindInfo) -> Option<CustomResourceDefinition> {
    let schemas: fn(&mut SchemaGenerator) -> Schemas = match info.kind {
        "Cluster" => Cluster::schemas,
        "PropagationPolicy" => PropagationPolicy::schemas,
        "ClusterPropagationPolicy" => ClusterPropagationPolicy::schemas,
        "OverridePolicy" => OverridePolicy::schemas,
        "ClusterOverridePolicy" => ClusterOverridePolicy::schemas,
        "ClusterTaintPolicy" => ClusterTaintPolicy::schemas,
        "ResourceBinding" => ResourceBinding::schemas,
        "ClusterResourceBinding" => ClusterResourceBinding::schemas,
        "Work" => Work::schemas,
        "ResourceInterpreterCustomization" => ResourceInterpreterCustomization::schemas,
        "ResourceInterpreterWebhookConfiguration" => ResourceInterpreterWebhookConfiguration::schemas,
        "EvictionPause" => EvictionPause::schemas,
        "ClusterDrain" => ClusterDrain::schemas,
        "Plugin" => Plugin::schemas,
        "PluginTrust" => PluginTrust::schemas,
        "WorkloadRebalancer" => WorkloadRebalancer::schemas,
        "FailoverRecord" => FailoverRecord::schemas,
        "ClusterFailoverRecord" => ClusterFailoverRecord::schemas,
        _ => return None,
    };
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .with_transform(AnyValue)
        .with_transform(KnownFormat)
        .into_generator();
    let schemas = schemas(&mut generator);
    let mut properties = json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    });
    for (field, schema) in schemas.fields {
        properties[field] = untitled(schema);
    }
    let definition = json!({
        "metadata": {
            "name": format!("{}.{}", info.plural, info.group),
        },
        "spec": {
            "group": info.group,
            "names": {
                "kind": info.kind,
                "listKind": format!("{}List", info.kind),
                "plural": info.plural,
                "singular": info.singular,
                "shortNames": info.short_names,
                "categories": info.categories,
            },
            "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": info.version,
                "served": true,
                "storage": true,
                "subresources": if info.status_subresource { json!({"status": {}}) } else { Value::Null },
                "additionalPrinterColumns": columns(info.kind),
                "schema": {"openAPIV3Schema": {
                    "description": schemas.description,
                    "type": "object",
                    "required": [schemas.required],
                    "properties": properties,
                }},
            }],
        },
    });
    serde_json::from_value(definition).ok()
}

fn untitled(mut schema: Schema) -> Value {
    schema.remove("title");
    schema.to_value()
}

/// Returns the columns of `kubectl get`.
fn columns(kind: &str) -> Vec<Value> {
    let condition = |type_: &str| format!(".status.conditions[?(@.type==\"{type_}\")].status");
    let text = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let wide = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path, "priority": 1});
    let mut columns = match kind {
        "Cluster" => vec![
            text("Version", ".status.kubernetesVersion"),
            text("Mode", ".spec.syncMode"),
            text("Ready", &condition("Ready")),
            wide("Zones", ".spec.zones"),
            wide("Region", ".spec.region"),
            wide("Provider", ".spec.provider"),
            wide("APIEndpoint", ".spec.apiEndpoint"),
        ],
        "PropagationPolicy" | "ClusterPropagationPolicy" => vec![
            text("Conflict-Resolution", ".spec.conflictResolution"),
            json!({"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"}),
        ],
        "ResourceBinding" | "ClusterResourceBinding" => {
            vec![
                text("Scheduled", &condition("Scheduled")),
                text("FullyApplied", &condition("FullyApplied")),
            ]
        }
        "Work" => vec![
            text("Workload-Kind", ".spec.workload.manifests[*].kind"),
            text("Workload-Name", ".spec.workload.manifests[*].metadata.name"),
            text("Applied", &condition("Applied")),
        ],
        "ResourceInterpreterCustomization" => {
            vec![
                text("Target-API-Version", ".spec.target.apiVersion"),
                text("Target-Kind", ".spec.target.kind"),
            ]
        }
        "EvictionPause" => vec![text("Until", ".spec.until"), text("Reason", ".spec.reason")],
        "ClusterDrain" => vec![
            text("Cluster", ".spec.clusterName"),
            text("Phase", ".status.phase"),
            json!({"name": "Bindings-Left", "type": "integer", "jsonPath": ".status.bindingsLeft"}),
            json!({"name": "Copies-Left", "type": "integer", "jsonPath": ".status.copiesLeft"}),
        ],
        "FailoverRecord" | "ClusterFailoverRecord" => vec![
            text("State", ".status.steps[-1:].state"),
            text("From", ".status.steps[-1:].from"),
            text("Reason", ".status.steps[-1:].reason"),
            json!({"name": "Evicted", "type": "integer", "jsonPath": ".status.evicted"}),
            json!({"name": "Since", "type": "date", "jsonPath": ".status.steps[-1:].time"}),
            wide("Leaving", ".status.leaving"),
            wide("Message", ".status.steps[-1:].message"),
        ],
        "Plugin" => vec![
            text("Loaded", &condition("Loaded")),
            text("Answering", &condition("Answering")),
            text("Version", ".status.version"),
            text("Mode", ".spec.mode"),
            wide("SHA-256", ".status.sha256"),
        ],
        "PluginTrust" => vec![
            text("Valid", &condition("Valid")),
            // A column has one value, so the prefixes of the rules do not fit.
            wide("Message", ".status.conditions[?(@.type==\"Valid\")].message"),
        ],
        _ => Vec::new(),
    };
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    columns
}

/// Schema transform that marks "any value" as a structural schema requires.
#[derive(Clone)]
struct AnyValue;

impl Transform for AnyValue {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let says = |key: &str| schema.get(key).is_some();
        let closed = [
            "type",
            "properties",
            "enum",
            "anyOf",
            "oneOf",
            "allOf",
            "x-kubernetes-int-or-string",
        ];
        if schema.as_bool() == Some(true) || !closed.into_iter().any(says) {
            schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
        }
    }
}

/// Schema transform that removes the formats of unsigned integers, which Kubernetes does not know and warns about. The
/// minimum stays.
#[derive(Clone)]
struct KnownFormat;

impl Transform for KnownFormat {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let is_unsigned = schema
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| format.starts_with("uint"));
        if is_unsigned {
            schema.remove("format");
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::AggregatedStatusItem;

    use super::*;

    fn schema(kind: &str) -> Value {
        let definitions = definitions();
        let definition = definitions
            .iter()
            .find(|definition| definition.spec.names.kind == kind)
            .unwrap();
        serde_json::to_value(&definition.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone()
    }

    #[test]
    fn every_registered_kind_has_a_definition() {
        let names: Vec<_> = definitions()
            .into_iter()
            .map(|definition| definition.spec.names.kind)
            .collect();
        let registered: Vec<_> = REGISTERED.iter().map(|info| info.kind.to_owned()).collect();
        assert_eq!(names, registered, "definition() does not know every kind of kinds.rs");
    }

    #[test]
    fn schemas_are_structural() {
        fn check(schema: &Value, path: &str) {
            let has = |key: &str| schema.get(key).is_some();
            let open = has("x-kubernetes-preserve-unknown-fields") || has("x-kubernetes-int-or-string");
            assert!(
                schema["type"].is_string() || open,
                "{path}: a type is missing: {schema}"
            );
            for key in ["$ref", "anyOf", "oneOf", "allOf", "const"] {
                assert!(!has(key), "{path}: {key} is not structural: {schema}");
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                check(property, &format!("{path}.{name}"));
            }
            for inner in ["items", "additionalProperties"] {
                if has(inner) {
                    check(&schema[inner], &format!("{path}.{inner}"));
                }
            }
        }
        for info in REGISTERED {
            check(&schema(info.kind), info.kind);
        }
    }

    #[test]
    fn kubernetes_knows_every_format() {
        fn formats(schema: &Value, found: &mut Vec<String>) {
            found.extend(schema["format"].as_str().map(str::to_owned));
            let inner = [&schema["items"], &schema["additionalProperties"]];
            let properties = schema["properties"]
                .as_object()
                .into_iter()
                .flat_map(|properties| properties.values());
            properties
                .chain(inner)
                .filter(|inner| inner.is_object())
                .for_each(|inner| formats(inner, found));
        }
        for info in REGISTERED {
            let mut found = Vec::new();
            formats(&schema(info.kind), &mut found);
            found.retain(|format| !["int32", "int64", "float", "double", "date-time"].contains(&format.as_str()));
            assert_eq!(found, [""; 0], "{}", info.kind);
        }
    }

    #[test]
    fn fields_that_we_do_not_read_survive() {
        for (kind, pointer) in [
            ("Cluster", "/properties/status"),
            ("ResourceBinding", "/properties/spec"),
            (
                "PropagationPolicy",
                "/properties/spec/properties/placement/properties/workloadAffinity",
            ),
        ] {
            let schema = schema(kind);
            let kept = &schema.pointer(pointer).unwrap()["x-kubernetes-preserve-unknown-fields"];
            assert_eq!(kept, true, "{kind}{pointer}");
        }
    }

    /// Karmada: `pkg/apis/cluster/v1alpha1/types.go:ClusterSpec`.
    #[test]
    fn the_spec_of_a_cluster_has_karmadas_fields_and_no_other() {
        let schema = schema("Cluster");
        let spec = &schema["properties"]["spec"];
        let fields: Vec<_> = spec["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = [
            "apiEndpoint",
            "id",
            "impersonatorSecretRef",
            "insecureSkipTLSVerification",
            "provider",
            "proxyHeader",
            "proxyURL",
            "region",
            "resourceModels",
            "secretRef",
            "syncMode",
            "taints",
            "zone",
            "zones",
        ];
        assert_eq!(fields, expected);
        assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], Value::Null);
        let range = &spec["properties"]["resourceModels"]["items"]["properties"]["ranges"]["items"];
        assert_eq!(
            range["properties"]["min"]["x-kubernetes-int-or-string"], true,
            "{range}"
        );
        assert_eq!(
            spec["properties"]["secretRef"]["required"],
            json!(["name", "namespace"])
        );
    }

    /// Karmada: `pkg/apis/work/v1alpha2/binding_types.go:AggregatedStatusItem`.
    #[test]
    fn a_report_in_a_binding_names_its_cluster() {
        for kind in ["ResourceBinding", "ClusterResourceBinding"] {
            let schema = schema(kind);
            let report = schema
                .pointer("/properties/status/properties/aggregatedStatus/items")
                .unwrap();
            assert_eq!(report["required"], json!(["clusterName"]), "{kind}");
            assert_eq!(report["properties"]["clusterName"]["default"], Value::Null, "{kind}");
            assert_eq!(report["properties"]["clusterName"]["type"], "string", "{kind}");
        }
        // Karmada's files of interpreter cases have reports without a name.
        let report: AggregatedStatusItem = serde_json::from_value(json!({"health": "Healthy"})).unwrap();
        assert_eq!(report.cluster_name, "");
    }

    #[test]
    fn a_plugin_has_the_fields_of_a_list_and_no_defaults() {
        let schema = schema("Plugin");
        let spec = &schema["properties"]["spec"];
        let fields = spec["properties"].as_object().unwrap();
        for field in [
            "breaker", "budget", "config", "fallback", "kinds", "lua", "mode", "scores", "sha256", "wasm",
        ] {
            assert!(fields.contains_key(field), "{field}: {:?}", fields.keys());
        }
        assert!(
            !fields.contains_key("name") && !spec.to_string().contains("\"default\""),
            "{spec:#}"
        );
    }

    #[test]
    fn the_schema_of_a_trust_has_keys_as_pem_only_and_bounds_that_kubernetes_accepts() {
        let schema = schema("PluginTrust");
        let spec = &schema["properties"]["spec"];
        assert_eq!(spec["required"], json!(["rules"]));
        let fields: Vec<_> = spec["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["revoked", "rules", "trustedRoot"]);
        let root = &spec["properties"]["trustedRoot"];
        assert_eq!(
            (&root["required"], &root["properties"]["file"]),
            (&json!(["json"]), &Value::Null)
        );
        let rule = &spec["properties"]["rules"]["items"];
        let key = &rule["properties"]["keys"]["items"];
        let fields: Vec<_> = key["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "pem"]);
        assert_eq!(key["required"], json!(["pem"]));
        assert_eq!(rule["x-kubernetes-validations"].as_array().map(Vec::len), Some(3));
        assert_eq!(rule["properties"]["maxBudget"]["properties"]["steps"]["minimum"], 1.0);
        for word in ["uniqueItems", "nullable", "\"default\"", "additionalProperties"] {
            assert!(!spec.to_string().contains(word), "{word}: {spec:#}");
        }
        for list in [
            &spec["properties"]["rules"],
            &spec["properties"]["revoked"],
            &rule["properties"]["keys"],
            &rule["properties"]["identities"],
        ] {
            assert!(list["maxItems"].is_number(), "{list:#}");
        }
    }

    #[test]
    fn a_taint_policy_keeps_unknown_fields_at_every_level() {
        fn closed(schema: &Value, path: &str, found: &mut Vec<String>) {
            let fields = schema["properties"].as_object();
            if fields.is_some() && schema["x-kubernetes-preserve-unknown-fields"] != true {
                found.push(path.to_owned());
            }
            for (name, field) in fields.into_iter().flatten() {
                closed(field, &format!("{path}.{name}"), found);
            }
            if schema["items"].is_object() {
                closed(&schema["items"], &format!("{path}[]"), found);
            }
        }
        let schema = schema("ClusterTaintPolicy");
        let spec = &schema["properties"]["spec"];
        let mut found = Vec::new();
        closed(spec, "spec", &mut found);
        assert_eq!(found, [""; 0]);
        for name in [
            "targetClusters",
            "targetCluster",
            "matchConditions",
            "taintsToAdd",
            "addOnConditions",
            "taints",
        ] {
            assert!(spec["properties"][name].is_object(), "{name}");
        }
        let operator = "/properties/matchConditions/items/properties/operator/enum";
        assert_eq!(spec.pointer(operator), Some(&json!(["In", "NotIn"])));
        let default = "/properties/taintsToAdd/items/properties/addOnMatchSeconds/default";
        assert_eq!(spec.pointer(default), Some(&json!(300)));
        assert_eq!(
            spec.pointer("/properties/taints/items/properties/addOnMatchSeconds/default"),
            None
        );
    }

    #[test]
    fn the_bounds_of_cluster_failover_are_those_of_policies_and_not_of_bindings() {
        let of = |kind: &str, field: &str| {
            let schema = schema(kind);
            schema
                .pointer("/properties/spec/properties/failover/properties/cluster")
                .unwrap()[field]
                .clone()
        };
        for kind in ["PropagationPolicy", "ClusterPropagationPolicy"] {
            assert_eq!(of(kind, "properties")["gracePeriodSeconds"]["minimum"], 1.0, "{kind}");
            assert_eq!(of(kind, "properties")["tolerationSeconds"]["minimum"], 0.0, "{kind}");
            assert!(of(kind, "x-kubernetes-validations").is_array(), "{kind}");
        }
        assert_eq!(
            of("ResourceBinding", "properties")["gracePeriodSeconds"]["minimum"],
            Value::Null
        );
        assert_eq!(of("ResourceBinding", "x-kubernetes-validations"), Value::Null);
    }

    #[test]
    fn both_spellings_of_a_purge_mode_are_accepted_and_each_is_named_once() {
        let schema = schema("PropagationPolicy");
        let modes = &schema.pointer("/properties/spec/properties/failover/properties/cluster/properties/purgeMode");
        let modes = modes.unwrap()["enum"].as_array().unwrap();
        assert_eq!(
            modes,
            json!(["Directly", "Immediately", "Gracefully", "Graciously", "Never"])
                .as_array()
                .unwrap()
        );
    }
}
