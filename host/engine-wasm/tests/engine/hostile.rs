//! Every guest in `tests/guests/hostile/wasm` comes to the end that its header says, and its neighbour does not notice.
//!
//! The header of a guest is comments: first what it does, then `key: value` lines. One of them is what becomes of it:
//! `expect:` with the kind of fault that its call is, `refused:` with the stage at which loading ends, or `answers`.
//! `says:` is a part of the message, `budget:` is JSON in place of parts of the default one, `cut:` is how much of the
//! binary is left, and `kind:` is what it is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bulkhead_core::call::{Call, HealthCall, HealthVerdict, Reply};
use bulkhead_core::policy::{Fault, FaultKind, Policy};
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::{Options, WasmEngine};
use bulkhead_plugin::{Budget, Engine, LoadError, LoadStage};
use serde_json::{Value, json};

/// What becomes of a guest.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Answers,
    Fault(FaultKind),
    Refused(LoadStage),
}

/// One file.
#[derive(Debug)]
struct Guest {
    end: End,
    says: Option<String>,
    budget: Budget,
    binary: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("tests/guests/hostile/wasm")
}

/// The parts of `prelude.txt`, by name.
fn parts() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("prelude.txt")).unwrap();
    let sections = text.split("\n== ").skip(1);
    sections.map(|section| section.split_once('\n').unwrap()).map(|(name, part)| (name.into(), part.into())).collect()
}

/// Puts parts in place of their names, those in parts as well.
fn filled(text: &str, parts: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = text.to_owned();
    while let Some((before, rest)) = text.split_once("{{") {
        let (name, after) = rest.split_once("}}").ok_or("a {{ without }}")?;
        let part = parts.get(name).ok_or_else(|| format!("no part {name} in prelude.txt"))?;
        text = format!("{before}{}{after}", part.trim_end());
    }
    Ok(text)
}

fn stage(name: &str) -> Result<LoadStage, String> {
    let stages = [LoadStage::Inspected, LoadStage::Compiled, LoadStage::Described, LoadStage::Configured];
    stages.into_iter().find(|stage| stage.to_string() == name).ok_or_else(|| format!("no stage {name}"))
}

/// The default budget with other values in place of some of its own.
fn budget(changes: &str) -> Result<Budget, String> {
    serde_json::from_str(changes).map_err(|error| format!("budget: {error}"))
}

fn cut(mut binary: Vec<u8>, how: &str) -> Result<Vec<u8>, String> {
    let number = |unit: &str| how.strip_suffix(unit).and_then(|number| number.trim().parse::<usize>().ok());
    let left = number("%").map(|percent| binary.len() * percent / 100).or_else(|| number("bytes"));
    binary.truncate(left.ok_or_else(|| format!("cut: {how} is neither a percentage nor a number of bytes"))?);
    Ok(binary)
}

fn read(text: &str, parts: &BTreeMap<String, String>) -> Result<Guest, String> {
    let mut lines = text.lines().map_while(|line| line.strip_prefix(";; "));
    let what = lines.next().ok_or("does not say what it does")?;
    if !what.ends_with('.') {
        return Err(format!("{what:?} is no sentence"));
    }
    let binary = wat::parse_str(filled(text, parts)?).map_err(|error| error.to_string())?;
    let mut guest = Guest { end: End::Answers, says: None, budget: Budget::default(), binary };
    let (mut kind, mut end) = (None, None);
    for line in lines {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("answers", "") => end = Some(End::Answers),
            ("expect", fault) => {
                let fault = serde_json::from_value(json!(fault)).map_err(|error| format!("expect: {error}"))?;
                end = Some(End::Fault(fault));
            }
            ("refused", name) => end = Some(End::Refused(stage(name)?)),
            ("says", words) => guest.says = Some(words.to_owned()),
            ("budget", changes) => guest.budget = budget(changes)?,
            ("cut", how) => guest.binary = cut(guest.binary, how)?,
            ("kind", asked) => kind = Some(asked),
            (key, _) => return Err(format!("the header has an unknown line {key}")),
        }
    }
    if kind != Some("health") {
        return Err("its kind must be health".to_owned());
    }
    guest.end = end.ok_or("does not say what becomes of it: expect, refused or answers")?;
    Ok(guest)
}

