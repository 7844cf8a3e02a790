//! Validation of configurations against the JSON Schema of the plugin.

mod bound;

use serde_json::Value;

use crate::text::plain;

/// Maximum number of problems in one message.
const PROBLEMS_MAX: usize = 5;
/// Maximum length of the example in a message, in characters.
const EXAMPLE_CHARS_MAX: usize = 300;

/// Validates a configuration when the plugin is loaded, so that mistakes are found before a cluster fails. The error
/// names each field and a valid value. A plugin without a schema takes no configuration. References to other
/// documents are not followed; a schema whose validation takes too long is rejected.
pub fn check_config(schema: Option<&Value>, config: &Value) -> Result<(), String> {
    let Some(schema) = schema else {
        return if config.is_null() {
            Ok(())
        } else {
            Err("it takes no configuration; leave `config` out".to_owned())
        };
    };
    let bounded = if bound::has_one_base(schema) {
        bound::check(schema, config)
    } else {
        Err("only its root may have an $id".to_owned())
    };
    bounded.map_err(|why| format!("its configuration schema is refused: {why}"))?;
    let validator = jsonschema::options().build(schema);
    let validator =
        validator.map_err(|error| format!("its configuration schema is not a valid JSON Schema: {error}"))?;
    let mut problems = validator.iter_errors(config).map(|error| {
        let at = error.instance_path().to_string();
        if at.is_empty() {
            format!("config: {error}")
        } else {
            format!("config{at}: {error}")
        }
    });
    let named: Vec<_> = problems.by_ref().take(PROBLEMS_MAX).collect();
    let mut message = named.join("; ");
    match (named.is_empty(), problems.count()) {
        (true, _) => return Ok(()),
        (false, 0) => {}
        (false, more) => message = format!("{message}; and {more} more"),
    }
    if config.is_null() {
        message.push_str("; it needs a configuration, which belongs into the field `config` of its entry or manifest");
        let examples = schema.get("examples").and_then(Value::as_array);
        if let Some(example) = examples.and_then(|examples| examples.first()) {
            message = format!(
                "{message}, for example {}",
                plain(&example.to_string(), EXAMPLE_CHARS_MAX)
            );
        }
    }
    Err(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_checked_field_by_field() {
        let schema = json!({
            "type": "object",
            "properties": {"region": {"type": "string"}, "weight": {"type": "integer", "maximum": 10}},
            "required": ["region"],
            "additionalProperties": false,
        });
        let check = |config: Value, expected: &[&str]| match check_config(Some(&schema), &config) {
            Ok(()) => assert!(expected.is_empty(), "{config} is accepted"),
            Err(message) => {
                assert!(!expected.is_empty(), "{config}: {message}");
                for part in expected {
                    assert!(message.contains(part), "no {part:?} in: {message}");
                }
            }
        };
        check(json!({"region": "eu"}), &[]);
        check(json!({}), &["config:", "region"]);
        check(
            json!({"region": 1, "weight": 11}),
            &["config/region:", "config/weight:", "10"],
        );
        check(json!({"region": "eu", "regoin": "eu"}), &["regoin"]);
        check(json!(null), &["config:", "belongs into the field `config`"]);
    }

    #[test]
    fn a_missing_configuration_has_the_example_of_the_schema() {
        let schema = json!({"type": "object", "examples": [{"region": "eu"}, {"region": "us"}]});
        let message = check_config(Some(&schema), &Value::Null).unwrap_err();
        assert!(message.ends_with(r#", for example {"region":"eu"}"#), "{message}");
        let message = check_config(Some(&schema), &json!("eu")).unwrap_err();
        assert!(!message.contains("for example"), "{message}");
    }

    #[test]
    fn a_schema_without_end_is_refused() {
        let schema = json!({"$ref": "#", "unevaluatedProperties": false});
        let message = check_config(Some(&schema), &Value::Null).unwrap_err();
        assert!(
            message.starts_with("its configuration schema is refused: a reference leads back"),
            "{message}"
        );
    }

    #[test]
    fn without_a_schema_there_is_nothing_to_configure() {
        assert_eq!(check_config(None, &Value::Null), Ok(()));
        assert!(check_config(None, &json!({"a": 1})).is_err());
        assert!(check_config(Some(&json!({"type": 7})), &Value::Null).is_err());
    }
}
