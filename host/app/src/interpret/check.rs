//! Looks for mistakes, those that an API server lets pass included.
//!
//! | check | what is wrong |
//! | --- | --- |
//! | shape | a document of another kind, without a target, or with a field that nobody reads |
//! | syntax | the script is not Lua; told with line and column of the file |
//! | functions | the function of the rule is missing or no function, or the script defines that of another rule too |
//! | results | on a sample object the result is of the wrong type, or the script runs out of its budget or asks for what it may not have |
//! | arguments | on a sample object the script changes what it is only to look at |
//!
//! The sample objects have what most workloads have. A script that fails on one of them may be right to do so.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use bulkhead_conformance::plain_questions;
use bulkhead_core::policy::{EngineKind, FaultKind, Policy};
use bulkhead_engine_lua::{LuaEngine, check_syntax};
use bulkhead_plugin::{Dialect, Engine, Entry, EntryPoint, Module, PluginSource};

use super::customization::{Customization, Script};
use super::input::STDIN;
use super::interpreter::{self, Found, load_component, script_source};
use super::place::Place;

/// The functions that interpret objects.
const INTERPRETERS: [EntryPoint; 8] = [
    EntryPoint::Retain,
    EntryPoint::Replicas,
    EntryPoint::Components,
    EntryPoint::Revise,
    EntryPoint::ReflectStatus,
    EntryPoint::AggregateStatus,
    EntryPoint::Health,
    EntryPoint::Dependencies,
];

/// Wraps a function so that it fails when it changes an argument. `FUNCTION` and `ARGUMENT` stand for name and place.
const WATCH: &str = include_str!("watch.lua");
/// What its errors begin with.
const CHANGED: &str = "changes what it is given, at ";

/// Prints a line for each rule. Returns whether nothing is wrong.
pub(super) fn run(files: &[PathBuf], dialect: Dialect) -> anyhow::Result<bool> {
    let mut fine = true;
    for file in files {
        if file != Path::new(STDIN) && !file.exists() {
            bail!("there is no {}", file.display());
        }
        match interpreter::find(std::slice::from_ref(file)) {
            Err(error) => {
                writeln!(anstream::stdout(), "{}\n  ERROR: {error:#}", file.display())?;
                fine = false;
            }
            Ok(found) => {
                for found in found {
                    fine &= report(&found, dialect)?;
                }
            }
        }
    }
    Ok(fine)
}

fn report(found: &Found, dialect: Dialect) -> anyhow::Result<bool> {
    let (head, lines) = match found {
        Found::Customization(file, customization) => {
            let (api_version, kind) = &customization.target;
            let head = format!("{}: {} of {api_version} {kind}", file.display(), customization.name);
            (head, rules(customization))
        }
        Found::Script(place, code) => (place.origin.clone(), vec![(String::new(), Some(bare(place, code, dialect)))]),
        Found::Component(file, code) => {
            let loaded = load_component(file, code).map(|_| ()).map_err(|error| format!("{error:#}"));
            (file.display().to_string(), vec![(String::new(), Some(loaded))])
        }
    };
    let mut out = anstream::stdout().lock();
    writeln!(out, "{head}")?;
    for (rule, result) in &lines {
        let told = match result {
            None => "UNSET".to_owned(),
            Some(Ok(())) => "PASS".to_owned(),
            Some(Err(message)) => format!("ERROR: {}", message.replace('\n', "\n    ")),
        };
        let line = if rule.is_empty() { told } else { format!("{rule:<25} {told}") };
        writeln!(out, "  {line}")?;
    }
    Ok(lines.iter().all(|(_, result)| !matches!(result, Some(Err(_)))))
}

/// A line for each rule that there could be.
fn rules(customization: &Customization) -> Vec<(String, Option<Result<(), String>>)> {
    let line = |point: EntryPoint| {
        let rule = point.rule()?.to_owned();
        let script = customization.scripts.iter().find(|script| script.point == point);
        Some((rule, script.map(|script| of_rule(customization, script))))
    };
    INTERPRETERS.into_iter().filter_map(line).collect()
}