/// Every guest, by name.
fn guests() -> BTreeMap<String, Guest> {
    let parts = parts();
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let guests = files.filter(|file| file.extension().is_some_and(|extension| extension == "wat"));
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let guest = read(&fs::read_to_string(&file).unwrap(), &parts);
        (name.clone(), guest.unwrap_or_else(|problem| panic!("{name}.wat: {problem}")))
    };
    guests.map(read).collect()
}

fn load(engine: &WasmEngine, guest: &Guest) -> Result<Arc<dyn Policy>, LoadError> {
    engine.load(&super::source(guest.binary.clone(), Value::Null, guest.budget))
}

fn ask(policy: &dyn Policy) -> Result<HealthVerdict, Fault> {
    let object = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx"}}));
    let call = HealthCall { object: &object, now: Time::from_millis(0) };
    policy.call(&Call::Health(call)).map(|reply| match reply {
        Reply::Health(verdict) => verdict,
        reply => panic!("a {} reply", reply.kind()),
    })
}

/// Loads a guest and asks it, and returns what became of it, with the message.
fn run(engine: &WasmEngine, guest: &Guest) -> (End, String) {
    let policy = match load(engine, guest) {
        Ok(policy) => policy,
        Err(error) => return (End::Refused(error.stage), error.message),
    };
    let answer = ask(&*policy);
    let usage = policy.usage();
    assert!(usage.steps <= guest.budget.steps, "{usage:?}");
    assert!(usage.memory_bytes_max <= guest.budget.memory_bytes as u64, "{usage:?}");
    match answer {
        Ok(_) => (End::Answers, String::new()),
        Err(fault) => (End::Fault(fault.kind), fault.message),
    }
}

/// What is wrong with what became of a guest, if anything.
fn objection(engine: &WasmEngine, guest: &Guest) -> Option<String> {
    let started = Instant::now();
    let (end, message) = run(engine, guest);
    // Loading and asking are at most three times in the guest: describe, configure, and configure with the question.
    // Each may take what the budget says, and what is promised is that it takes no more than twice as much.
    let allowed = Duration::from_millis(guest.budget.wall_clock_ms).saturating_mul(3 * 2);
    if end != guest.end {
        return Some(format!("{end:?} ({message}) instead of {:?}", guest.end));
    }
    if let Some(words) = guest.says.as_ref().filter(|words| !message.contains(*words)) {
        return Some(format!("no {words:?} in: {message}"));
    }
    let took = started.elapsed();
    (took > allowed).then(|| format!("took {took:?}"))
}

#[test]
fn every_hostile_guest_comes_to_its_end_and_its_neighbour_does_not_notice() {
    let guests = guests();
    assert!(guests.len() >= 60, "only {} guests", guests.len());
    let engine = WasmEngine::new(Options::default()).unwrap();
    let neighbour = load(&engine, &guests["well-behaved"]).unwrap();
    let verdict = ask(&*neighbour).unwrap();
    let problems: Vec<_> = guests
        .iter()
        .filter_map(|(name, guest)| {
            let unnoticed = |problem: Option<String>| {
                let now = ask(&*neighbour);
                problem.or_else(|| (now.as_ref() != Ok(&verdict)).then(|| format!("its neighbour says {now:?}")))
            };
            unnoticed(objection(&engine, guest)).map(|problem| format!("{name}.wat: {problem}"))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_guest_without_an_expectation_is_a_mistake() {
    let check = |header: &str, problem: &str| {
        let found = read(&format!("{header}\n(component)"), &BTreeMap::new()).err().unwrap_or_default();
        assert!(found.contains(problem), "{header}: {found}");
    };
    check(";; Is nothing.\n;; kind: health", "does not say what becomes of it");
    check(";; Is nothing.\n;; answers", "kind must be health");
    check(";; Is nothing.\n;; kind: health\n;; expect: anything", "unknown variant");
    check(";; Is nothing.\n;; kind: health\n;; refused: never", "no stage never");
    check(";; Is nothing.\n;; kind: health\n;; answer", "unknown line answer");
    check(";; Is nothing.\n;; {{nowhere}}", "no part nowhere");
    check("", "does not say what it does");
}
