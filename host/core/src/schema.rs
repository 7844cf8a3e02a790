//! JSON Schemas of the model's types that are not derived, for the definitions of custom resources.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::model::{List, PurgeMode, SelectorOperator, TaintEffect};
use crate::time::Time;

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

/// A list that may also be absent or null.
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

/// Any text: what an operator that is not known means is decided, and reported, by whoever evaluates it.
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

/// The modes in both spellings.
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

/// The effects that mean something here. A control plane with our definitions takes no other.
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

/// What a Secret is referred to by.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct SecretReference {
    /// Namespace of the Secret.
    namespace: String,
    /// Name of the Secret.
    name: String,
}

/// A grade of nodes.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct ResourceModel {
    /// Number of the grade, from 0.
    grade: u32,
    /// What a node of it has.
    ranges: Vec<ResourceModelRange>,
}

/// How much of a resource a node of a grade has: `min` or more, and less than `max`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; the value is kept as it came")]
pub(crate) struct ResourceModelRange {
    /// Name of the resource, such as `cpu`.
    name: String,
    /// The least, which belongs to the grade.
    min: QuantityText,
    /// The most, which does not.
    max: QuantityText,
}

/// A quantity, as a number or as a text.
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
