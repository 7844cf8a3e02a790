//! Instances that answer several calls, and the conditions under which they are dropped.

use bulkhead_core::call::{EvictionVerdict, Reason};
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{FaultKind, Policy};
use bulkhead_plugin::LoadStage;

use super::guest::{GUEST, ask, load_reused, load_with};
use crate::{Options, WasmEngine};

/// Returns a guest that counts its calls in memory: it abstains from the first and releases on every other one.
/// `then` runs in each call.
fn counting(then: &str) -> String {
    let counts = "(i32.store (i32.const 700) (i32.add (i32.load (i32.const 700)) (i32.const 1)))
                  (if (i32.gt_u (i32.load (i32.const 700)) (i32.const 1))
                    (then (i32.store8 (i32.const 516) (i32.const 0))))";
    reusable(&GUEST.replace(";; <check>", &format!("{counts} {then}")))
}

/// Returns the component with metadata that declares it reusable.
pub(super) fn reusable(text: &str) -> String {
    let metadata = "(data (i32.const 128) \"test1.2.3\")";
    assert_eq!(text.matches(metadata).count(), 1);
    text.replace(metadata, &format!("{metadata} (data (i32.const 112) \"\\01\")"))
}

const FIRST: Result<EvictionVerdict, FaultKind> = Ok(EvictionVerdict::Abstain);

pub(super) fn later() -> EvictionVerdict {
    EvictionVerdict::Release(Reason::new("", ""))
}

fn verdict(policy: &dyn Policy) -> Result<EvictionVerdict, FaultKind> {
    ask(policy).map_err(|fault| fault.kind)
}

/// Returns the answers of a reused plugin to a number of calls.
fn answers(text: &str, budget: Budget, calls: usize) -> Vec<Result<EvictionVerdict, FaultKind>> {
    let engine = WasmEngine::new(Options::default()).unwrap();
    let policy = load_reused(&engine, text, budget).unwrap();
    (0..calls).map(|_| verdict(&*policy)).collect()
}

#[test]
fn reuse_takes_the_operator_and_the_plugin() {
    let engine = WasmEngine::new(Options::default()).unwrap();
    let fresh = load_with(&engine, &counting(""), Budget::default()).unwrap();
    assert_eq!([verdict(&*fresh), verdict(&*fresh)], [FIRST, FIRST]);
    assert_eq!(engine.idle_instances(), 0);
    let error = load_reused(&engine, GUEST, Budget::default()).err().unwrap();
    assert_eq!(error.stage, LoadStage::Described);
    assert!(
        error.message.contains("needs a plugin that declares itself reusable"),
        "{error}"
    );
    let reused = load_reused(&engine, &counting(""), Budget::default()).unwrap();
    assert_eq!([verdict(&*reused), verdict(&*reused)], [FIRST, Ok(later())]);
    assert_eq!(engine.idle_instances(), 1);
    drop(reused);
    assert_eq!(
        engine.idle_instances(),
        0,
        "nothing of a plugin is left when it is gone"
    );
}

#[test]
fn a_fault_ends_an_instance() {
    let on_the_second = |code: &str| {
        let text = format!("(if (i32.eq (i32.load (i32.const 700)) (i32.const 2)) (then {code}))");
        answers(&counting(&text), Budget::default(), 3)
    };
    assert_eq!(on_the_second("unreachable"), [FIRST, Err(FaultKind::Trap), FIRST]);
    let internal = "(i32.store8 (i32.const 512) (i32.const 1)) (i32.store8 (i32.const 516) (i32.const 2))";
    assert_eq!(on_the_second(internal), [FIRST, Err(FaultKind::GuestError), FIRST]);
    let unsupported = "(i32.store8 (i32.const 512) (i32.const 1)) (i32.store8 (i32.const 516) (i32.const 0))";
    assert_eq!(on_the_second(unsupported)[1], Err(FaultKind::Unsupported));
    let goes_on = "(i32.store8 (i32.const 512) (i32.eq (i32.load (i32.const 700)) (i32.const 2)))";
    let expected = [FIRST, Err(FaultKind::Unsupported), Ok(later())];
    assert_eq!(
        answers(&counting(goes_on), Budget::default(), 3),
        expected,
        "an abstention does not"
    );
}

