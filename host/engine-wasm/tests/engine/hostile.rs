//! Every guest in `tests/guests/hostile/wasm` has the outcome in its header and does not affect its neighbours.
//!
//! The header of a guest consists of comments: a description, then `key: value` lines. One of them is the outcome:
//! `expect:` with the kind of fault of its call, `refused:` with the stage at which loading fails, or `answers`.
//! `says:` is a part of the message, `budget:` is JSON that overrides parts of the default one, `cut:` is the part of
//! the binary to keep, and `kind:` is its kind of policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::call::{Call, HealthCall, HealthVerdict, Reply};
use bulkhead_core::manifest::{Budget, Instances};
use bulkhead_core::policy::{Fault, FaultKind, Policy};
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::{Options, WasmEngine};
use bulkhead_plugin::{Engine, LoadError, LoadStage, PluginSource};
use serde_json::{Value, json};

/// Outcome of a guest.
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
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .join("tests/guests/hostile/wasm")
}

/// Returns the parts of `prelude.txt` by name.
fn parts() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("prelude.txt")).unwrap();
    let sections = text.split("\n== ").skip(1);
    sections
        .map(|section| section.split_once('\n').unwrap())
        .map(|(name, part)| (name.into(), part.into()))
        .collect()
}

/// Replaces the names of parts by their text, recursively.
fn filled(text: &str, parts: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = text.to_owned();
    while let Some((before, rest)) = text.split_once("{{") {
        let (name, after) = rest.split_once("}}").ok_or("a {{ without }}")?;
        let part = parts
            .get(name)
            .ok_or_else(|| format!("no part {name} in prelude.txt"))?;
        text = format!("{before}{}{after}", part.trim_end());
    }
    Ok(text)
}

fn stage(name: &str) -> Result<LoadStage, String> {
    let stages = [
        LoadStage::Inspected,
        LoadStage::Compiled,
        LoadStage::Described,
        LoadStage::Configured,
    ];
    stages
        .into_iter()
        .find(|stage| stage.to_string() == name)
        .ok_or_else(|| format!("no stage {name}"))
}

/// Returns the default budget with some values overridden.
fn budget(changes: &str) -> Result<Budget, String> {
    serde_json::from_str(changes).map_err(|error| format!("budget: {error}"))
}

fn cut(mut binary: Vec<u8>, how: &str) -> Result<Vec<u8>, String> {
    let number = |unit: &str| {
        how.strip_suffix(unit)
            .and_then(|number| number.trim().parse::<usize>().ok())
    };
    let left = number("%")
        .map(|percent| binary.len() * percent / 100)
        .or_else(|| number("bytes"));
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
    let mut guest = Guest {
        end: End::Answers,
        says: None,
        budget: Budget::default(),
        binary,
    };
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

/// Returns all guests by name.
fn guests() -> BTreeMap<String, Guest> {
    let parts = parts();
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let guests = files.filter(|file| file.extension().is_some_and(|extension| extension == "wat"));
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let guest = read(&fs::read_to_string(&file).unwrap(), &parts);
        (
            name.clone(),
            guest.unwrap_or_else(|problem| panic!("{name}.wat: {problem}")),
        )
    };
    guests.map(read).collect()
}

fn load(engine: &WasmEngine, guest: &Guest) -> Result<Arc<dyn Policy>, LoadError> {
    engine
        .load(&super::source(guest.binary.clone(), Value::Null, guest.budget))
        .map(|loaded| loaded.policy)
}

fn ask(policy: &dyn Policy) -> Result<HealthVerdict, Fault> {
    let object = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx"}}));
    let call = HealthCall {
        object: &object,
        now: Time::from_millis(0),
    };
    policy.call(&Call::Health(call)).map(|reply| match reply {
        Reply::Health(verdict) => verdict,
        reply => panic!("a {} reply", reply.kind()),
    })
}

