//! JSON Schemas of types.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the schema of a type, in the draft that editors support best.
pub(crate) fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft07()
        .with_transform(with_short_defaults)
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Removes the defaults that are not a single value.
fn with_short_defaults(schema: &mut Schema) {
    let is_short = |default: &Value| match default {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    if schema.get("default").is_some_and(|default| !is_short(default)) {
        schema.remove("default");
    }
    transform_subschemas(&mut with_short_defaults, schema);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_short_defaults_are_shown() {
        let check = |default: Value, shown: bool| {
            let mut schema = Schema::from(serde_json::Map::from_iter([
                ("default".to_owned(), default.clone()),
                (
                    "properties".to_owned(),
                    json!({"default": {"type": "string", "default": default}}),
                ),
            ]));
            with_short_defaults(&mut schema);
            let inner = schema.pointer("/properties/default/default");
            assert_eq!(
                (schema.get("default").is_some(), inner.is_some()),
                (shown, shown),
                "{default}"
            );
            assert_eq!(schema.pointer("/properties/default/type"), Some(&json!("string")));
        };
        check(json!("5s"), true);
        check(json!(false), true);
        check(json!(0), true);
        check(json!(""), false);
        check(json!(null), false);
        check(json!([]), false);
        check(json!({"nodes": 2}), false);
    }
}
