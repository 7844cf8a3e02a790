//! One operation on one object.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use bulkhead_conformance::{Outputs, Question, Request};
use bulkhead_core::call::{Interpretation, Reply};
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::policy::{Capability, Fault, FaultKind};
use bulkhead_core::time::Time;
use bulkhead_plugin::Dialect;

use super::Output;
use super::interpreter::{self, Interpreter};

/// Most kinds that a message names.
const TARGETS_SHOWN_MAX: usize = 5;

/// Asks, and prints the answer under the names that cases have in their `output`. Returns whether there was one.
pub(super) fn run(
    files: &[PathBuf],
    dialect: Dialect,
    request: &Request,
    now: Time,
    output: Output,
) -> anyhow::Result<bool> {
    let interpreters = interpreter::load(files, dialect)?;
    let question = Question { request: request.clone(), now };
    match answer(&interpreters, &question) {
        Ok(Some(reply)) => {
            output.print(&Outputs::of(request, &reply).to_json())?;
            Ok(true)
        }
        Ok(None) => bail!("{}", no_rule(&interpreters, &question)),
        Err((interpreter, fault)) => {
            let message = interpreter.located(&fault.message);
            writeln!(anstream::stderr(), "{}: {message}", fault.kind.code())?;
            Ok(false)
        }
    }
}

/// The first answer; of dependencies all answers, as one list without repetitions and in Karmada's order.
fn answer<'a>(interpreters: &'a [Interpreter], question: &Question) -> Result<Option<Reply>, (&'a Interpreter, Fault)> {
    let mut dependencies: Option<Vec<DependentObjectReference>> = None;
    for interpreter in interpreters {
        match ask(interpreter, question).map_err(|fault| (interpreter, fault))? {
            None => {}
            Some(Reply::Interpret(Some(Interpretation::Dependencies(more)))) => {
                dependencies.get_or_insert_default().extend(more);
            }
            Some(reply) => return Ok(Some(reply)),
        }
    }
    let in_order = |mut list: Vec<DependentObjectReference>| {
        let key = |one: &DependentObjectReference| {
            (one.api_version.clone(), one.kind.clone(), one.namespace.clone(), one.name.clone())
        };
        list.sort_by_key(key);
        // References by selector are never the same, as in Karmada.
        list.dedup_by(|one, other| one == other && one.label_selector.is_none());
        Reply::Interpret(Some(Interpretation::Dependencies(list)))
    };
    Ok(dependencies.map(in_order))
}

/// One interpreter's answer, if it has a rule for that.
fn ask(interpreter: &Interpreter, question: &Question) -> Result<Option<Reply>, Fault> {
    let policy = &interpreter.policy;
    question.with_call(|call| {
        if !policy.capabilities().iter().any(|capability| capability.answers(call)) {
            return Ok(None);
        }
        match policy.call(call) {
            Ok(Reply::Interpret(None)) => Ok(None),
            Err(fault) if fault.kind == FaultKind::Unsupported => Ok(None),
            other => other.map(Some),
        }
    })
}

/// What was asked for, and what there is instead.
fn no_rule(interpreters: &[Interpreter], question: &Question) -> String {
    let text = |value: Option<&serde_json::Value>| value.and_then(serde_json::Value::as_str).unwrap_or("?").to_owned();
    let object = question.with_call(|call| {
        let field = |name: &str| text(call.object().and_then(|object| object.get(name)));
        format!("{} {}", field("apiVersion"), field("kind"))
    });
    let of = |capability: &Capability| {
        capability.object_kind.as_ref().map_or_else(|| "all kinds".to_owned(), |(api, kind)| format!("{api} {kind}"))
    };
    let capabilities = interpreters.iter().flat_map(|interpreter| interpreter.policy.capabilities());
    let mut targets: Vec<_> = capabilities.map(of).collect();
    targets.sort();
    targets.dedup();
    let message = format!("there is no rule for that operation on {object}");
    // The interpreters of the program have too many to name.
    if (1..=TARGETS_SHOWN_MAX).contains(&targets.len()) {
        return format!("{message}; there are rules for {}", targets.join(", "));
    }
    message
}