/// Returns the outcome of a guest, its message, and the exceeded bounds.
fn run(engine: &WasmEngine, guest: &Guest) -> (End, String, Vec<String>) {
    let budget = &guest.budget;
    let mut broken = Vec::new();
    let policy = match load(engine, guest) {
        Ok(policy) => policy,
        Err(error) => return (End::Refused(error.stage), error.message, broken),
    };
    let answer = ask(&*policy);
    let usage = policy.usage();
    if usage.steps > budget.steps || usage.memory_bytes_max > budget.memory_bytes as u64 {
        broken.push(format!("{usage:?}"));
    }
    // Nothing that the first call left behind may change the second.
    let kind = |fault: Fault| fault.kind;
    let again = ask(&*policy).map_err(kind);
    if again != answer.clone().map_err(kind) {
        broken.push(format!("its second call ends in {again:?}"));
    }
    match answer {
        Ok(_) => (End::Answers, String::new(), broken),
        Err(fault) => (End::Fault(fault.kind), fault.message, broken),
    }
}

/// Returns the deviation of a guest from its expected outcome, if any.
fn objection(engine: &WasmEngine, guest: &Guest) -> Option<String> {
    let (end, message, broken) = run(engine, guest);
    if end != guest.end {
        return Some(format!("{end:?} ({message}) instead of {:?}", guest.end));
    }
    if let Some(words) = guest.says.as_ref().filter(|words| !message.contains(*words)) {
        return Some(format!("no {words:?} in: {message}"));
    }
    (!broken.is_empty()).then(|| broken.join("; "))
}

/// Returns harmless plugins of the same engine: one with a new instance for every call, one that reuses its instance.
fn neighbours(engine: &WasmEngine, guests: &BTreeMap<String, Guest>) -> [Arc<dyn Policy>; 2] {
    let fresh = load(engine, &guests["well-behaved"]).unwrap();
    let source = super::source(super::guest("deployment-health"), Value::Null, Budget::default());
    let source = PluginSource {
        instances: Instances::Reused,
        ..source
    };
    [fresh, engine.load(&source).unwrap().policy]
}

/// Returns a neighbour's answer with the steps of the call and the maximum memory of all its calls. Hostile guests
/// must not change any of them.
fn answer_and_cost(neighbour: &dyn Policy) -> (Result<HealthVerdict, Fault>, u64, u64) {
    let before = neighbour.usage().steps;
    let answer = ask(neighbour);
    let usage = neighbour.usage();
    (answer, usage.steps - before, usage.memory_bytes_max)
}

#[test]
fn every_hostile_guest_comes_to_its_end_and_its_neighbours_do_not_notice() {
    let guests = guests();
    assert!(guests.len() >= 145, "only {} guests", guests.len());
    let engine = WasmEngine::new(Options::default()).unwrap();
    let neighbours = neighbours(&engine, &guests);
    let verdicts = || neighbours.each_ref().map(|neighbour| answer_and_cost(&**neighbour));
    // The first call of a reused instance configures it.
    let first = verdicts();
    assert!(first.iter().all(|(answer, ..)| answer.is_ok()), "{first:?}");
    let before = verdicts();
    assert!(before.iter().all(|(answer, ..)| answer.is_ok()), "{before:?}");
    let problems: Vec<_> = guests
        .iter()
        .filter_map(|(name, guest)| {
            let problem = objection(&engine, guest);
            let after = verdicts();
            let noticed = || (after != before).then(|| format!("its neighbours say {after:?}"));
            problem.or_else(noticed).map(|problem| format!("{name}.wat: {problem}"))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_guest_without_an_expectation_is_a_mistake() {
    let check = |header: &str, problem: &str| {
        let found = read(&format!("{header}\n(component)"), &BTreeMap::new())
            .err()
            .unwrap_or_default();
        assert!(found.contains(problem), "{header}: {found}");
    };
    check(";; Is nothing.\n;; kind: health", "does not say what becomes of it");
    check(";; Is nothing.\n;; answers", "kind must be health");
    check(
        ";; Is nothing.\n;; kind: health\n;; expect: anything",
        "unknown variant",
    );
    check(";; Is nothing.\n;; kind: health\n;; refused: never", "no stage never");
    check(";; Is nothing.\n;; kind: health\n;; answer", "unknown line answer");
    check(";; Is nothing.\n;; {{nowhere}}", "no part nowhere");
    check("", "does not say what it does");
}