fn of_rule(customization: &Customization, script: &Script) -> Result<(), String> {
    let place = &script.place;
    syntax(place, &script.code)?;
    let policy = load(customization.module(script)).map_err(|message| place.located(&message))?;
    let others = INTERPRETERS.into_iter().filter(|point| *point != script.point);
    let surplus: Vec<_> = others.filter(|point| defines(&script.code, *point)).map(EntryPoint::function).collect();
    if !surplus.is_empty() {
        let (rule, wanted) = (script.rule, script.point.function());
        let message = format!("{rule} has one function, {wanted}; the script defines {} too", surplus.join(", "));
        return Err(placed(place, &script.code, script.point, &message));
    }
    let tried = results(&*policy).and_then(|()| arguments(customization.module(script), script.point));
    tried.map_err(|message| placed(place, &script.code, script.point, &message))
}

/// A message with the place that it is about: its own, or that of the function.
fn placed(place: &Place, code: &str, point: EntryPoint, message: &str) -> String {
    let message = place.located(message);
    let head = format!("function {}", point.function());
    let function = |(index, line): (usize, &str)| Some((index + 1, line.find(&head)? + 1));
    match code.lines().enumerate().find_map(function) {
        Some((line, column)) if !place.begins(&message) => format!("{}: {message}", place.at(line, column)),
        _ => message,
    }
}

/// A script by itself, whose functions say what it is for.
fn bare(place: &Place, code: &str, dialect: Dialect) -> Result<(), String> {
    syntax(place, code)?;
    let source = script_source(place, code, dialect);
    let loaded = LuaEngine::default().load(&source).map_err(|error| error.message)?;
    results(&*loaded.policy)?;
    let translated = source.modules.first().map(|module| String::from_utf8_lossy(&module.code).into_owned());
    let translated = translated.unwrap_or_default();
    for point in INTERPRETERS.into_iter().filter(|point| defines(&translated, *point)) {
        let entries = vec![Entry { point, object_kind: None }];
        let module = Module { origin: place.origin.clone(), code: translated.as_bytes().to_vec(), entries };
        arguments(module, point)?;
    }
    Ok(())
}

fn syntax(place: &Place, code: &str) -> Result<(), String> {
    check_syntax(code).map_err(|error| format!("{}: {}", place.at(error.line, error.column), error.message))
}

fn load(module: Module) -> Result<std::sync::Arc<dyn Policy>, String> {
    let loaded = LuaEngine::default().load(&PluginSource::new("checked", EngineKind::Lua, vec![module]));
    loaded.map(|loaded| loaded.policy).map_err(|error| error.message)
}

/// Whether a script has that global function.
fn defines(code: &str, point: EntryPoint) -> bool {
    let entries = vec![Entry { point, object_kind: None }];
    load(Module { origin: String::new(), code: code.as_bytes().to_vec(), entries }).is_ok()
}

/// Wrong results of sample objects. Failing on one is not wrong in itself, and neither is it to read the number of
/// replicas from a field that the sample does not have.
fn results(policy: &dyn Policy) -> Result<(), String> {
    let wrong = |kind: FaultKind| !matches!(kind, FaultKind::Trap | FaultKind::GuestError | FaultKind::Unsupported);
    let no_number = format!("{} returned nil", EntryPoint::Replicas.function());
    first_fault(policy, |kind, message| wrong(kind) && !message.starts_with(&no_number))
}

/// An argument that changes. Of functions that give back the whole object, only what they look at beside it counts.
fn arguments(mut module: Module, point: EntryPoint) -> Result<(), String> {
    let argument = match point {
        EntryPoint::Revise | EntryPoint::AggregateStatus => return Ok(()),
        EntryPoint::Retain => "2",
        _ => "1",
    };
    let watch = WATCH.replace("FUNCTION", point.function()).replace("ARGUMENT", argument);
    module.code.extend_from_slice(b"\n");
    module.code.extend_from_slice(watch.as_bytes());
    let policy = load(module)?;
    first_fault(&*policy, |_, message| message.contains(CHANGED))
}

fn first_fault(policy: &dyn Policy, counts: impl Fn(FaultKind, &str) -> bool) -> Result<(), String> {
    for capability in policy.capabilities() {
        for (what, question) in plain_questions(capability) {
            let reply = question.with_call(|call| policy.call(call));
            if let Err(fault) = reply
                && counts(fault.kind, &fault.message)
            {
                return Err(format!("{}\nasked about a sample, {what}", fault.message));
            }
        }
    }
    Ok(())
}
