//! Trust in images of plugins as objects: the rules of a trust file, for every process of a control plane.

use std::borrow::Cow;

use bulkhead_core::manifest::trust;
use bulkhead_core::manifest::trust::identity::TRUSTED_ROOT_BYTES_MAX;
use bulkhead_core::manifest::trust::object::TrustObject;
use bulkhead_core::model::{Condition, set_condition};
use kube::ResourceExt;
use kube::core::ClusterResourceScope;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::object::api_object;

api_object! {
    /// Rules about the origin of plugins: keys or identities that have to sign the images of a registry, and the calls
    /// that their plugins may answer. As soon as an object exists, an image without a rule is refused.
    PluginTrust {
        group: "bulkhead.dev",
        version: "v1alpha1",
        plural: "plugintrusts",
        scope: ClusterResourceScope,
        spec: PluginTrustSpec,
        status: PluginTrustStatus
    }
}

impl PluginTrust {
    /// Converts the object to the form that processes read.
    pub fn to_object(&self) -> TrustObject {
        TrustObject {
            name: self.name_any(),
            generation: self.metadata.generation.unwrap_or_default(),
            spec: self.spec.0.clone(),
        }
    }
}

/// `spec` of a `PluginTrust`: `rules`, `trustedRoot` and `revoked` of a trust file ([`trust::PluginTrust`]), with keys
/// as `pem` and the trusted root as `json` only. It is stored as written; [`TrustObject`] reads and validates it, so that an object with a mistake breaks no watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginTrustSpec(pub Map<String, Value>);

/// Bounds of an object. Kubernetes needs them to estimate the cost of the rules below.
const RULES_MAX: usize = 256;
const KEYS_MAX: usize = 32;
const IDENTITIES_MAX: usize = 32;
const REVOKED_MAX: usize = 1024;

impl JsonSchema for PluginTrustSpec {
    fn schema_name() -> Cow<'static, str> {
        "PluginTrustSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.root_schema_for::<trust::PluginTrust>();
        plain(&mut schema);
        let description = "Rules and revocations, as in a trust file. The rules of a trust file come first.";
        schema.insert("description".to_owned(), description.into());
        schema.insert("required".to_owned(), json!(["rules"]));
        let root_required = json!([{
            "rule": "has(self.trustedRoot) || \
                     !self.rules.exists(rule, has(rule.identities) && size(rule.identities) > 0)",
            "message": "identities need trustedRoot, which verifies their certificates",
        }]);
        schema.insert("x-kubernetes-validations".to_owned(), root_required);
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        bound(&mut schema);
        schema
    }
}

/// Removes what a structural schema cannot have, nulls, and defaults: a later release may choose a better one.
fn plain(schema: &mut Schema) {
    for key in ["default", "nullable", "uniqueItems", "additionalProperties"] {
        schema.remove(key);
    }
    schemars::transform::transform_subschemas(&mut plain, schema);
}

/// Adds checks to a part of a schema.
fn add(schema: &mut Schema, path: &str, checks: Value) {
    let field = schema.pointer_mut(path).and_then(Value::as_object_mut);
    if let (Some(field), Value::Object(checks)) = (field, checks) {
        field.extend(checks);
    }
}

