//! The law about a plugin's configuration.

use bulkhead_plugin::check_config;
use serde_json::Value;

use crate::report::Outcome;
use crate::subject::Subject;

/// Checks that each example fits its schema and that the plugin loads with it, because people copy the examples.
pub(super) fn examples(subject: &Subject<'_>) -> Outcome {
    let Some(schema) = subject.config_schema() else {
        return Outcome::skipped("the plugin declares no schema");
    };
    let examples = match schema.get("examples") {
        None => return Outcome::skipped("the schema has no examples"),
        Some(Value::Array(examples)) if examples.is_empty() => return Outcome::skipped("the schema has no examples"),
        Some(Value::Array(examples)) => examples,
        Some(other) => return Outcome::failed(format!("the examples of the schema are {other}, not a list")),
    };
    for example in examples {
        if let Err(why) = check_config(Some(schema), example) {
            return Outcome::failed(format!("the schema refuses its example {example}: {why}"));
        }
        if let Some(Err(error)) = subject.loader().map(|load| load(example)) {
            return Outcome::failed(format!("the schema's example {example} does not load: {error}"));
        }
    }
    if subject.loader().is_none() {
        return Outcome::skipped("the schema accepts its examples; the plugin cannot be loaded with them");
    }
    Outcome::Passed
}
