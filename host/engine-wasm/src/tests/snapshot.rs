//! Components that start configured: fewer steps, and the same answers.

use bulkhead_core::call::{CallKind, EvictionVerdict};
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{FaultKind, Policy};
use tempfile::TempDir;

use super::guest::{GUEST, ask, load_reused, load_with, with};
use super::reuse::{later, reusable};
use crate::{CacheOptions, CacheReport, Options, WasmEngine};

/// Work of a configuration, in steps at least.
const WORK: u64 = 20_000;

/// Returns an engine that makes snapshots of components of any size, with a cache.
fn engine(cache: Option<&TempDir>) -> WasmEngine {
    let options = Options {
        snapshot_bytes_min: 0,
        cache: cache.map(|folder| CacheOptions::in_folder(folder.path())),
        ..Options::default()
    };
    WasmEngine::new(options).unwrap()
}

/// Returns a guest that works and counts when it is configured, in memory and in a global, and counts its calls. It
/// abstains if it was configured once and is called for the first time. Further code runs when it is configured.
fn busy(configure: &str) -> String {
    let bump = |at: u32| format!("(i32.store (i32.const {at}) (i32.add (i32.load (i32.const {at})) (i32.const 1)))");
    let work = format!(
        "(loop (global.set $done (i32.add (global.get $done) (i32.const 1)))
               (br_if 0 (i32.lt_u (global.get $done) (i32.const {WORK}))))
         {} {configure}",
        bump(704)
    );
    let check = format!(
        "{}
         (if (i32.ne (i32.load (i32.const 700)) (i32.const 1)) (then (i32.store8 (i32.const 516) (i32.const 0))))
         (if (i32.ne (i32.load (i32.const 704)) (i32.const 1)) (then (i32.store8 (i32.const 516) (i32.const 0))))
         (if (i32.ne (global.get $done) (i32.const {WORK})) (then (i32.store8 (i32.const 516) (i32.const 0))))",
        bump(700)
    );
    with(
        "(func $recurse",
        "(global $done (mut i32) (i32.const 0))\n    (func $recurse",
    )
    .replace(";; <configure>", &work)
    .replace(";; <check>", &check)
}

/// Checks that each of several calls finds a configured instance, and returns the steps of one.
fn steps(policy: &dyn Policy) -> u64 {
    let calls = 3;
    for call in 0..calls {
        assert_eq!(ask(policy), Ok(EvictionVerdict::Abstain), "call {call}");
    }
    policy.usage_of(CallKind::EvictionCheck).steps / calls
}

fn steps_of(engine: &WasmEngine, text: &str) -> u64 {
    steps(&*load_with(engine, text, Budget::default()).unwrap())
}

#[test]
fn a_call_starts_after_the_configuration() {
    let plain = steps_of(&WasmEngine::new(Options::default()).unwrap(), &busy(""));
    assert!(plain > WORK, "{plain}");
    let from_snapshot = steps_of(&engine(None), &busy(""));
    assert!(from_snapshot < 1_000, "{from_snapshot}");
}

#[test]
fn a_component_whose_state_cannot_be_kept_is_configured_before_each_call() {
    let vector = busy("").replace(
        "(global $done",
        "(global $vector (mut v128) (v128.const i64x2 0 0)) (global $done",
    );
    let table = busy("(table.set $table (i32.const 0) (ref.null func))")
        .replace("(global $done", "(table $table 1 funcref) (global $done");
    // A handle of such a resource holds a number, and would outlive the call.
    let resource = busy("").replace(
        "  (core module $heap",
        "  (type $own (resource (rep i32)))\n  (core func (canon resource.new $own))\n  (core module $heap",
    );
    for text in [vector, table, resource] {
        let steps = steps_of(&engine(None), &text);
        assert!(steps > WORK, "{steps}: {text}");
    }
}

