//! More calls than slots, and less address space than the slots require.

use bulkhead_core::call::EvictionVerdict;
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::FaultKind;

use super::guest::{GUEST, ask, load_reused, load_with};
use crate::{Allocation, Options, WasmEngine};

fn engine(instances_max: u32) -> WasmEngine {
    WasmEngine::new(Options {
        instances_max,
        ..Options::default()
    })
    .unwrap()
}

#[test]
fn calls_wait_for_a_place() {
    let engine = engine(2);
    let policy = load_with(&engine, GUEST, Budget::default()).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..50).all(|_| ask(&*policy).is_ok())))
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
}

#[test]
fn a_call_that_finds_no_place_in_time_is_a_fault_of_the_host() {
    let engine = engine(1);
    let quick = load_with(
        &engine,
        GUEST,
        Budget {
            wall_clock_ms: 10,
            ..Budget::default()
        },
    )
    .unwrap();
    let held = engine.slots.take(engine.slots.plugin(), 0).unwrap();
    let fault = ask(&*quick).unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostBusy);
    assert!(
        fault.message.contains("found no free instance slot within 10 ms"),
        "{fault}"
    );
    drop(held);
    assert_eq!(ask(&*quick), Ok(EvictionVerdict::Abstain));
}

#[test]
fn idle_instances_make_room_for_other_plugins() {
    let engine = engine(1);
    let reusable = GUEST.replace(
        "(data (i32.const 128)",
        "(data (i32.const 112) \"\\01\") (data (i32.const 128)",
    );
    let [one, other] = [(), ()].map(|()| load_reused(&engine, &reusable, Budget::default()).unwrap());
    for policy in [&one, &other, &one] {
        assert_eq!(ask(&**policy), Ok(EvictionVerdict::Abstain));
        assert_eq!(engine.idle_instances(), 1);
    }
}

#[test]
fn without_address_space_instances_are_made_on_demand() {
    // The slots do not fit into 47 bits of address space.
    let crowd = engine(200_000);
    assert_eq!(crowd.allocation(), Allocation::OnDemand);
    assert!(
        crowd
            .allocation_problem()
            .is_some_and(|problem| problem.contains("200000 instances"))
    );
    let wanted = WasmEngine::new(Options {
        allocation: Allocation::OnDemand,
        ..Options::default()
    })
    .unwrap();
    assert_eq!(
        (wanted.allocation(), wanted.allocation_problem()),
        (Allocation::OnDemand, None)
    );
    for engine in [crowd, wanted] {
        let policy = load_with(&engine, GUEST, Budget::default()).unwrap();
        assert_eq!(ask(&*policy), Ok(EvictionVerdict::Abstain));
    }
    assert_eq!(engine(4).allocation(), Allocation::Pooled);
}
