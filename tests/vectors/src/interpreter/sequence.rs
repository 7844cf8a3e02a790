//! Several calls to one set of scripts, in sequence.
//!
//! In Karmada, scripts share their globals, so that one call influences the next. In Bulkhead no state survives a
//! call, so the outcomes of these cases intentionally differ. A step passes if its outcome is as recorded or, after
//! the first step, if it equals the outcome of the same call in isolation. The first step must be as recorded.

use bulkhead_core::policy::PolicySet;
use bulkhead_plugin::Customization;
use serde_json::{Map, Value, json};

use super::case::{Arguments, Case, Gvk};
use super::compare::same_results;
use super::outcome::{Outcome, ask};
use super::scripts::Scripts;

/// A call with its recorded result.
struct Step {
    operation: String,
    inputs: Map<String, Value>,
    expected: Value,
}

/// Runs a sequence. If every step passes, the outcome is the expected one.
pub(super) fn run(case: &Case, scripts: &Scripts) -> Result<Outcome, String> {
    let steps = steps(case)?;
    let customizations = customizations(case, scripts, &steps)?;
    let shared = PolicySet::new(scripts.policies(case, &customizations));
    let mut actual = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let arguments = Arguments::read(&step.inputs)?;
        let outcome = ask(&shared, &step.operation, &arguments)?;
        let alone = PolicySet::new(scripts.policies(case, &customizations));
        let isolated = ask(&alone, &step.operation, &arguments)? == outcome;
        let passed = as_recorded(case, &step.expected, &outcome) || (index > 0 && isolated);
        actual.push(if passed {
            step.expected.clone()
        } else {
            outcome.printed()
        });
    }
    Ok(Outcome::Result(Value::Array(actual)))
}

fn as_recorded(case: &Case, expected: &Value, outcome: &Outcome) -> bool {
    match (expected.get("result"), outcome) {
        (Some(result), Outcome::Result(actual)) => same_results(case, result, actual),
        (None, Outcome::Failed(..)) => expected.get("error").is_some(),
        _ => false,
    }
}

/// Returns the steps of the case. Without explicit steps, each one is the object template with another kind.
fn steps(case: &Case) -> Result<Vec<Step>, String> {
    let expected = case
        .expected
        .as_ref()
        .and_then(Value::as_array)
        .ok_or("a sequence expects a list")?;
    let given = case.inputs.get("steps").and_then(Value::as_array);
    let step = |(index, expected): (usize, &Value)| {
        let text = |name: &str| {
            expected
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let inputs = if let Some(inputs) = given
            .and_then(|steps| steps.get(index))
            .and_then(|step| step.get("inputs"))
        {
            inputs.as_object().cloned().unwrap_or_default()
        } else {
            let mut object = case.inputs.get("objectTemplate").cloned().unwrap_or_else(|| json!({}));
            object["kind"] = json!(text("kind"));
            Map::from_iter([("object".to_owned(), object)])
        };
        Ok(Step {
            operation: text("operation"),
            inputs,
            expected: expected.clone(),
        })
    };
    expected.iter().enumerate().map(step).collect()
}

/// Returns the case's own customizations, or those of the kinds in its steps.
fn customizations(case: &Case, scripts: &Scripts, steps: &[Step]) -> Result<Vec<Customization>, String> {
    if !case.customizations.is_null() {
        return case.customizations();
    }
    let mut found: Vec<Customization> = Vec::new();
    for step in steps {
        let field = |name: &str| {
            step.inputs
                .get("object")
                .and_then(|object| object.get(name))
                .and_then(Value::as_str)
        };
        let (group, version) = field("apiVersion")
            .and_then(|it| it.split_once('/'))
            .unwrap_or_default();
        let kind = field("kind").unwrap_or_default();
        let gvk = Gvk {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        };
        let customization = scripts.of_kind(None, &gvk)?;
        let customization = customization.ok_or_else(|| format!("there is no customization for {kind}"))?;
        if !found
            .iter()
            .any(|known| known.api_version == customization.api_version && known.kind == customization.kind)
        {
            found.push(customization);
        }
    }
    Ok(found)
}
