//! JSON Schemas of the model's types that are not derived, for the definitions of custom resources.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::model::{List, SelectorOperator, TaintEffect};
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
