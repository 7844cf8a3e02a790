//! Work queue: each key once, never processed twice at the same time, with delays and back-off.
//!
//! The controller of kube-runtime polls its objects in the order of a randomly seeded hash map. Here the order is
//! first in, first out, because the same inputs and seed must give the same decisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Delay of the first retry of a failing key; doubles with each failure (Karmada: `--rate-limiter-base-delay`).
const BACKOFF_BASE: Duration = Duration::from_millis(5);
/// Longest pause between retries. Karmada has 1000 s (`--rate-limiter-max-delay`), by which work resumes up to 17 minutes
/// after an outage of the control plane is over.
const BACKOFF_MAX: Duration = Duration::from_mins(1);

/// Queue of keys.
pub struct WorkQueue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: (Duration, Duration),
}

struct State<K> {
    ready: VecDeque<K>,
    /// Keys that wait in `ready`, or will when their processing ends.
    dirty: BTreeSet<K>,
    processing: BTreeSet<K>,
    /// Since when each key of `dirty`, or one that was taken and has not begun, waits.
    since: BTreeMap<K, Instant>,
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    /// Number of conflicts in a row.
    conflicts: BTreeMap<K, u32>,
    sequence: u64,
}

impl<K: Ord + Clone> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::with_backoff(BACKOFF_BASE, BACKOFF_MAX)
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// Creates an empty queue. A failing key is first retried after `base`, then after twice that, up to `max`.
    pub fn with_backoff(base: Duration, max: Duration) -> Self {
        let state = State {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            processing: BTreeSet::new(),
            since: BTreeMap::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            conflicts: BTreeMap::new(),
            sequence: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            backoff: (base, max),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key. A key that waits for a delay or a retry becomes ready at once.
    pub fn add(&self, key: K) {
        let mut state = self.state();
        if let Some(due) = state.due.remove(&key) {
            state.delayed.remove(&due);
        }
        state.push(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after a delay. Of several delays for one key the one that ends first counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.state();
        let at = Instant::now() + delay;
        match state.due.get(&key) {
            Some((earlier, _)) if *earlier <= at => return,
            Some(later) => {
                let later = *later;
                state.delayed.remove(&later);
            }
            None => {}
        }
        state.sequence += 1;
        let due = (at, state.sequence);
        state.delayed.insert(due, key.clone());
        state.due.insert(key, due);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next key. The caller must return it with [`WorkQueue::done`].
    pub async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let wake_at = {
                let mut state = self.state();
                let now = Instant::now();
                while let Some(entry) = state.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
                    let key = entry.remove();
                    state.due.remove(&key);
                    state.push(key);
                }
                if let Some(key) = state.ready.pop_front() {
                    state.dirty.remove(&key);
                    state.processing.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.first_key_value().map(|((at, _), _)| *at)
            };
            match wake_at {
                None => changed.await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
            }
        }
    }

    /// Starts the processing of a key that was taken before. Additions until now need no processing of their own.
    pub fn begin(&self, key: &K) {
        let mut state = self.state();
        state.dirty.remove(key);
        state.since.remove(key);
    }

    /// Returns a key to the queue. A failed key is retried after its back-off; success resets its failures.
    pub fn done(&self, key: &K, failed: bool) {
        let mut state = self.state();
        state.processing.remove(key);
        let retry = if failed {
            let failures = state.failures.entry(key.clone()).or_default();
            let (base, max) = self.backoff;
            let delay = base
                .saturating_mul(1_u32.checked_shl(*failures).unwrap_or(u32::MAX))
                .min(max);
            *failures = failures.saturating_add(1);
            Some(delay)
        } else {
            state.failures.remove(key);
            state.conflicts.remove(key);
            None
        };
        let again = state.give_back(key);
        drop(state);
        if again {
            self.changed.notify_one();
        } else if let Some(delay) = retry {
            self.add_after(key.clone(), delay);
        }
    }

    /// Returns a key to the queue after its write had a conflict. Unless it changed meanwhile, it is retried after
    /// `delay`, which gets the number of conflicts since the last success of the key.
    pub fn lost_race(&self, key: &K, delay: impl Fn(u32) -> Duration) {
        let mut state = self.state();
        state.processing.remove(key);
        let lost = state.conflicts.entry(key.clone()).or_default();
        *lost = lost.saturating_add(1);
        let delay = delay(*lost);
        let again = state.give_back(key);
        drop(state);
        if again {
            self.changed.notify_one();
        } else {
            self.add_after(key.clone(), delay);
        }
    }

    /// Returns the number of keys that are ready.
    pub fn depth(&self) -> usize {
        self.state().ready.len()
    }
}

/// Keys of a queue that wait for a worker. Delayed keys do not count, and neither do changes of a key in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of keys.
    pub depth: usize,
    /// Time for which the oldest of them has been waiting; zero if there is none.
    pub oldest: Duration,
}

