//! Printed lines and the cost of calls.

use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::call::Call;
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::{FaultKind, Policy, PolicyId};
use bulkhead_plugin::{Engine, Level};
use serde_json::json;

use super::{health_call, source};
use crate::LuaEngine;

type Printed = Arc<Mutex<Vec<(String, Level, String)>>>;

/// Loads a script, and returns what it prints from its first call on.
fn printing(body: &str) -> (Arc<dyn Policy>, Printed) {
    let printed = Printed::default();
    let sink = Arc::clone(&printed);
    let engine = LuaEngine::default().with_lines(Arc::new(move |id: &PolicyId, level, line: &str| {
        let mut printed = sink.lock().unwrap_or_else(PoisonError::into_inner);
        printed.push((id.name.clone(), level, line.to_owned()));
    }));
    let script = format!("function InterpretHealth(obj)\n{body}\nend");
    let loaded = engine.load(&source(&script, &[EntryPoint::Health])).unwrap();
    printed.lock().unwrap().clear();
    (loaded.policy, printed)
}

/// Returns the lines of one call.
fn printed(body: &str) -> Vec<String> {
    let (policy, printed) = printing(body);
    let _ = policy.call(&Call::Health(health_call(&Arc::new(json!({"n": 3})))));
    let lines = printed.lock().unwrap();
    let is_printed = |(name, level, line): &(String, Level, String)| {
        name == "test" && (*level == Level::Info) != line.ends_with("were dropped")
    };
    assert!(lines.iter().all(is_printed), "{lines:?}");
    lines.iter().map(|(_, _, line)| line.clone()).collect()
}

#[test]
fn printed_values_are_lines_of_the_plugin() {
    let body = "print('n', obj.n, nil, true, 1e300) print() print({}) print('a\\27[31mb\\nc') return true";
    assert_eq!(printed(body), ["n 3 nil true 1e+300", "", "table: 0x0", "a[31mb c"]);
}

#[test]
fn lines_before_an_error_are_kept_and_those_of_the_next_call_are_its_own() {
    let (policy, printed) = printing("print('call') if obj.bad then error('x') end return true");
    let ask = |object| policy.call(&Call::Health(health_call(&Arc::new(object))));
    assert_eq!(ask(json!({"bad": true})).unwrap_err().kind, FaultKind::Trap);
    assert_eq!(printed.lock().unwrap().len(), 1);
    ask(json!({})).unwrap();
    assert_eq!(printed.lock().unwrap().len(), 2);
}

#[test]
fn number_and_length_of_lines_are_bounded() {
    let lines = printed("for i = 1, 1000 do print(i) end return true");
    assert_eq!(lines.len(), 65);
    assert_eq!(lines.last().unwrap(), "936 more lines were dropped");
    let long = printed("local t = {} for i = 1, 2000 do t[i] = 'x' end print(table.concat(t)) return true");
    assert_eq!(long, ["x".repeat(512)]);
}

#[test]
fn printing_has_a_price() {
    let cost = |body: &str| {
        let (policy, _) = printing(body);
        let before = policy.usage().steps;
        policy.call(&Call::Health(health_call(&Arc::new(json!({}))))).unwrap();
        policy.usage().steps - before
    };
    let text = "local s = 'x' for i = 1, 15 do s = s .. s end";
    let (silent, loud) = (
        cost(&format!("{text} return true")),
        cost(&format!("{text} print(s) return true")),
    );
    assert!(silent > 15 && loud >= silent + 32, "{silent} and {loud}");
}

#[test]
fn the_usage_has_the_steps_of_all_calls_and_the_memory_of_the_largest() {
    let (policy, _) = printing("local t = {} for i = 1, obj.n do t[i] = {i} end return true");
    let ask = |n: i64| {
        policy
            .call(&Call::Health(health_call(&Arc::new(json!({"n": n})))))
            .unwrap()
    };
    ask(10);
    let small = policy.usage();
    assert!(small.steps > 10, "{small:?}");
    ask(1_000);
    let large = policy.usage();
    assert!(large.steps > small.steps + 1_000, "{small:?} {large:?}");
    assert!(
        large.memory_bytes_max > small.memory_bytes_max + 16_000,
        "{small:?} {large:?}"
    );
    ask(10);
    let again = policy.usage();
    assert_eq!(again.memory_bytes_max, large.memory_bytes_max);
    assert_eq!(
        again.steps - large.steps,
        small.steps,
        "the same call has the same cost"
    );
}
