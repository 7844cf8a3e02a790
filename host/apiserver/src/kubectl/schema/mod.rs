//! Structural schemas: the fields that an object may have, and their values.
//!
//! Kubernetes' own kinds are described in [`builtin`], other kinds by their definitions. Validation covers types,
//! required fields, enumerations, bounds, lengths, patterns, formats, alternatives and rules. An object is decoded,
//! defaulted and validated, in this order. An applied configuration is only decoded, because defaults have no owner.

pub(crate) mod builtin;
mod check;
mod defaults;
mod definition;
mod formats;
mod pattern;
mod rules;

use serde_json::{Map, Value};

use crate::cause::Cause;
use crate::kind::ResourceKind;
use crate::status_error::StatusError;

pub(crate) use definition::check_definition;

/// Treatment of fields that the schema does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    /// They are dropped silently.
    Ignore,
    /// They are dropped and reported to the client as warnings.
    Warn,
    /// The request is rejected.
    Refuse,
}

impl UnknownFields {
    /// Reads the query parameter `fieldValidation`.
    pub(crate) fn parse(text: &str) -> Result<Self, StatusError> {
        match text {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Refuse),
            other => Err(StatusError::bad_request(format!(
                "fieldValidation parameter unsupported: \"{other}\"; there are Ignore, Strict, Warn"
            ))),
        }
    }
}

/// A node of a schema, with references resolved.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'a> {
    node: &'a Value,
}

impl<'a> Schema<'a> {
    pub(crate) fn new(node: &'a Value) -> Self {
        Self { node: followed(node) }
    }

    /// Returns the schema of a kind, if it has one.
    pub(crate) fn of(kind: &'a ResourceKind) -> Option<Self> {
        match &kind.schema {
            Some(schema) => Some(Self::new(schema)),
            None => builtin::schema(kind).map(Self::new),
        }
    }

    fn says(self, key: &str) -> bool {
        self.node[key] == true
    }

    fn keeps_unknown(self) -> bool {
        self.says("x-kubernetes-preserve-unknown-fields") || self.node.as_object().is_none_or(Map::is_empty)
    }

