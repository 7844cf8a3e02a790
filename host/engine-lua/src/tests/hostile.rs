use std::sync::Arc;

use bulkhead_core::call::{Call, Reply};
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::FaultKind;
use bulkhead_plugin::{Engine, Inspection};
use serde_json::json;

use super::{fault_of, health_call, kind_of_fault, small_budget, source};
use crate::LuaEngine;

#[test]
fn endless_loops_run_out_of_fuel() {
    let check = |body: &str| assert_eq!(kind_of_fault(body), FaultKind::OutOfFuel, "{body}");
    check("while true do end");
    check("repeat until false");
    check("for i = 1, math.huge do end");
    check("local t = {} t.f = function() while true do end end t.f()");
}

#[test]
fn the_place_is_named() {
    assert_eq!(
        fault_of("\nwhile true do end").message,
        "test.lua:3: used up its 100000 steps"
    );
}

#[test]
fn a_loop_cannot_hide_behind_pcall() {
    let check = |body: &str| assert_eq!(kind_of_fault(body), FaultKind::OutOfFuel, "{body}");
    check("while true do pcall(function() while true do end end) end");
    check("pcall(function() while true do end end) return true");
    check("local function again() pcall(function() while true do end end) return again() end again()");
    check("xpcall(function() while true do end end, function() while true do end end) return true");
}

#[test]
fn memory_bombs_hit_the_limit() {
    let check = |body: &str| assert_eq!(kind_of_fault(body), FaultKind::Memory, "{body}");
    check("local s = 'x' while true do s = s .. s end");
    check("local t = {} while true do t = {t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t} end");
    check("local t = {} for i = 1, 1e9 do t[i] = {i, {i}} end");
}

#[test]
fn a_script_out_of_memory_is_named_with_a_place_and_the_limit() {
    let check = |body: &str, line: usize| {
        let expected = format!("test.lua:{line}: used up its memory of 4194304 bytes");
        assert_eq!(fault_of(body).message, expected, "{body}");
    };
    check("local t = {}\n\nfor i = 1, 1e9 do t[i] = {i, {i}} end", 4);
    // One step doubles the memory, so the place is that of the function.
    check("\nlocal s = 'x' while true do s = s .. s end", 1);
}

#[test]
fn memory_that_was_refused_may_be_done_without() {
    let body = "local ok = pcall(function() local s = 'x' while true do s = s .. s end end) return not ok";
    let script = format!("function InterpretHealth(obj) {body} end");
    assert!(super::health_of(&script, &json!({})).is_ok());
}

#[test]
fn deep_recursion_is_a_trap() {
    let check = |body: &str| assert_eq!(kind_of_fault(body), FaultKind::Trap, "{body}");
    check("local function f(n) return 1 + f(n + 1) end return f(1)");
    check("local function f() return f() end return f()");
}

#[test]
fn recursion_through_pcall_ends_without_harm() {
    let script = "function InterpretHealth(obj) local function f() pcall(f) end f() return true end";
    assert!(super::health_of(script, &json!({})).is_ok());
    let script = "function InterpretHealth(obj) local function f() pcall(f) pcall(f) end f() return true end";
    assert_eq!(
        super::health_of(script, &json!({})).map_err(|fault| fault.kind),
        Err(FaultKind::OutOfFuel)
    );
}

#[test]
fn pattern_bombs_are_stopped() {
    let check = |body: &str, expected: FaultKind| assert_eq!(kind_of_fault(body), expected, "{body}");
    let text = "local s = 'a' for i = 1, 16 do s = s .. s end ";
    check(
        &format!("{text} return s:find('.-.-.-.-.-.-.-b')"),
        FaultKind::OutOfFuel,
    );
    check(
        &format!("{text} for m in s:gmatch('(.-)(.-)(.-)b') do end"),
        FaultKind::OutOfFuel,
    );
    check(&format!("{text} return s:find(s .. 'b', 1, true)"), FaultKind::Trap);
    check(
        "local s = 'a' for i = 1, 20 do s = s .. s end return s:find('a')",
        FaultKind::Trap,
    );
}