impl Backlog {
    /// Returns the backlog of this queue and another one together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            depth: self.depth + other.depth,
            oldest: self.oldest.max(other.oldest),
        }
    }
}

/// Queue whose backlog can be observed without its type of keys.
pub trait Observable: Send + Sync {
    /// Returns the keys that wait for a worker.
    fn backlog(&self) -> Backlog;
}

impl<K: Ord + Clone + Send + Sync> Observable for WorkQueue<K> {
    fn backlog(&self) -> Backlog {
        let state = self.state();
        let is_waiting = |key: &K| !state.processing.contains(key) || !state.dirty.contains(key);
        let waiting = state.since.iter().filter(|(key, _)| is_waiting(key));
        let now = Instant::now();
        waiting.fold(Backlog::default(), |backlog, (_, since)| {
            backlog.with(Backlog {
                depth: 1,
                oldest: now.saturating_duration_since(*since),
            })
        })
    }
}

impl<K: Ord + Clone> State<K> {
    /// Makes a key ready that changed while it was processed. Returns true if it did.
    fn give_back(&mut self, key: &K) -> bool {
        let again = self.dirty.contains(key);
        if again {
            self.ready.push_back(key.clone());
        } else {
            self.since.remove(key);
        }
        again
    }

    fn push(&mut self, key: K) {
        if self.dirty.insert(key.clone()) {
            self.since.entry(key.clone()).or_insert_with(Instant::now);
            if !self.processing.contains(&key) {
                self.ready.push_back(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_is_never_processed_twice_at_a_time() {
        let queue = WorkQueue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert_eq!(queue.next().await, "b");
        assert_eq!(queue.depth(), 0);
        queue.done(&"a", false);
        assert_eq!(queue.next().await, "a");
        // An addition before the work begins is part of it.
        queue.add("a");
        queue.begin(&"a");
        queue.done(&"a", false);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_backlog_has_the_keys_that_wait_for_a_worker_and_the_age_of_the_oldest() {
        let queue = WorkQueue::default();
        let check = |depth: usize, oldest_s: u64| {
            let oldest = Duration::from_secs(oldest_s);
            assert_eq!(queue.backlog(), Backlog { depth, oldest });
        };
        check(0, 0);
        queue.add("a");
        tokio::time::advance(Duration::from_secs(5)).await;
        queue.add("a");
        queue.add("b");
        queue.add_after("c", Duration::from_mins(1));
        check(2, 5);
        // A key that was taken waits until its group has a free worker.
        assert_eq!(queue.next().await, "a");
        check(2, 5);
        queue.begin(&"a");
        check(1, 0);
        // A change of a key in progress waits from the end of its processing on, and is as old as the change.
        queue.add("a");
        tokio::time::advance(Duration::from_secs(7)).await;
        check(1, 7);
        assert_eq!(queue.next().await, "b");
        queue.begin(&"b");
        queue.done(&"b", false);
        check(0, 0);
        queue.done(&"a", false);
        check(1, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_delay_counts_and_an_add_comes_forward() {
        let (queue, start) = (WorkQueue::default(), Instant::now());
        queue.add_after("a", Duration::from_secs(20));
        queue.add_after("a", Duration::from_secs(10));
        queue.add_after("a", Duration::from_secs(30));
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        queue.done(&"a", false);
        queue.add_after("a", Duration::from_secs(10));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    /// Work resumes within a minute of the end of an outage, however long it was.
    #[tokio::test(start_paused = true)]
    async fn a_key_that_keeps_failing_is_retried_once_a_minute() {
        let queue = WorkQueue::default();
        queue.add("a");
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let before = Instant::now();
            let key = queue.next().await;
            pauses.push(before.elapsed());
            queue.done(&key, true);
        }
        // 5 ms, doubled fourteen times, is more than a minute.
        let (growing, longest) = pauses.split_at(15);
        assert!(
            growing.iter().all(|pause| *pause < Duration::from_mins(1)),
            "{growing:?}"
        );
        assert!(
            longest.iter().all(|pause| *pause == Duration::from_mins(1)),
            "{longest:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_and_success_forgets_them() {
        let (queue, start) = (WorkQueue::default(), Instant::now());
        queue.add("a");
        for _ in 0..4 {
            let key = queue.next().await;
            queue.done(&key, true);
        }
        queue.next().await;
        assert_eq!(start.elapsed(), Duration::from_millis(5 + 10 + 20 + 40));
        queue.done(&"a", false);
        queue.add("a");
        let key = queue.next().await;
        queue.done(&key, true);
        queue.next().await;
        assert_eq!(start.elapsed(), Duration::from_millis(75 + 5));
    }
}
