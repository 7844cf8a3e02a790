//! Handwritten JSON Schemas of model types, for the CRDs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::model::{List, PurgeMode, SelectorOperator, TaintEffect};
use crate::time::Time;

/// Requires the field `clusterName` of each report in a binding, as Karmada's CRDs do. Cases of interpreters have the same
/// type, and may omit it. The fields that the proposal "Application failover mechanism" adds are accepted, in both of its
/// spellings; the controllers neither read nor write them.
pub(crate) fn reports_of_a_binding(schema: &mut Schema) {
    let Some(report) = schema.get_mut("items").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(fields) = report.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let settled = "True if the object has been healthy in the cluster. Accepted, and never read.";
    fields.insert("settled".to_owned(), json!({"type": "boolean", "description": settled}));
    for name in ["creationTimestamp", "createTimestamp"] {
        let first = "Time of the first report of the cluster. Accepted, and never read.";
        fields.insert(
            name.to_owned(),
            json!({"type": "string", "format": "date-time", "description": first}),
        );
    }
    let Some(name) = fields.get_mut("clusterName").and_then(Value::as_object_mut) else {
        return;
    };
    // An API server would set a default instead of refusing the object.
    name.remove("default");
    report.insert("required".to_owned(), json!(["clusterName"]));
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// List that may be absent or null.
impl<T: JsonSchema> JsonSchema for List<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("List_of_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "nullable": true, "items": generator.subschema_for::<T>()})
    }
}

/// Any string. The evaluator of the selector handles and reports unknown operators.
impl JsonSchema for SelectorOperator {
    fn schema_name() -> Cow<'static, str> {
        "SelectorOperator".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// All purge modes, in the current and the old spelling.
impl JsonSchema for PurgeMode {
    fn schema_name() -> Cow<'static, str> {
        "PurgeMode".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["Directly", "Immediately", "Gracefully", "Graciously", "Never"]})
    }
}

/// Known taint effects. A control plane with Bulkhead's CRDs rejects any other.
impl JsonSchema for TaintEffect {
    fn schema_name() -> Cow<'static, str> {
        "TaintEffect".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::KNOWN})
    }
}

/// Reference to a Secret.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct SecretReference {
    /// Namespace of the Secret.
    namespace: String,
    /// Name of the Secret.
    name: String,
}

/// Grade of nodes.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct ResourceModel {
    /// Number of the grade, from 0.
    grade: u32,
    /// Resources of a node of this grade.
    ranges: Vec<ResourceModelRange>,
}

/// Range of one resource that a node of the grade has: `min` (inclusive) to `max` (exclusive).
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct ResourceModelRange {
    /// Name of the resource, such as `cpu`.
    name: String,
    /// Lower bound, inclusive.
    min: QuantityText,
    /// Upper bound, exclusive.
    max: QuantityText,
}

/// Quantity, as a number or a string.
struct QuantityText;

impl JsonSchema for QuantityText {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true})
    }
}