/// Adds the checks that need no other part of the object. [`TrustObject`] makes all of them.
fn bound(schema: &mut Schema) {
    let rule = "/properties/rules/items/properties";
    add(schema, "/properties/rules", json!({"maxItems": RULES_MAX}));
    add(
        schema,
        "/properties/rules/items",
        json!({"x-kubernetes-validations": [
            {
                "rule": "(has(self.unsigned) && self.unsigned) != ((has(self.keys) && size(self.keys) > 0) || \
                         (has(self.identities) && size(self.identities) > 0))",
                "message": "needs either keys or identities, one of which must have signed, or unsigned: true",
            },
            {
                "rule": "!has(self.requireConformance) || !has(self.unsigned) || !self.unsigned",
                "message": "requireConformance needs keys or identities: only a signed report proves something",
            },
            {
                "rule": "!has(self.namespaces) || !has(self.kinds) || \
                         self.kinds.all(kind, kind in ['health', 'eviction-check'])",
                "message": "the plugins of namespaces may only answer health and eviction-check",
            },
        ]}),
    );
    add(
        schema,
        &format!("{rule}/images"),
        json!({
            "maxLength": 512,
            "pattern": "^[^@* ]+$",
            "x-kubernetes-validations": [{
                "rule": "!self.contains('://')",
                "message": "is not a registry or a repository; write registry.example.com/plugins",
            }],
        }),
    );
    add(schema, &format!("{rule}/kinds"), json!({"minItems": 1, "maxItems": 6}));
    add(
        schema,
        &format!("{rule}/namespaces"),
        json!({"minItems": 1, "maxItems": RULES_MAX}),
    );
    add(
        schema,
        &format!("{rule}/namespaces/items"),
        json!({"pattern": "^([a-z0-9.-]+|[a-z0-9.-]*[*])$"}),
    );
    add(
        schema,
        &format!("{rule}/requireConformance"),
        json!({"pattern": "^([^@]*@)?[0-9]+[.][0-9]+[.][0-9]+$"}),
    );
    for limit in ["memoryBytes", "steps", "wallClockMs"] {
        let path = format!("{rule}/maxBudget/properties/{limit}");
        add(schema, &path, json!({"minimum": 1}));
    }
    add(schema, "/properties/revoked", json!({"maxItems": REVOKED_MAX}));
    add(
        schema,
        "/properties/revoked/items/properties/digest",
        json!({"pattern": "^sha256:[0-9a-f]{64}$"}),
    );
    bound_signers(schema, rule);
}

/// Adds the checks of keys, identities and the trusted root.
fn bound_signers(schema: &mut Schema, rule: &str) {
    let (keys, identities) = (format!("{rule}/keys"), format!("{rule}/identities"));
    add(schema, &keys, json!({"maxItems": KEYS_MAX}));
    add(
        schema,
        &format!("{keys}/items"),
        json!({"description": "Public key of a signer.", "required": ["pem"]}),
    );
    add(
        schema,
        &format!("{keys}/items/properties/pem"),
        json!({"description": "ECDSA P-256 key in PEM.", "maxLength": 4096, "pattern": "BEGIN PUBLIC KEY"}),
    );
    add(
        schema,
        &format!("{keys}/items/properties/name"),
        json!({"description": "Name of the signer, for messages; by default the path of the key."}),
    );
    add(schema, &identities, json!({"maxItems": IDENTITIES_MAX}));
    add(
        schema,
        &format!("{identities}/items"),
        json!({
            "description": "Identity in the certificate of a signer.",
            "x-kubernetes-validations": [{
                "rule": "has(self.subject) != has(self.subjectRegex)",
                "message": "needs exactly one of subject and subjectRegex",
            }],
        }),
    );
    for field in ["issuer", "subject", "subjectRegex"] {
        let path = format!("{identities}/items/properties/{field}");
        add(schema, &path, json!({"minLength": 1, "maxLength": 1024}));
    }
    let root = "/properties/trustedRoot";
    let description = "Trusted root of Sigstore. Required if a rule has identities.";
    add(schema, root, json!({"description": description, "required": ["json"]}));
    add(
        schema,
        &format!("{root}/properties/json"),
        json!({
            "description": "Content of a file such as `trusted_root.json`.",
            "maxLength": TRUSTED_ROOT_BYTES_MAX,
        }),
    );
    for path in [format!("{keys}/items/properties"), format!("{root}/properties")] {
        if let Some(fields) = schema.pointer_mut(&path).and_then(Value::as_object_mut) {
            fields.remove("file");
        }
    }
}

/// `status` of a `PluginTrust`, as reported by the leader. No decision depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginTrustStatus {
    /// Generation of the object that the status is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Valid`: True if the object has no mistake. A part with a mistake permits nothing; the other parts count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl PluginTrustStatus {
    /// Sets a condition; the time of the last transition stays unless the status changes.
    pub fn set(&mut self, condition: Condition) {
        set_condition(&mut self.conditions, condition);
    }
}
