//! A guest of the standard library for WASI gets only the time and the seed of its call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bulkhead_core::call::{Call, EvictionCheckCall, EvictionVerdict, Reply};
use bulkhead_core::manifest::Budget;
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::policy::{Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_engine_wasm::{Options, WasmEngine};
use bulkhead_plugin::Engine;
use bulkhead_plugin::Level;
use serde_json::json;

type Lines = Arc<Mutex<Vec<(Level, String)>>>;

/// Returns the guest with the configured behaviour, and its log lines.
fn load(does: &str) -> (Arc<dyn Policy>, Lines) {
    let lines = Lines::default();
    let sink = Arc::clone(&lines);
    let log = move |_: &PolicyId, level, line: &str| sink.lock().unwrap().push((level, line.to_owned()));
    let engine = WasmEngine::new(Options {
        log: Some(Arc::new(log)),
        ..Options::default()
    })
    .unwrap();
    let policy = engine
        .load(&super::source(
            super::guest("asks-wasi"),
            json!(does),
            Budget::default(),
        ))
        .unwrap()
        .policy;
    (policy, lines)
}

fn ask(policy: &dyn Policy, binding: &str, now_ms: i64) -> Result<String, Fault> {
    let binding = Binding {
        name: binding.to_owned(),
        ..Binding::default()
    };
    let task = GracefulEvictionTask::default();
    let call = EvictionCheckCall {
        binding: &binding,
        task: &task,
        observed: &[],
        now: Time::from_millis(now_ms),
    };
    policy.call(&Call::EvictionCheck(call)).map(|reply| match reply {
        Reply::EvictionCheck(EvictionVerdict::Hold { reason, .. }) => reason.message,
        reply => panic!("{reply:?}"),
    })
}

/// Returns the results that the guest reported, by name.
fn summary(message: &str) -> BTreeMap<&str, &str> {
    message
        .split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .collect()
}

#[test]
fn the_standard_library_finds_a_world_that_is_empty() {
    let (policy, lines) = load("asks");
    let answer = ask(&*policy, "nginx", 1_700_000_000_123).unwrap();
    let mut actual = summary(&answer);
    assert!(actual.remove("random").is_some());
    let expected = [
        ("wall-ms", "1700000000123"),
        // An hour of sleep ends immediately, and no time has passed.
        ("slept-ms", "0"),
        ("variables", "0"),
        ("arguments", "0"),
        ("folder", "false"),
        ("file", "false"),
        ("written", "false"),
        ("connected", "false"),
        ("bound", "false"),
        ("resolved", "false"),
        ("input", "0"),
    ];
    assert_eq!(actual, expected.into_iter().collect());
    let expected = [
        (Level::Info, "a line"),
        (Level::Info, "and another"),
        (Level::Warn, "no end"),
    ];
    assert_eq!(
        *lines.lock().unwrap(),
        expected.map(|(level, line)| (level, line.to_owned()))
    );
}

#[test]
fn random_numbers_follow_from_the_question() {
    let random = |binding| {
        let (policy, _) = load("asks");
        let answer = ask(&*policy, binding, 0).unwrap();
        summary(&answer)["random"].to_owned()
    };
    assert_eq!(random("nginx"), random("nginx"));
    assert_ne!(random("nginx"), random("redis"));
}

#[test]
fn exits_and_panics_are_traps() {
    let (exits, _) = load("exits");
    let fault = ask(&*exits, "nginx", 0).unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::Trap, "exited with status 1")
    );
    let (panics, lines) = load("panics");
    assert_eq!(ask(&*panics, "nginx", 0).unwrap_err().kind, FaultKind::Trap);
    let lines = lines.lock().unwrap();
    assert!(
        lines
            .iter()
            .any(|(level, line)| *level == Level::Warn && line.contains("on purpose")),
        "{lines:?}"
    );
}