#[test]
fn an_instance_answers_a_bounded_number_of_calls() {
    let answers = answers(&counting(""), Budget::default(), 2_002);
    let first: Vec<_> = (0..)
        .zip(&answers)
        .filter(|(_, answer)| **answer == FIRST)
        .map(|(call, _)| call)
        .collect();
    assert_eq!(first, [0, 1_000, 2_000]);
}

#[test]
fn an_instance_that_grew_is_not_used_again() {
    // Each call grows the memory by a page; one MiB is 16 pages.
    let answers = answers(&counting("(drop (memory.grow (i32.const 1)))"), Budget::default(), 20);
    let first: Vec<_> = (0..)
        .zip(&answers)
        .filter(|(_, answer)| **answer == FIRST)
        .map(|(call, _)| call)
        .collect();
    assert_eq!(first, [0, 17]);
}

#[test]
fn every_call_has_the_whole_budget() {
    let works = "(local.set $task (i32.const 1000))
                 (loop (br_if 0 (local.tee $task (i32.sub (local.get $task) (i32.const 1)))))";
    let budget = Budget {
        steps: 8_000,
        ..Budget::default()
    };
    let answers = answers(&counting(works), budget, 10);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[test]
fn an_instance_that_keeps_a_handle_is_not_used_again() {
    // The guest gets a document and never drops it.
    let text = counting("(drop (call $document (local.get $binding)))");
    let changes = [
        (
            "(import \"bulkhead:policy/binding@0.1.0\"",
            "(import \"bulkhead:policy/object@0.1.0\" (instance $objects (export \"object\" (type (sub resource)))))
             (alias export $objects \"object\" (type $object))
             (import \"bulkhead:policy/binding@0.1.0\"",
        ),
        (
            "(export \"eviction-task\" (type (sub resource)))))",
            "(export \"eviction-task\" (type (sub resource)))
             (export \"object\" (type $object' (eq $object)))
             (export \"[method]binding.document\" (func (param \"self\" (borrow 0)) (result (own $object'))))))",
        ),
        (
            "(core func $drop (canon",
            "(core func $document (canon lower (func $inputs \"[method]binding.document\")))
             (core func $drop (canon",
        ),
        (
            "(import \"host\" \"drop\" (func",
            "(import \"host\" \"document\" (func $document (param i32) (result i32)))
             (import \"host\" \"drop\" (func",
        ),
        (
            "(export \"drop\" (func $drop)) ",
            "(export \"document\" (func $document)) (export \"drop\" (func $drop)) ",
        ),
    ];
    let text = changes.into_iter().fold(text, |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    });
    assert_eq!(answers(&text, Budget::default(), 3), [FIRST, FIRST, FIRST]);
    // Handles use memory of the host, so their number is limited.
    let hoards = text
        .replace("(drop (call $document", "(loop (drop (call $document")
        .replace(
            "(call $drop (local.get $binding))",
            "(br 0)) (call $drop (local.get $binding))",
        );
    assert_eq!(answers(&hoards, Budget::default(), 1), [Err(FaultKind::Denied)]);
}

#[test]
fn usage_adds_up_over_calls() {
    let engine = WasmEngine::new(Options::default()).unwrap();
    let policy = load_with(&engine, GUEST, Budget::default()).unwrap();
    assert_eq!(policy.usage().steps, 0);
    verdict(&*policy).unwrap();
    let once = policy.usage();
    verdict(&*policy).unwrap();
    assert!(once.steps > 0);
    assert_eq!(
        (policy.usage().steps, policy.usage().memory_bytes_max),
        (2 * once.steps, 1 << 16)
    );
}
