//! Order in which bindings are scheduled (Karmada: `pkg/scheduler/internal/queue`).
//!
//! [`Queues`] holds the active, backoff and unschedulable queues and does not read a clock. Active bindings are
//! ordered by priority and then by age. Failed bindings back off. Bindings that found no room are unschedulable until
//! something changes or five minutes have passed. [`SchedulingQueue`] lets workers wait for bindings. A binding in
//! progress is never handed out a second time, so decisions about one binding are sequential, however many writes are
//! in flight.
//!
//! Three rules may surprise; they are Karmada's. An active binding keeps the priority that it arrived with. A
//! back-off counts from when the binding became active, not from its failure. The backoff queue is flushed once a
//! second, the unschedulable queue every thirty seconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::decide::schedule::backoff;
use bulkhead_runtime::queue::{Backlog, Observable};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::PendingBindings;

/// Interval between flushes of the backoff queue.
const BACKOFF_TICK: Duration = Duration::from_secs(1);
/// Interval between flushes of the unschedulable queue.
const UNSCHEDULABLE_TICK: Duration = Duration::from_secs(30);
/// Time that a binding stays unschedulable when nothing changes.
const UNSCHEDULABLE_MAX: Duration = Duration::from_mins(5);

/// A binding in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item<K> {
    /// Key of the binding.
    pub(super) key: K,
    priority: i32,
    /// Number of times that it was taken since it arrived.
    attempts: u32,
    /// Time when it last became active.
    active_since: Instant,
}

impl<K> Item<K> {
    /// Returns the number of times that it was taken since it arrived.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    fn retried_from(&self) -> Instant {
        self.active_since + backoff(self.attempts)
    }
}

/// Order of active bindings: higher priority, earlier, first come.
type Rank = (Reverse<i32>, Instant, u64);

/// Active, backoff and unschedulable queues. The caller passes the time.
#[derive(Debug)]
pub(super) struct Queues<K> {
    start: Instant,
    active: BTreeMap<Rank, Item<K>>,
    /// Keys in `active`, or to be put there when they are no longer in progress.
    dirty: BTreeSet<K>,
    processing: BTreeSet<K>,
    backoff: BTreeMap<K, Item<K>>,
    unschedulable: BTreeMap<K, Item<K>>,
    /// Bindings to be retried at a certain time.
    delayed: BTreeMap<K, (Instant, Item<K>)>,
    flushed_until: Instant,
    arrivals: u64,
}

impl<K: Ord + Clone> Queues<K> {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            active: BTreeMap::new(),
            dirty: BTreeSet::new(),
            processing: BTreeSet::new(),
            backoff: BTreeMap::new(),
            unschedulable: BTreeMap::new(),
            delayed: BTreeMap::new(),
            flushed_until: start,
            arrivals: 0,
        }
    }

    /// Adds a changed binding. An active one keeps its place and its priority.
    pub(super) fn push(&mut self, key: K, priority: i32, now: Instant) {
        self.activate(
            Item {
                key,
                priority,
                attempts: 0,
                active_since: now,
            },
            now,
        );
    }

    fn activate(&mut self, mut item: Item<K>, now: Instant) {
        item.active_since = now;
        self.backoff.remove(&item.key);
        self.unschedulable.remove(&item.key);
        self.delayed.remove(&item.key);
        if self.dirty.insert(item.key.clone()) && !self.processing.contains(&item.key) {
            self.insert_active(item);
        }
    }

    fn insert_active(&mut self, item: Item<K>) {
        self.arrivals += 1;
        self.active
            .insert((Reverse(item.priority), item.active_since, self.arrivals), item);
    }

    /// Takes the next binding. It must be returned with [`Queues::done`].
    pub(super) fn pop(&mut self, now: Instant) -> Option<Item<K>> {
        self.flush(now);
        let (_, mut item) = self.active.pop_first()?;
        item.attempts = item.attempts.saturating_add(1);
        self.dirty.remove(&item.key);
        self.processing.insert(item.key.clone());
        Some(item)
    }

    /// Retries a binding after its back-off, unless it changed meanwhile. Called before [`Queues::done`].
    pub(super) fn add_backoff(&mut self, item: Item<K>) {
        if !self.unschedulable.contains_key(&item.key) && !self.dirty.contains(&item.key) {
            self.backoff.insert(item.key.clone(), item);
        }
    }

    /// Retries a binding when it changes, or after five minutes. Called before [`Queues::done`].
    pub(super) fn add_unschedulable(&mut self, item: Item<K>) {
        if !self.backoff.contains_key(&item.key) && !self.dirty.contains(&item.key) {
            self.unschedulable.insert(item.key.clone(), item);
        }
    }

    /// Retries a binding at a certain time, or when it changes. Called before [`Queues::done`].
    pub(super) fn delay(&mut self, item: Item<K>, until: Instant) {
        if !self.dirty.contains(&item.key) {
            self.delayed.insert(item.key.clone(), (until, item));
        }
    }

    /// Returns a binding to the queue. If it changed meanwhile it is active again, with its old priority and
    /// attempts.
    pub(super) fn done(&mut self, mut item: Item<K>, now: Instant) {
        self.processing.remove(&item.key);
        if self.dirty.contains(&item.key) {
            item.active_since = now;
            self.insert_active(item);
        }
    }

    /// Activates the bindings that became due since the last flush.
    fn flush(&mut self, now: Instant) {
        let (before, since) = (self.flushed_until - self.start, now - self.start);
        self.flushed_until = now;
        let due: Vec<Item<K>> = self
            .delayed
            .values()
            .filter(|(until, _)| *until <= now)
            .map(|(_, item)| item.clone())
            .collect();
        self.activate_all(due, now);
        if let Some(tick) = last_tick(before, since, BACKOFF_TICK) {
            let (start, due) = (self.start, self.start + tick);
            let due_items = take_due(&mut self.backoff, |item| item.retried_from() <= due);
            self.activate_all(due_items, start + tick);
        }
        if let Some(tick) = last_tick(before, since, UNSCHEDULABLE_TICK) {
            let due = self.start + tick;
            let due_items = take_due(&mut self.unschedulable, |item| {
                due - item.active_since > UNSCHEDULABLE_MAX
            });
            self.activate_all(due_items, due);
        }
    }

    fn activate_all(&mut self, mut items: Vec<Item<K>>, now: Instant) {
        items.sort_by_key(|item| (Reverse(item.priority), item.active_since));
        for item in items {
            self.activate(item, now);
        }
    }

    /// Returns the time when the next waiting binding becomes active.
    pub(super) fn next_flush(&self) -> Option<Instant> {
        // A past tick activated the bindings that were due then; later ones wait for the next tick.
        let tick_from = |at: Instant, every: Duration| {
            let next = at.max(self.flushed_until + Duration::from_nanos(1));
            let ticks = (next - self.start).as_nanos().div_ceil(every.as_nanos());
            self.start + every * u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        let retries = self
            .backoff
            .values()
            .map(|item| tick_from(item.retried_from(), BACKOFF_TICK));
        let just_after = UNSCHEDULABLE_MAX + Duration::from_nanos(1);
        let unschedulable = self
            .unschedulable
            .values()
            .map(|item| tick_from(item.active_since + just_after, UNSCHEDULABLE_TICK));
        let delayed = self.delayed.values().map(|(until, _)| *until);
        retries.chain(unschedulable).chain(delayed).min()
    }

    pub(super) fn pending(&self) -> PendingBindings {
        let (active, backoff, unschedulable) = (self.active.len(), self.backoff.len(), self.unschedulable.len());
        PendingBindings {
            active,
            backoff,
            unschedulable,
        }
    }
}

