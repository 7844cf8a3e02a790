//! Cases of API admission. Only acceptance or rejection is compared, not the message.

use bulkhead_api::ResourceInterpreterCustomization;
use bulkhead_api::admission::validate_hooks;
use bulkhead_api::interpreter::conflict;
use bulkhead_api::webhook::ResourceInterpreterWebhookConfiguration;
use bulkhead_engine_lua::check_portable;
use serde_json::{Value, json};

use super::Ran;
use super::case::{Case, read};
use super::outcome::Outcome;

/// Runs a case.
pub(super) fn run(case: &Case) -> Result<Ran, String> {
    let new = case.inputs.get("new").cloned().unwrap_or_default();
    let refused = match case.kind.kind.as_str() {
        "ResourceInterpreterCustomization" => {
            let new: ResourceInterpreterCustomization = parse(new)?;
            let existing = case.inputs.get("existing").unwrap_or(&Value::Null);
            let existing: Vec<ResourceInterpreterCustomization> = read(existing, "existing")?;
            conflict(&new, &existing).or_else(|| syntax(&new))
        }
        "ResourceInterpreterWebhookConfiguration" => {
            let new: ResourceInterpreterWebhookConfiguration = parse(new)?;
            validate_hooks(&new.webhooks).first().map(ToString::to_string)
        }
        other => return Err(format!("unknown kind {other}")),
    };
    let expected = case
        .expected
        .as_ref()
        .and_then(|expected| expected.get("allowed"))
        .and_then(Value::as_bool);
    let as_expected = expected == Some(refused.is_none());
    let result = if as_expected {
        case.expected.clone().unwrap_or_default()
    } else {
        json!({"refused": refused})
    };
    Ok(Ran::Outcome(Outcome::Result(result)))
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("new: {error}"))
}

/// Returns the first script that admission would reject.
fn syntax(new: &ResourceInterpreterCustomization) -> Option<String> {
    let mut scripts = new.spec.customizations.scripts();
    scripts.find_map(|(rule, script)| Some(format!("{rule}:{}", check_portable(script).err()?)))
}