/// Returns a guest whose configuration reads the time of the call.
fn reads_time() -> String {
    busy("(drop (call $now))")
        .replace(
            "  (alias export $inputs \"binding\"",
            "  (import \"bulkhead:policy/context@0.1.0\" (instance $context (export \"now-ms\" (func (result s64)))))
               (alias export $inputs \"binding\"",
        )
        .replace(
            "  (core func $write ",
            "  (core func $now (canon lower (func $context \"now-ms\")))\n  (core func $write ",
        )
        .replace(
            "(import \"host\" \"write\"",
            "(import \"host\" \"now\" (func $now (result i64))) (import \"host\" \"write\"",
        )
        .replace(
            "(export \"write\" (func $write))",
            "(export \"write\" (func $write)) (export \"now\" (func $now))",
        )
}

#[test]
fn a_configuration_that_reads_the_time_is_repeated() {
    let steps = steps_of(&engine(None), &reads_time());
    assert!(steps > WORK, "{steps}");
}

/// Returns the hits and misses of the cache.
fn report(engine: &WasmEngine) -> (u64, u64) {
    let CacheReport { hits, misses, .. } = engine.cache_report().unwrap();
    (hits, misses)
}

#[test]
fn the_cache_keeps_that_a_component_cannot_start_configured() {
    let folder = TempDir::new().unwrap();
    let engines = [engine(Some(&folder)), engine(Some(&folder))];
    for engine in &engines {
        let steps = steps_of(engine, &reads_time());
        assert!(steps > WORK, "{steps}");
    }
    // The mark and the component.
    assert_eq!(engines.each_ref().map(report), [(0, 2), (2, 0)]);
}

#[test]
fn the_cache_keeps_snapshots_by_configuration() {
    let folder = TempDir::new().unwrap();
    let (first, second) = (engine(Some(&folder)), engine(Some(&folder)));
    let steps = [&first, &second].map(|engine| steps_of(engine, &busy("")));
    assert!(steps[0] == steps[1] && steps[0] < 1_000, "{steps:?}");
    assert_eq!((report(&first), report(&second)), ((0, 1), (1, 0)));
    // A reused instance is configured once anyway, so it needs the component as it is.
    load_reused(&second, &reusable(&busy("")), Budget::default()).unwrap();
    assert_eq!(report(&second), (1, 1));
}

#[test]
fn a_component_that_cannot_be_configured_has_its_own_error() {
    let failing = GUEST.replace(";; <configure>", "unreachable");
    let errors = [engine(None), WasmEngine::new(Options::default()).unwrap()].map(|engine| {
        let error = load_with(&engine, &failing, Budget::default()).err().unwrap();
        (error.stage, error.message)
    });
    assert_eq!(errors[0], errors[1]);
}

/// Returns the answers of a reusable plugin to some calls, and the number of instances that wait then.
fn reused(text: &str, calls: usize) -> (Vec<Result<EvictionVerdict, FaultKind>>, usize) {
    let engine = engine(None);
    let policy = load_with(&engine, &reusable(text), Budget::default()).unwrap();
    let answers = (0..calls).map(|_| ask(&*policy).map_err(|fault| fault.kind)).collect();
    (answers, engine.idle_instances())
}

/// Returns a guest that counts its calls in memory and in a global. The calls before the snapshot are part of it, so a
/// call abstains if it is the fourth. Further code runs in each call.
fn counting(then: &str) -> String {
    let bump = "(i32.store (i32.const 700) (i32.add (i32.load (i32.const 700)) (i32.const 1)))
                (global.set $done (i32.add (global.get $done) (i32.const 1)))";
    let both = "(i32.and (i32.eq (i32.load (i32.const 700)) (i32.const 4)) (i32.eq (global.get $done) (i32.const 4)))";
    let answer = format!("(i32.store8 (i32.const 516) (i32.shl {both} (i32.const 1)))");
    with(
        "(func $recurse",
        "(global $done (mut i32) (i32.const 0))\n    (func $recurse",
    )
    .replace(";; <check>", &format!("{bump} {answer} {then}"))
}

const FIRST: Result<EvictionVerdict, FaultKind> = Ok(EvictionVerdict::Abstain);

#[test]
fn a_reusable_component_gets_its_memory_and_its_globals_back() {
    assert_eq!(reused(&counting(""), 5), (vec![FIRST; 5], 1));
}

/// The last page is the one that is added to describe the memory.
#[test]
fn the_whole_memory_is_given_back() {
    let last = "(i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4))";
    let marks = format!(
        "(if (i32.load {last}) (then (i32.store8 (i32.const 516) (i32.const 0))))
         (memory.fill (i32.const 40000) (i32.const 7) (i32.const 20000))
         (i32.store {last} (i32.const 7))"
    );
    // The calls before the snapshot mark the page that is the last one at that time.
    let unmarked = format!("(i32.store {last} (i32.const 0))");
    let before = format!("(if (i32.lt_u (i32.load (i32.const 700)) (i32.const 4)) (then {unmarked}))");
    assert_eq!(reused(&counting(&format!("{marks} {before}")), 5), (vec![FIRST; 5], 1));
}

#[test]
fn an_instance_that_grew_is_dropped() {
    let answers = reused(&counting("(drop (memory.grow (i32.const 1)))"), 5);
    assert_eq!(answers, (vec![FIRST; 5], 0));
}

/// A trap before the snapshot leaves no state in it.
#[test]
fn a_component_that_cannot_be_warmed_up_is_only_configured() {
    let traps = "(if (i32.eq (i32.load (i32.const 700)) (i32.const 2)) (then unreachable))";
    let (answers, idle) = reused(&counting(traps), 2);
    assert_eq!((answers, idle), (vec![Ok(later()); 2], 1));
}