/// Returns the last tick that is after `before` and not after `now`.
fn last_tick(before: Duration, now: Duration, every: Duration) -> Option<Duration> {
    let ticks = |at: Duration| u32::try_from(at.as_nanos() / every.as_nanos()).unwrap_or(u32::MAX);
    (ticks(now) > ticks(before)).then(|| every * ticks(now))
}

fn take_due<K: Ord + Clone>(items: &mut BTreeMap<K, Item<K>>, is_due: impl Fn(&Item<K>) -> bool) -> Vec<Item<K>> {
    let keys: Vec<K> = items
        .iter()
        .filter(|(_, item)| is_due(item))
        .map(|(key, _)| key.clone())
        .collect();
    keys.iter().filter_map(|key| items.remove(key)).collect()
}

/// Queue that workers wait for.
pub(super) struct SchedulingQueue<K> {
    queues: Mutex<Queues<K>>,
    changed: Notify,
}

/// Next state of a processed binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requeue {
    /// It waits for a change.
    Forget,
    /// It failed and backs off.
    Backoff,
    /// It is unschedulable: there is no room for it.
    Unschedulable,
    /// It is retried after this time, because the change to come sends no event.
    After(Duration),
}

impl<K: Ord + Clone + Send> Observable for SchedulingQueue<K> {
    /// Returns the active bindings. The others wait for a time or a change.
    fn backlog(&self) -> Backlog {
        let (queues, now) = (self.queues(), Instant::now());
        let ages = queues
            .active
            .values()
            .map(|item| now.saturating_duration_since(item.active_since));
        Backlog {
            depth: queues.active.len(),
            oldest: ages.max().unwrap_or_default(),
        }
    }
}

impl<K: Ord + Clone> SchedulingQueue<K> {
    pub(super) fn new() -> Self {
        Self {
            queues: Mutex::new(Queues::new(Instant::now())),
            changed: Notify::new(),
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues<K>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a changed binding.
    pub(super) fn push(&self, key: K, priority: i32) {
        self.queues().push(key, priority, Instant::now());
        self.changed.notify_one();
    }

    /// Returns the numbers of waiting bindings.
    pub(super) fn pending(&self) -> PendingBindings {
        self.queues().pending()
    }

    /// Waits for the next binding. It must be returned with [`SchedulingQueue::done`].
    pub(super) async fn next(&self) -> Item<K> {
        loop {
            let changed = self.changed.notified();
            let wake_at = {
                let mut queues = self.queues();
                if let Some(item) = queues.pop(Instant::now()) {
                    if queues.pending().active > 0 {
                        self.changed.notify_one();
                    }
                    return item;
                }
                queues.next_flush()
            };
            match wake_at {
                None => changed.await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
            }
        }
    }

    /// Returns a binding to the queue with its next state.
    pub(super) fn done(&self, item: Item<K>, requeue: Requeue) {
        let mut queues = self.queues();
        match requeue {
            Requeue::Forget => {}
            Requeue::Backoff => queues.add_backoff(item.clone()),
            Requeue::Unschedulable => queues.add_unschedulable(item.clone()),
            Requeue::After(delay) => queues.delay(item.clone(), Instant::now() + delay),
        }
        queues.done(item, Instant::now());
        drop(queues);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
