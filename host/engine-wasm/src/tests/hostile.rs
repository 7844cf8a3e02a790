//! Misbehaviour of guests that is only possible in hand-written code.

use bulkhead_core::call::EvictionVerdict;
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::FaultKind;

use super::guest::{GUEST, ask, load, with};
use crate::Options;

/// Returns the result of a check that runs this code first.
fn check(code: &str, budget: Budget) -> Result<EvictionVerdict, FaultKind> {
    let policy = load(Options::default(), &with(";; <check>", code), budget).unwrap();
    ask(&*policy).map_err(|fault| fault.kind)
}

#[test]
fn a_guest_that_behaves_is_answered_for() {
    let policy = load(Options::default(), GUEST, Budget::default()).unwrap();
    assert_eq!(ask(&*policy), Ok(EvictionVerdict::Abstain));
}

#[test]
fn every_way_to_misbehave_is_a_fault_of_its_own_kind() {
    let faults = |code, expected| assert_eq!(check(code, Budget::default()), Err(expected), "{code}");
    faults("(loop (br 0))", FaultKind::OutOfFuel);
    faults("unreachable", FaultKind::Trap);
    faults("(drop (call $recurse (i32.const 0)))", FaultKind::Trap);
    faults("(drop (i32.div_s (i32.const 1) (i32.const 0)))", FaultKind::Trap);
    faults("(drop (i32.load (i32.const -4)))", FaultKind::Trap);
    // Memory is refused: the guest gives up, as allocators do.
    faults(
        "(if (i32.lt_s (memory.grow (i32.const 2000)) (i32.const 0)) (then unreachable))",
        FaultKind::Memory,
    );
    // ok(release) with a code outside of its memory.
    let outside = "(i32.store8 (i32.const 516) (i32.const 0)) (i32.store (i32.const 520) (i32.const -4))
                   (i32.store (i32.const 524) (i32.const 4))";
    faults(outside, FaultKind::BadReply);
    // The same with a code that is not UTF-8.
    let garbled = "(i32.store8 (i32.const 516) (i32.const 0)) (i32.store (i32.const 520) (i32.const 600))
                   (i32.store (i32.const 524) (i32.const 1)) (i32.store8 (i32.const 600) (i32.const 0xff))";
    faults(garbled, FaultKind::BadReply);
    // A case that the verdict type does not have.
    faults("(i32.store8 (i32.const 516) (i32.const 9))", FaultKind::BadReply);
    // err(internal("")).
    faults(
        "(i32.store8 (i32.const 512) (i32.const 1)) (i32.store8 (i32.const 516) (i32.const 2))",
        FaultKind::GuestError,
    );
}

#[test]
fn a_guest_that_keeps_what_it_borrowed_is_at_fault() {
    let keeps = with("(call $drop (local.get $binding))", "");
    let fault = ask(&*load(Options::default(), &keeps, Budget::default()).unwrap()).unwrap_err();
    assert_eq!(fault.kind.blame(), bulkhead_core::policy::Blame::Guest, "{fault:?}");
    let drops_twice = check("(call $drop (local.get $binding))", Budget::default()).unwrap_err();
    assert_eq!(
        drops_twice.blame(),
        bulkhead_core::policy::Blame::Guest,
        "{drops_twice:?}"
    );
}

#[test]
fn the_wall_clock_stops_what_has_fuel_left() {
    let budget = Budget {
        steps: u64::MAX,
        wall_clock_ms: 50,
        ..Budget::default()
    };
    assert_eq!(check("(loop (br 0))", budget), Err(FaultKind::Deadline));
}

#[test]
fn the_size_of_a_reply_is_limited() {
    // ok(release) with a code of 40,000 bytes, all zero.
    let long = "(i32.store8 (i32.const 516) (i32.const 0)) (i32.store (i32.const 520) (i32.const 1024))
                (i32.store (i32.const 524) (i32.const 40000))";
    assert!(matches!(
        check(long, Budget::default()),
        Ok(EvictionVerdict::Release(_))
    ));
    let budget = Budget {
        reply_bytes: 10_000,
        ..Budget::default()
    };
    assert_eq!(check(long, budget), Err(FaultKind::BadReply));
}

#[test]
fn memory_is_counted_over_all_memories() {
    let grows = |pages| format!("(if (i32.lt_s (memory.grow (i32.const {pages})) (i32.const 0)) (then unreachable))");
    let budget = Budget {
        memory_bytes: 10 << 16,
        ..Budget::default()
    };
    assert_eq!(check(&grows(9), budget), Ok(EvictionVerdict::Abstain));
    assert_eq!(check(&grows(10), budget), Err(FaultKind::Memory));
    let second = "(core module $more (memory 5)) (core instance (instantiate $more)) (core module $code";
    let text = with("(core module $code", second).replace(";; <check>", &grows(9));
    let policy = load(Options::default(), &text, budget).unwrap();
    assert_eq!(ask(&*policy).map_err(|fault| fault.kind), Err(FaultKind::Memory));
}

#[test]
fn four_memories_are_allowed_and_five_are_not() {
    let modules = |count: usize| {
        let more = "(core module $more (memory 1)) ".to_owned() + &"(core instance (instantiate $more)) ".repeat(count);
        load(
            Options::default(),
            &with("(core module $code", &(more + "(core module $code")),
            Budget::default(),
        )
    };
    assert_eq!(ask(&*modules(3).unwrap()), Ok(EvictionVerdict::Abstain));
    let error = modules(4).map(drop).unwrap_err().to_string();
    assert!(error.contains("memory count too high at 5"), "{error}");
}

#[test]
fn a_borrowed_input_that_is_kept_is_a_fault_with_the_mend() {
    let keeping = GUEST
        .replace("(call $drop-task (local.get $task))", "")
        .replace("(call $drop (local.get $binding))", "");
    assert_ne!(keeping, GUEST);
    let policy = load(Options::default(), &keeping, Budget::default()).unwrap();
    let fault = ask(&*policy).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadReply);
    assert!(
        fault.message.contains("must drop every borrowed handle"),
        "{}",
        fault.message
    );
}

#[test]
fn the_same_call_costs_the_same_fuel() {
    // It answers with exactly the fuel that it needs, and never with one step less.
    let answers = |steps| {
        let budget = Budget {
            steps,
            ..Budget::default()
        };
        load(Options::default(), GUEST, budget).is_ok_and(|policy| ask(&*policy).is_ok())
    };
    let enough = (1..1_000)
        .find(|steps| answers(*steps))
        .expect("it needs less than 1000 steps");
    for _ in 0..3 {
        assert!(answers(enough) && !answers(enough - 1));
    }
}
