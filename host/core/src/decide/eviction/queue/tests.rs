use proptest::prelude::*;

use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

fn waiting(cluster: &str, priority: i32) -> Waiting {
    Waiting {
        cluster: cluster.to_owned(),
        priority: priority.into(),
        not_before: Duration::ZERO,
    }
}

fn global(rate: f64) -> impl Fn(&str) -> Limit {
    move |_| Limit {
        global: Rate::per_second(rate),
        group: None,
        cluster: None,
    }
}

/// Takes, charges and finishes items until `end`. Returns them with the second of their eviction.
fn drain(
    queue: &mut EvictionQueue<&'static str>,
    limit: impl Fn(&str) -> Limit,
    end: Duration,
) -> Vec<(u64, &'static str)> {
    let (mut now, mut evicted) = (Duration::ZERO, Vec::new());
    while now <= end {
        match queue.next(now, &limit) {
            Next::Take(key) => {
                let cluster = queue
                    .items()
                    .find(|(existing, _)| **existing == key)
                    .map(|(_, cluster)| cluster.to_owned());
                let cluster = cluster.unwrap_or_default();
                let slot = queue.charge(&cluster, &limit(&cluster), now);
                queue.settle(&slot, &cluster, &limit(&cluster), now);
                queue.finish(&key, Finished::Done, now);
                evicted.push((now.as_secs(), key));
            }
            Next::WaitUntil(at) => now = at,
            Next::Idle => break,
        }
    }
    evicted
}