    /// Returns the schema of a field: of a declared one, or of every entry of a map.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let declared = self.node["properties"]
            .get(name)
            .or_else(|| self.node.get("additionalProperties"));
        declared.filter(|schema| schema.is_object()).map(Self::new)
    }

    /// Returns true if null means that the value is absent.
    fn drops_null(self) -> bool {
        !self.says("nullable") && !self.keeps_unknown()
    }

    fn declares(self, name: &str) -> bool {
        self.node["properties"].get(name).is_some()
    }

    pub(crate) fn items(self) -> Option<Self> {
        self.node.get("items").map(Self::new)
    }

    /// Returns `x-kubernetes-list-type`, if set.
    pub(crate) fn list_type(self) -> Option<&'a str> {
        self.node["x-kubernetes-list-type"].as_str()
    }

    /// Returns `x-kubernetes-list-map-keys`.
    pub(crate) fn list_keys(self) -> Vec<&'a str> {
        self.node["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Returns true if a map is atomic.
    pub(crate) fn is_atomic_map(self) -> bool {
        self.node["x-kubernetes-map-type"] == "atomic"
    }

    /// Sets the defaults of missing fields.
    fn complete(self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, property) in self.node["properties"].as_object().into_iter().flatten() {
                    if let Some(default) = property.get("default").filter(|_| !fields.contains_key(name)) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, inner) in fields.iter_mut() {
                    if let Some(schema) = self.field(name) {
                        schema.complete(inner);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = self.items() {
                    for item in items {
                        schema.complete(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops undeclared fields and records their paths. Drops declared fields that are null, which means the same as
    /// their absence, unless they are nullable.
    fn prune(self, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                let keeps = self.keeps_unknown() || self.says("x-kubernetes-embedded-resource");
                fields.retain(|name, inner| {
                    let path = join(path, name);
                    match self.field(name) {
                        Some(schema) if inner.is_null() && self.declares(name) && schema.drops_null() => {
                            return false;
                        }
                        Some(schema) => schema.prune(inner, &path, unknown),
                        None if keeps || self.node.get("additionalProperties").is_some() => {}
                        // A map whose entries are not described accepts any value.
                        None if self.node.get("properties").is_none() => {}
                        None => {
                            unknown.push(path);
                            return false;
                        }
                    }
                    true
                });
            }
            Value::Array(items) => {
                if let Some(schema) = self.items() {
                    for (index, item) in items.iter_mut().enumerate() {
                        schema.prune(item, &format!("{path}[{index}]"), unknown);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Drops fields that the schema of a kind does not declare. Returns warnings for the client.
///
/// # Errors
///
/// 400 for unknown fields if they are rejected.
pub(crate) fn decode(kind: &ResourceKind, object: &mut Value, mode: UnknownFields) -> Result<Vec<String>, StatusError> {
    let unknown = drop_unknown(kind, object);
    let messages: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if mode == UnknownFields::Refuse && !messages.is_empty() {
        let why = format!("strict decoding error: {}", messages.join(", "));
        return Err(StatusError::undecodable(kind, &why, Vec::new()));
    }
    Ok(if mode == UnknownFields::Warn {
        messages
    } else {
        Vec::new()
    })
}

/// Drops fields that the schema of a kind does not declare, and returns their paths.
pub(crate) fn drop_unknown(kind: &ResourceKind, object: &mut Value) -> Vec<String> {
    let Some(schema) = Schema::of(kind) else {
        return Vec::new();
    };
    let mut unknown = Vec::new();
    // Definitions need not declare the fields that every object has.
    let taken = ["apiVersion", "kind", "metadata"].map(|field| object.as_object_mut()?.remove_entry(field));
    schema.prune(object, "", &mut unknown);
    for (field, mut value) in taken.into_iter().flatten() {
        if field == "metadata" {
            Schema::new(builtin::object_meta()).prune(&mut value, "metadata", &mut unknown);
        }
        object[field] = value;
    }
    unknown
}

/// Sets the defaults of missing fields.
pub(crate) fn complete(kind: &ResourceKind, object: &mut Value) {
    match &kind.schema {
        Some(schema) => Schema::new(schema).complete(object),
        None => defaults::complete(kind, object),
    }
}

/// Result of a validation.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Invalid fields.
    pub(crate) causes: Vec<Cause>,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// Validates an object against the schema of its kind. As in Kubernetes, parts that equal those of the stored object
/// are not validated again.
///
/// # Errors
///
/// 400 for values of a wrong type in Kubernetes' own kinds.
pub(crate) fn check(kind: &ResourceKind, object: &Value, old: Option<&Value>) -> Result<Checked, StatusError> {
    let Some(schema) = Schema::of(kind) else {
        return Ok(Checked::default());
    };
    let mut wrong = Vec::new();
    let before = |field: &str| old.and_then(|old| old.get(field));
    Schema::new(builtin::object_meta()).check(&object["metadata"], before("metadata"), "metadata", &mut wrong);
    for (field, value) in object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| *field != "metadata")
    {
        if let Some(inner) = schema.field(field) {
            inner.check(value, before(field), field, &mut wrong);
        }
    }
    let Some(own) = &kind.schema else {
        // The required fields of Kubernetes' own kinds depend on more than the schema, so only those below `spec` are
        // checked. A status is written by controllers.
        let is_judged = |wrong: &Cause| wrong.reason != "FieldValueRequired" || wrong.field.starts_with("spec.");
        wrong.retain(is_judged);
        let mistyped: Vec<Cause> = wrong
            .iter()
            .filter(|wrong| wrong.reason == "FieldValueTypeInvalid")
            .cloned()
            .collect();
        if let Some(first) = mistyped.first() {
            let why = format!("{} {}", first.field, first.message);
            return Err(StatusError::undecodable(kind, &why, mistyped));
        }
        return Ok(Checked {
            causes: wrong,
            warnings: Vec::new(),
        });
    };
    for name in schema.node["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if object.get(name).is_none_or(Value::is_null) {
            wrong.push(Cause::required(name, ""));
        }
    }
    schema.check_alternatives(object, "", &mut wrong);
    let mut checked = Checked {
        causes: wrong,
        warnings: Vec::new(),
    };
    if kind.has_rules {
        rules::check(own, object, old, &mut checked);
    }
    Ok(checked)
}

fn followed(node: &Value) -> &Value {
    let mut node = node;
    loop {
        // A reference may be wrapped in a list of one element, next to a description.
        let inner = node
            .get("$ref")
            .or_else(|| node["allOf"].as_array()?.first()?.get("$ref"));
        match inner.and_then(Value::as_str).and_then(builtin::referenced) {
            Some(next) => node = next,
            None => return node,
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn widget() -> ResourceKind {
        let mut kind = ResourceKind::namespaced("example.io", "v1", "Widget", "widgets");
        kind.schema = Some(Arc::new(json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                },
            },
        })));
        kind
    }

    fn check(spec: Value, mode: UnknownFields, expected: Result<Value, &str>) {
        let mut object =
            json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
        let outcome = decode(&widget(), &mut object, mode).and_then(|_| {
            complete(&widget(), &mut object);
            let checked = super::check(&widget(), &object, None)?;
            StatusError::refuse(&widget(), "w", &checked.causes).map(|()| object["spec"].clone())
        });
        match (outcome, expected) {
            (Ok(spec), Ok(expected)) => assert_eq!(spec, expected),
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{}", error.message),
            (outcome, expected) => panic!("{outcome:?} is not {expected:?}"),
        }
    }

    #[test]
    fn objects_are_completed_pruned_and_checked() {
        use UnknownFields::{Ignore, Refuse};
        check(
            json!({"size": 1, "colour": "red", "free": {"x": 1}, "labels": {"a": "b"}}),
            Ignore,
            Ok(json!({"size": 1, "free": {"x": 1}, "labels": {"a": "b"}, "mode": "A"})),
        );
        check(json!({"size": 1}), Refuse, Ok(json!({"size": 1, "mode": "A"})));
        check(
            json!({"size": 1, "colour": "red"}),
            Refuse,
            Err("unknown field \"spec.colour\""),
        );
        check(
            json!({"size": "big"}),
            Ignore,
            Err("spec.size in body must be of type integer: \"string\""),
        );
        check(json!({"size": 0}), Ignore, Err("spec.size: Invalid value: 0"));
        check(json!({}), Ignore, Err("spec.size: Required value"));
        check(json!({"size": null}), Ignore, Err("spec.size: Required value"));
        check(
            json!({"size": 1, "free": null, "mode": null, "labels": null}),
            Refuse,
            Ok(json!({"size": 1, "free": null, "mode": "A"})),
        );
        check(
            json!({"size": 1, "mode": "C"}),
            Ignore,
            Err("supported values: \"A\", \"B\""),
        );
        check(
            json!({"size": 1, "labels": {"a": 1}}),
            Ignore,
            Err("spec.labels.a in body must be of type string"),
        );
    }

    #[test]
    fn kinds_of_kubernetes_have_schemas_too() {
        let kind = ResourceKind::namespaced("apps", "v1", "Deployment", "deployments");
        let object = json!({"metadata": {"name": "d"}, "spec": {"replicas": "three"}});
        let error = super::check(&kind, &object, None).expect_err("a text is no number");
        assert!(
            error.code == 400 && error.message.contains("spec.replicas"),
            "{}",
            error.message
        );
        let template = json!({"spec": {"containers": [{"name": "c", "imagee": "x"}]}});
        let mut object = json!({"metadata": {"name": "d"}, "spec": {"selector": {}, "template": template}});
        let warnings = decode(&kind, &mut object, UnknownFields::Warn).expect("a valid object");
        assert_eq!(warnings, ["unknown field \"spec.template.spec.containers[0].imagee\""]);
    }
}
