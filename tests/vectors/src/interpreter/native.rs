//! Cases of the compiled-in rules.

use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, OPERATION_NAMES};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::prune::prune;
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::{NativeHealth, NativeInterpreter};
use serde_json::{Map, Value, json};

use super::case::{Arguments, Case};
use super::outcome::{Outcome, ask};

/// Returns the native rules, with the level of pod detail that the case requires.
pub(super) fn policies(case: &Case) -> Vec<Arc<dyn Policy>> {
    let detail = if case.gate("ResourceQuotaEstimate") {
        Detail::PriorityClass
    } else {
        Detail::Plain
    };
    let interpreter = NativeInterpreter::new(detail);
    // The cases distinguish an empty list from a missing one.
    let has_list = case.inputs.get("statusItems").is_some_and(Value::is_array);
    let interpreter = if has_list {
        interpreter.with_empty_lists()
    } else {
        interpreter
    };
    vec![Arc::new(NativeHealth::default()), Arc::new(interpreter)]
}

/// Runs a case.
pub(super) fn run(case: &Case) -> Result<Outcome, String> {
    let policies = PolicySet::new(policies(case));
    let arguments = Arguments::read(&case.inputs)?;
    match case.operation.as_str() {
        "Prune" => Ok(pruned(&arguments.object)),
        "HookEnabled" => hooks(&policies, case).map(Outcome::Result),
        operation => Ok(without_typing(case, ask(&policies, operation, &arguments)?)),
    }
}

fn pruned(object: &Value) -> Outcome {
    let mut object = object.clone();
    match prune(&mut object) {
        Ok(()) => Outcome::Result(json!({"pruned": object})),
        Err(error) => Outcome::Failed(&["input", "panic"], error.to_string()),
    }
}

/// Returns the operations that have a rule for the kind. A rule answers or rejects an empty object, but does not pass
/// it on.
fn hooks(policies: &PolicySet, case: &Case) -> Result<Value, String> {
    let object = Arc::new(json!({"apiVersion": case.kind.api_version(), "kind": case.kind.kind}));
    let mut enabled = Map::new();
    for operation in OPERATION_NAMES {
        let has_rule = if operation == "InterpretHealth" {
            let call = Call::Health(HealthCall {
                object: &object,
                now: Time::from_millis(0),
            });
            policies.answering(&call).next().is_some()
        } else {
            let arguments = Arguments {
                object: Arc::clone(&object),
                observed: Arc::clone(&object),
                ..Arguments::default()
            };
            ask(policies, operation, &arguments)? != Outcome::no_handler()
        };
        enabled.insert(operation.to_owned(), has_rule.into());
    }
    Ok(Value::Object(enabled))
}

/// Reverts the effect of Karmada's typed structs on two results, which adds empty fields and drops unknown ones. Of
/// an aggregation, only the status is compared, because only the status is written. For a retained pod, the fields
/// that the struct adds are added here.
fn without_typing(case: &Case, outcome: Outcome) -> Outcome {
    let Outcome::Result(mut actual) = outcome else {
        return outcome;
    };
    let expected = case.expected.as_ref();
    if let (Some(actual), Some(expected)) = (
        actual.get_mut("aggregatedStatus"),
        expected.and_then(|expected| expected.get("aggregatedStatus")),
    ) {
        let mut whole = expected.clone();
        match actual.get("status") {
            Some(status) => whole["status"] = status.clone(),
            None => {
                whole.as_object_mut().map(|members| members.remove("status"));
            }
        }
        *actual = whole;
    }
    if case.kind.kind == "Pod"
        && let Some(pod) = actual.get_mut("retained")
    {
        for list in ["/spec/containers", "/spec/initContainers"] {
            for container in pod
                .pointer_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                container
                    .as_object_mut()
                    .map(|members| members.entry("resources").or_insert_with(|| json!({})));
            }
        }
        pod.as_object_mut()
            .map(|members| members.entry("status").or_insert_with(|| json!({})));
    }
    Outcome::Result(actual)
}