#[test]
fn sorting_can_be_stopped() {
    let body = "local t = {} for i = 1, 20000 do t[i] = -i end while true do table.sort(t) end";
    assert_eq!(kind_of_fault(body), FaultKind::OutOfFuel);
}

#[test]
fn huge_and_deep_replies_are_refused() {
    let check = |body: &str, expected: &str| {
        let fault = fault_of(body);
        assert_eq!(
            (fault.kind, fault.message.as_str()),
            (FaultKind::BadReply, expected),
            "{body}"
        );
    };
    let prefix = "test.lua:1: InterpretHealth returned a bad value:";
    let large = format!("{prefix} larger than 65536 bytes");
    check("local s = 'x' for i = 1, 17 do s = s .. s end return s", &large);
    check("local t = {} for i = 1, 20000 do t[i] = true end return t", &large);
    check("local t = {1} for i = 1, 60 do t = {t, t} end return t", &large);
    check(
        "local t = {} for i = 1, 1000 do t = {t} end return t",
        &format!("{prefix} nested deeper than 100"),
    );
    check(
        "local t = {} t.self = t return t",
        &format!("{prefix} self: a table contains itself"),
    );
}

#[test]
fn time_is_the_backstop() {
    let mut source = source(
        "function InterpretHealth(obj) while true do end end",
        &[EntryPoint::Health],
    );
    source.budget = Budget {
        steps: u64::MAX,
        wall_clock_ms: 20,
        ..small_budget()
    };
    let policy = LuaEngine::default().load(&source).unwrap().policy;
    let fault = policy
        .call(&Call::Health(health_call(&Arc::new(json!({})))))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Deadline);
}

#[test]
fn an_answer_after_the_deadline_is_a_fault() {
    // So few steps that the clock is not checked in between; only the check at the end can detect the deadline.
    let mut source = source("function InterpretHealth(obj) return true end", &[EntryPoint::Health]);
    source.budget = Budget {
        wall_clock_ms: 0,
        ..small_budget()
    };
    source.inspection = Inspection::AtCalls;
    let policy = LuaEngine::default().load(&source).unwrap().policy;
    let fault = policy
        .call(&Call::Health(health_call(&Arc::new(json!({})))))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Deadline);
    assert!(fault.message.ends_with("took longer than 0 ms"), "{}", fault.message);
}

#[test]
fn the_error_of_a_missing_module_repeats_the_start_of_its_name() {
    let fault = fault_of("local name = 'm' for i = 1, 19 do name = name .. name end return require(name)");
    let expected = format!(
        "test.lua:2: module {} not found, the only module is kube",
        "m".repeat(100)
    );
    assert_eq!((fault.kind, fault.message), (FaultKind::Denied, expected));
}

#[test]
fn a_budget_too_small_for_the_state_is_a_fault() {
    let mut source = source("function InterpretHealth(obj) return true end", &[EntryPoint::Health]);
    source.budget = Budget {
        memory_bytes: 1 << 10,
        ..small_budget()
    };
    assert!(LuaEngine::default().load(&source).is_err());
}

#[test]
fn a_call_uses_the_same_number_of_steps_each_time() {
    let object = Arc::new(json!({"a": {"x": 1, "y": 2}, "b": [1, 2, 3]}));
    let script = "function InterpretHealth(obj) for k in pairs(obj) do for i = 1, 100 do end end return true end";
    let healthy_with = |steps: u64| {
        let mut source = source(script, &[EntryPoint::Health]);
        source.budget = Budget {
            steps,
            ..small_budget()
        };
        let policy = LuaEngine::default().load(&source).unwrap().policy;
        let mut replies = (0..3).map(|_| policy.call(&Call::Health(health_call(&object))));
        let first = matches!(replies.next(), Some(Ok(Reply::Health(_))));
        assert!(replies.all(|reply| reply.is_ok() == first), "{steps} steps");
        first
    };
    let needed = (1..1000)
        .find(|steps| healthy_with(*steps))
        .expect("1000 steps suffice");
    assert!(!healthy_with(needed - 1));
    assert!(healthy_with(needed));
}
