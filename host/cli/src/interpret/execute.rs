//! Executes one operation on one object.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use bulkhead_conformance::{Outputs, OwnedCall, Request};
use bulkhead_core::call::{Interpretation, Reply};
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::policy::{self, Capability, Fault, FaultKind};
use bulkhead_core::time::Time;
use serde_json::Value;

use super::interpreter::{Interpreter, Loader};
use crate::output::Format;

/// Maximum number of kinds listed in an error message.
const TARGETS_SHOWN_MAX: usize = 5;

/// Time that scripts see.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) now: Time,
    /// True without --now.
    pub(super) is_default: bool,
}

/// Runs the operation and prints the result under the names that test cases use in their `output`. Returns false if
/// a script failed.
///
/// # Errors
///
/// No interpreter has a rule for the operation and the kind, or an interpreter cannot be loaded.
pub(super) fn run(
    loader: &Loader<'_>,
    files: &[PathBuf],
    request: &Request,
    clock: Clock,
    format: Format,
) -> anyhow::Result<bool> {
    let interpreters = loader.load(files)?;
    let call = OwnedCall {
        request: request.clone(),
        now: clock.now,
    };
    let name = call.with_call(|call| call.operation_name()).unwrap_or_default();
    if clock.is_default && interpreters.iter().any(|interpreter| interpreter.reads_clock(name)) {
        let now = clock.now;
        writeln!(
            anstream::stderr(),
            "note: os.time() and os.date() return {now}; --now sets another time"
        )?;
    }
    match answer(&interpreters, &call) {
        Ok(Some(reply)) => {
            let outputs = Outputs::of(request, &reply).to_json();
            let documents = documents(&outputs)?;
            format.print(|| documents, &outputs)?;
            Ok(true)
        }
        Ok(None) => bail!("{name}: rule is not enabled: {}", no_rule(&interpreters, &call)),
        Err((interpreter, fault)) => {
            let message = interpreter.located(&fault.message);
            writeln!(
                anstream::stderr(),
                "Execute {name} error: {}: {message}",
                fault.kind.code()
            )?;
            Ok(false)
        }
    }
}

/// Formats one YAML document per result, as `karmadactl interpret` does. Details of health beyond true or false are
/// printed as a comment, so that parsers read the same documents.
fn documents(outputs: &Value) -> anyhow::Result<String> {
    let field = |name: &str| {
        outputs
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    if let Some(health) = field("health") {
        let healthy = outputs.get("healthy").unwrap_or(&Value::Null);
        let words = [
            Some(health).filter(|_| healthy.is_null()),
            field("reason"),
            field("message"),
        ];
        let because = words
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(": ")
            .replace('\n', "\n# ");
        return Ok(format!("---\n# [1/1] healthy:\n{healthy}\n# {because}\n"));
    }
    let results: Vec<_> = outputs.as_object().into_iter().flatten().collect();
    let document = |(index, (name, value)): (usize, &(&String, &Value))| {
        Ok(format!(
            "---\n# [{}/{}] {name}:\n{}",
            index + 1,
            results.len(),
            serde_saphyr::to_string(value)?
        ))
    };
    results.iter().enumerate().map(document).collect()
}

/// Returns the first interpreter's reply. For dependencies, merges the replies of all interpreters into one list.
fn answer<'a>(interpreters: &'a [Interpreter], call: &OwnedCall) -> Result<Option<Reply>, (&'a Interpreter, Fault)> {
    let mut dependencies: Option<Vec<DependentObjectReference>> = None;
    for interpreter in interpreters {
        match ask(interpreter, call).map_err(|fault| (interpreter, fault))? {
            None => {}
            Some(Reply::Interpret(Some(Interpretation::Dependencies(more)))) => {
                dependencies.get_or_insert_default().extend(more);
            }
            Some(reply) => return Ok(Some(reply)),
        }
    }
    Ok(dependencies.map(|found| Reply::Interpret(Some(Interpretation::Dependencies(found)))))
}

/// Calls one interpreter. Returns `None` if it has no rule for the call.
fn ask(interpreter: &Interpreter, call: &OwnedCall) -> Result<Option<Reply>, Fault> {
    let policy = &interpreter.policy;
    call.with_call(|call| {
        if !policy::answers(call)(&**policy) {
            return Ok(None);
        }
        match policy.call(call) {
            Ok(Reply::Interpret(None)) => Ok(None),
            Err(fault) if fault.kind == FaultKind::Unsupported => Ok(None),
            other => other.map(Some),
        }
    })
}

/// Formats the error for a missing rule, with the rules that exist.
fn no_rule(interpreters: &[Interpreter], call: &OwnedCall) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("?").to_owned();
    let object = call.with_call(|call| {
        let field = |name: &str| text(call.object().and_then(|object| object.get(name)));
        format!("{} {}", field("apiVersion"), field("kind"))
    });
    let of = |capability: &Capability| {
        capability
            .object_kind
            .as_ref()
            .map_or_else(|| "all kinds".to_owned(), |(api, kind)| format!("{api} {kind}"))
    };
    let capabilities = interpreters
        .iter()
        .flat_map(|interpreter| interpreter.policy.capabilities());
    let mut targets: Vec<_> = capabilities.map(of).collect();
    targets.sort();
    targets.dedup();
    let message = format!("there is no rule for that operation on {object}");
    // The interpreters shipped with the program have too many kinds to list.
    if (1..=TARGETS_SHOWN_MAX).contains(&targets.len()) {
        return format!("{message}; there are rules for {}", targets.join(", "));
    }
    message
}