fn queue(items: &[(&'static str, &str, i32)]) -> EvictionQueue<&'static str> {
    let mut queue = EvictionQueue::new(None);
    for (key, cluster, priority) in items {
        queue.put(*key, waiting(cluster, *priority), Duration::ZERO);
    }
    queue
}

#[test]
fn the_higher_priority_goes_first_and_equals_in_order_of_arrival() {
    let mut queue = queue(&[("b", "m1", 0), ("a", "m1", 0), ("z", "m2", 7)]);
    assert_eq!(drain(&mut queue, global(0.5), S(100)), [(0, "z"), (2, "b"), (4, "a")]);
    assert!(queue.is_empty());
}

#[test]
fn every_rate_is_kept_the_global_one_that_of_the_group_and_that_of_the_cluster() {
    let limit = |cluster: &str| Limit {
        global: Rate::per_second(1.0),
        group: (cluster == "slow").then(|| ("g".to_owned(), Rate::per_second(0.1))),
        cluster: (cluster == "own").then(|| Rate::per_second(0.2)),
    };
    let mut queue = queue(&[
        ("s1", "slow", 0),
        ("s2", "slow", 0),
        ("o1", "own", 0),
        ("o2", "own", 0),
        ("f", "free", 0),
    ]);
    assert_eq!(
        drain(&mut queue, limit, S(100)),
        [(0, "s1"), (1, "o1"), (2, "f"), (6, "o2"), (10, "s2")]
    );
}

#[test]
fn rate_zero_stops_and_the_next_rate_goes_on() {
    let mut queue = queue(&[("a", "m1", 0)]);
    assert_eq!(queue.next(S(1_000_000), global(0.0)), Next::Idle);
    assert_eq!(queue.next(S(1_000_000), global(0.5)), Next::Take("a"));
}

#[test]
fn one_stopped_cluster_does_not_hold_up_the_others() {
    let limit = |cluster: &str| Limit {
        global: Rate::per_second(1.0),
        group: None,
        cluster: Some(Rate::per_second(if cluster == "m1" { 0.0 } else { 1.0 })),
    };
    let mut queue = queue(&[("a", "m1", 9), ("b", "m2", 0)]);
    assert_eq!(drain(&mut queue, limit, S(100)), [(0, "b")]);
    assert_eq!(queue.len(), 1, "what is stopped is not lost");
}

#[test]
fn an_item_that_needs_no_eviction_costs_no_slot() {
    let mut queue = queue(&[("a", "m1", 1), ("b", "m1", 0)]);
    assert_eq!(queue.next(S(0), global(0.5)), Next::Take("a"));
    queue.finish(&"a", Finished::Done, S(0));
    assert_eq!(queue.next(S(0), global(0.5)), Next::Take("b"));
}

#[test]
fn a_slot_that_was_not_used_is_used_by_the_next_item() {
    let mut queue = queue(&[("a", "m1", 1), ("b", "m1", 0)]);
    assert_eq!(queue.next(S(0), global(0.5)), Next::Take("a"));
    let slot = queue.charge("m1", &global(0.5)("m1"), S(0));
    queue.release(&slot);
    queue.finish(&"a", Finished::Failed, S(0));
    assert_eq!(queue.next(S(0), global(0.5)), Next::Take("b"));
}

#[test]
fn a_settled_slot_counts_in_each_rate_by_that_rate() {
    // A late effect moves the next slot of the slow global rate, and not that of the fast group.
    let limit = |_: &str| Limit {
        global: Rate::per_second(1.0),
        group: Some(("g".to_owned(), Rate::per_second(10.0))),
        cluster: None,
    };
    let mut queue = queue(&[("a", "m1", 1), ("b", "m1", 0)]);
    assert_eq!(queue.next(S(0), limit), Next::Take("a"));
    let slot = queue.charge("m1", &limit("m1"), S(0));
    queue.settle(&slot, "m1", &limit("m1"), S(5));
    queue.finish(&"a", Finished::Done, S(5));
    assert_eq!(queue.next(S(5), limit), Next::WaitUntil(S(6)));
    assert_eq!(queue.next(S(6), limit), Next::Take("b"));
}

#[test]
fn one_in_four_slots_goes_to_the_oldest_item_that_is_over_age() {
    let mut queue = EvictionQueue::new(Some(S(10)));
    queue.put("old", waiting("m1", -5), S(0));
    for key in ["a", "b", "c", "d", "e"] {
        queue.put(key, waiting("m1", 100), S(20));
    }
    let mut order = Vec::new();
    for second in 20..26 {
        let Next::Take(key) = queue.next(S(second), global(1.0)) else {
            panic!("nothing is open at {second}")
        };
        let slot = queue.charge("m1", &global(1.0)("m1"), S(second));
        queue.settle(&slot, "m1", &global(1.0)("m1"), S(second));
        queue.finish(&key, Finished::Done, S(second));
        order.push(key);
    }
    assert_eq!(order, ["a", "b", "c", "old", "d", "e"]);
}

#[test]
fn what_waits_is_dropped_when_its_cluster_recovers() {
    let mut queue = queue(&[("a", "m1", 0), ("b", "m1", 0), ("c", "m2", 0)]);
    queue.put(
        "d",
        Waiting {
            not_before: S(60),
            ..waiting("m1", 0)
        },
        S(0),
    );
    assert_eq!(queue.next(S(0), global(1.0)), Next::Take("a"));
    assert_eq!(queue.drop_cluster("m1"), ["b", "d"]);
    queue.finish(&"a", Finished::Done, S(0));
    assert_eq!(queue.next(S(0), global(1.0)), Next::Take("c"));
}

#[test]
fn the_earlier_time_counts_and_a_failure_waits_longer_each_time() {
    let mut queue = EvictionQueue::new(None);
    queue.put(
        "a",
        Waiting {
            not_before: S(60),
            ..waiting("m1", 0)
        },
        S(0),
    );
    queue.put(
        "a",
        Waiting {
            not_before: S(30),
            ..waiting("m1", 0)
        },
        S(0),
    );
    queue.put(
        "a",
        Waiting {
            not_before: S(90),
            ..waiting("m1", 0)
        },
        S(0),
    );
    assert_eq!(queue.next(S(0), global(1.0)), Next::WaitUntil(S(30)));
    for expected_ms in [5, 10, 20, 40] {
        let now = S(30) + Duration::from_millis(expected_ms - 5);
        assert_eq!(queue.next(now, global(1.0)), Next::Take("a"));
        queue.finish(&"a", Finished::Failed, now);
        queue.put("a", waiting("m1", 0), now);
        let Next::WaitUntil(at) = queue.next(now, global(1.0)) else {
            panic!("a failed item is not ready")
        };
        assert_eq!(at.checked_sub(now).unwrap(), Duration::from_millis(expected_ms));
    }
}

#[test]
fn evictions_resume_within_thirty_seconds_of_the_end_of_a_fault() {
    let mut queue = EvictionQueue::new(None);
    queue.put("a", waiting("m1", 0), S(0));
    let (mut now, mut attempts) = (S(0), 0);
    while now < S(600) {
        now = match queue.next(now, global(1.0)) {
            Next::Take(key) => {
                attempts += 1;
                queue.finish(&key, Finished::Failed, now);
                now
            }
            Next::WaitUntil(at) => at,
            Next::Idle => panic!("the item is lost"),
        };
    }
    assert!(now <= S(630), "the next attempt after the fault is at {now:?}");
    assert!(attempts < 40, "{attempts} attempts in ten minutes");
}

#[test]
fn the_first_success_brings_failed_items_forward_but_not_at_every_success() {
    let mut queue = queue(&[("a", "m1", 2), ("b", "m1", 1), ("c", "m1", 0)]);
    let fail = |queue: &mut EvictionQueue<&'static str>, key, now: Duration| {
        for _ in 0..12 {
            assert_eq!(queue.next(now, global(1.0)), Next::Take(key));
            queue.finish(&key, Finished::Failed, now);
            queue.change(&key, |item| item.place = Place::Ready);
        }
        queue.change(&key, |item| item.place = Place::Delayed(now + S(30)));
    };
    fail(&mut queue, "a", S(0));
    fail(&mut queue, "b", S(0));
    assert_eq!(queue.next(S(1), global(1.0)), Next::Take("c"));
    queue.finish(&"c", Finished::Done, S(1));
    queue.resume(S(1));
    fail(&mut queue, "a", S(1));
    assert_eq!(queue.next(S(1), global(1.0)), Next::Take("b"));
    queue.finish(&"b", Finished::Done, S(1));
    queue.resume(S(1));
    assert_eq!(queue.next(S(2), global(1.0)), Next::WaitUntil(S(31)));
}

#[test]
fn a_wake_up_looks_at_what_sleeps() {
    let mut queue = EvictionQueue::new(None);
    queue.put(
        "a",
        Waiting {
            not_before: S(600),
            ..waiting("m1", 0)
        },
        S(0),
    );
    queue.wake(S(5));
    assert_eq!(queue.next(S(5), global(1.0)), Next::Take("a"));
}

#[test]
fn an_eviction_that_cannot_be_ruled_out_takes_a_slot_and_none_in_flight() {
    let limit = |_: &str| Limit {
        global: Rate::per_second(1.0),
        group: None,
        cluster: Some(Rate::per_second(0.1)),
    };
    let mut queue = queue(&[("a", "m1", 0), ("b", "m2", 0)]);
    queue.charge_conservatively("m1", &limit("m1"), S(0));
    assert_eq!(
        queue.next(S(0), limit),
        Next::WaitUntil(S(1)),
        "the rate of all evictions"
    );
    assert_eq!(queue.next(S(1), limit), Next::Take("b"));
    assert_eq!(
        queue.next(S(1), limit),
        Next::WaitUntil(S(10)),
        "the rate of the cluster"
    );
    assert_eq!(queue.next(S(10), limit), Next::Take("a"));
}

#[test]
fn failed_items_are_brought_forward_again_after_thirty_seconds_and_others_are_not() {
    let mut queue = queue(&[("a", "m1", 0)]);
    let sleeps = Waiting {
        not_before: S(600),
        ..waiting("m1", 0)
    };
    queue.put("sleeps", sleeps, S(0));
    let fail = |queue: &mut EvictionQueue<&'static str>, now: Duration| {
        assert_eq!(queue.next(now, global(1.0)), Next::Take("a"));
        queue.finish(&"a", Finished::Failed, now);
        queue.change(&"a", |item| item.place = Place::Delayed(now + S(100)));
    };
    fail(&mut queue, S(0));
    queue.resume(S(1));
    fail(&mut queue, S(1));
    queue.resume(S(30));
    assert_eq!(queue.next(S(30), global(1.0)), Next::WaitUntil(S(101)));
    queue.resume(S(31));
    assert_eq!(queue.next(S(31), global(1.0)), Next::Take("a"));
    queue.finish(&"a", Finished::Done, S(31));
    assert_eq!(queue.next(S(31), global(1.0)), Next::WaitUntil(S(600)));
}

/// Operation on a queue in the property test.
#[derive(Clone, Debug)]
enum Step {
    Put {
        key: u8,
        cluster: u8,
        priority: i32,
        delay_s: u64,
    },
    Recover(u8),
    Wake,
    Take(Then),
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Evict,
    Unneeded,
    Later,
    Fail,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u8..20, 0_u8..4, -3..3, prop_oneof![Just(0_u64), 1_u64..20])
            .prop_map(|(key, cluster, priority, delay_s)| Step::Put { key, cluster, priority, delay_s }),
        1 => (0_u8..4).prop_map(Step::Recover),
        1 => Just(Step::Wake),
        6 => prop_oneof![Just(Then::Evict), Just(Then::Unneeded), Just(Then::Later), Just(Then::Fail)].prop_map(Step::Take),
        3 => (0_u64..5_000).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    /// No item is lost or duplicated, and both rates hold, for any sequence of operations.
    #[test]
    fn items_are_conserved_and_rates_hold(steps in steps()) {
        let limit = |_: &str| Limit {
            global: Rate::per_second(2.0), group: None, cluster: Some(Rate::per_second(1.0)),
        };
        let mut queue = EvictionQueue::new(Some(S(10)));
        let mut model = BTreeSet::<(u8, u8)>::new();
        let (mut now, mut evicted) = (Duration::ZERO, Vec::<(Duration, u8)>::new());
        for step in steps {
            match step {
                Step::Put { key, cluster, priority, delay_s } => {
                    let item = Waiting { not_before: now + S(delay_s), ..waiting(&cluster.to_string(), priority) };
                    queue.put((cluster, key), item, now);
                    model.insert((cluster, key));
                }
                Step::Recover(cluster) => {
                    let dropped = queue.drop_cluster(&cluster.to_string());
                    let expected: Vec<_> = model.iter().filter(|(existing, _)| *existing == cluster).copied().collect();
                    prop_assert_eq!(&dropped, &expected);
                    model.retain(|(existing, _)| *existing != cluster);
                }
                Step::Wake => queue.wake(now),
                Step::Pass(ms) => now += Duration::from_millis(ms),
                Step::Take(then) => {
                    let Next::Take(key) = queue.next(now, limit) else { continue };
                    prop_assert!(model.contains(&key), "taken but never put: {key:?}");
                    match then {
                        Then::Evict => {
                            let slot = queue.charge(&key.0.to_string(), &limit(""), now);
                            queue.settle(&slot, &key.0.to_string(), &limit(""), now);
                            evicted.push((now, key.0));
                            queue.finish(&key, Finished::Done, now);
                            model.remove(&key);
                        }
                        Then::Unneeded => {
                            queue.finish(&key, Finished::Done, now);
                            model.remove(&key);
                        }
                        Then::Later => queue.finish(&key, Finished::Later(S(3)), now),
                        Then::Fail => {
                            let slot = queue.charge(&key.0.to_string(), &limit(""), now);
                            queue.release(&slot);
                            queue.finish(&key, Finished::Failed, now);
                        }
                    }
                }
            }
            let existing: Vec<_> = queue.items().map(|(key, _)| *key).collect();
            prop_assert_eq!(existing, model.iter().copied().collect::<Vec<_>>());
        }
        for pair in evicted.windows(2) {
            prop_assert!(pair[1].0.checked_sub(pair[0].0).unwrap() >= Duration::from_millis(500));
        }
        for cluster in 0..4 {
            let times: Vec<_> = evicted.iter().filter(|(_, from)| *from == cluster).map(|(at, _)| *at).collect();
            for pair in times.windows(2) {
                prop_assert!(pair[1].checked_sub(pair[0]).unwrap() >= S(1));
            }
        }
        // All remaining items can be evicted eventually.
        for _ in 0..10_000 {
            match queue.next(now, limit) {
                Next::Take(key) => queue.finish(&key, Finished::Done, now),
                Next::WaitUntil(at) => now = at,
                Next::Idle => break,
            }
        }
        prop_assert!(queue.is_empty());
    }
}
