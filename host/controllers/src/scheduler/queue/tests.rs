use super::*;

/// Queue with a clock that starts with it, in milliseconds.
struct Test {
    queues: Queues<&'static str>,
    start: Instant,
}

impl Test {
    fn new() -> Self {
        let start = Instant::now();
        Self {
            queues: Queues::new(start),
            start,
        }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn push(&mut self, key: &'static str, priority: i32, ms: u64) {
        let now = self.at(ms);
        self.queues.push(key, priority, now);
    }

    fn pop(&mut self, ms: u64) -> Option<Item<&'static str>> {
        let now = self.at(ms);
        self.queues.pop(now)
    }

    fn done(&mut self, item: Item<&'static str>, ms: u64) {
        let now = self.at(ms);
        self.queues.done(item, now);
    }

    /// Takes all active bindings.
    fn drain(&mut self, ms: u64) -> Vec<&'static str> {
        let mut keys = Vec::new();
        while let Some(item) = self.pop(ms) {
            keys.push(item.key);
            self.done(item, ms);
        }
        keys
    }

    fn fail(&mut self, ms: u64) {
        let item = self.pop(ms).unwrap();
        self.queues.add_backoff(item.clone());
        self.done(item, ms);
    }
}

#[test]
fn higher_priorities_go_first_and_equal_ones_by_age() {
    let mut test = Test::new();
    for (key, priority, ms) in [("a", 0, 0), ("b", 5, 1), ("c", -3, 2), ("d", 5, 3), ("e", 0, 0)] {
        test.push(key, priority, ms);
    }
    assert_eq!(test.drain(10), ["b", "d", "a", "e", "c"]);
}

#[test]
fn a_binding_that_is_ready_keeps_the_priority_it_came_in_with() {
    let mut test = Test::new();
    test.push("a", 0, 0);
    test.push("b", 1, 1);
    test.push("a", 9, 2);
    assert_eq!(test.drain(10), ["b", "a"]);
}

#[test]
fn a_binding_that_changes_while_it_is_worked_on_comes_back_afterwards_with_its_old_priority() {
    let mut test = Test::new();
    test.push("a", 0, 0);
    let item = test.pop(0).unwrap();
    test.push("a", 9, 1);
    assert_eq!(test.pop(1), None, "it is not handed out twice");
    test.push("b", 1, 2);
    test.queues.add_backoff(item.clone());
    test.done(item, 3);
    assert_eq!(
        test.queues.pending(),
        PendingBindings {
            active: 2,
            backoff: 0,
            unschedulable: 0
        }
    );
    assert_eq!(test.drain(4), ["b", "a"]);
}

#[test]
fn failures_back_off_from_when_they_became_ready_at_whole_seconds() {
    let mut test = Test::new();
    test.push("a", 0, 300);
    test.fail(900);
    // One second after 0.3 s is 1.3 s; the flush at 2 s finds it.
    assert_eq!(test.queues.next_flush(), Some(test.at(2_000)));
    assert_eq!(test.pop(1_999), None);
    // It is active again from 2.0 s on; back-offs of two, four, eight and ten seconds follow.
    for (ready, next) in [
        (2_000, 4_000),
        (4_000, 8_000),
        (8_000, 16_000),
        (16_000, 26_000),
        (26_000, 36_000),
    ] {
        test.fail(ready);
        assert_eq!(test.queues.next_flush(), Some(test.at(next)), "after {ready}");
        assert_eq!(test.pop(next - 1), None);
    }
    // A change resets the back-off.
    test.push("a", 0, 30_000);
    test.fail(30_000);
    assert_eq!(test.queues.next_flush(), Some(test.at(31_000)));
}

#[test]
fn a_failure_that_comes_when_its_back_off_is_over_waits_for_the_next_tick() {
    let mut test = Test::new();
    test.push("a", 0, 0);
    let item = test.pop(0).unwrap();
    assert_eq!(
        test.drain(1_000),
        [""; 0],
        "the tick passes while the binding is worked on"
    );
    test.queues.add_backoff(item.clone());
    test.done(item, 1_200);
    assert_eq!(
        test.queues.next_flush(),
        Some(test.at(2_000)),
        "not a time that has passed"
    );
    assert_eq!(test.drain(1_999), [""; 0]);
    assert_eq!(test.drain(2_000), ["a"]);
}

#[test]
fn what_finds_no_room_waits_for_a_change_or_for_more_than_five_minutes() {
    let mut test = Test::new();
    for (key, priority) in [("a", 0), ("b", 1)] {
        test.push(key, priority, 0);
    }
    for _ in 0..2 {
        let item = test.pop(0).unwrap();
        test.queues.add_unschedulable(item.clone());
        test.done(item, 0);
    }
    assert_eq!(
        test.queues.pending(),
        PendingBindings {
            active: 0,
            backoff: 0,
            unschedulable: 2
        }
    );
    // At five minutes it is not more than five minutes yet.
    assert_eq!(test.drain(300_000), [""; 0]);
    assert_eq!(test.queues.next_flush(), Some(test.at(330_000)));
    assert_eq!(test.drain(330_000), ["b", "a"]);
    test.push("a", 0, 331_000);
    let item = test.pop(331_000).unwrap();
    test.queues.add_unschedulable(item.clone());
    test.done(item, 331_000);
    test.push("a", 0, 332_000);
    assert_eq!(test.drain(332_000), ["a"]);
    assert_eq!(test.queues.next_flush(), None);
}

#[tokio::test(start_paused = true)]
async fn workers_wake_when_a_back_off_is_over() {
    let (queue, start) = (SchedulingQueue::new(), Instant::now());
    queue.push("a", 0);
    let item = queue.next().await;
    queue.done(item, Requeue::Backoff);
    let item = queue.next().await;
    assert_eq!((item.key, start.elapsed()), ("a", Duration::from_secs(1)));
    queue.done(item, Requeue::Unschedulable);
    let item = queue.next().await;
    assert_eq!((item.key, start.elapsed()), ("a", Duration::from_secs(330)));
    queue.done(item, Requeue::After(Duration::from_millis(1_500)));
    let item = queue.next().await;
    assert_eq!((item.key, start.elapsed()), ("a", Duration::from_millis(331_500)));
    queue.done(item, Requeue::After(Duration::from_mins(1)));
    queue.push("a", 0);
    assert_eq!(
        (queue.next().await.key, start.elapsed()),
        ("a", Duration::from_millis(331_500))
    );
}
