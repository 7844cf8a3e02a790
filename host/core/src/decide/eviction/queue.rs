//! Queue of pending evictions and selection of the next one.
//!
//! Two of Karmada's queues sleep between items in each worker, even if no eviction follows. This queue evaluates an
//! item when its slot opens, and only actual evictions consume slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, Rate};

mod view;

pub use view::{QueuedItem, QueuedState};

/// One of this many slots goes to the item that has waited longest, if it exceeds the aging limit. The others follow
/// the priority. Neither a stream of high-priority items nor a long queue of old ones can starve the other.
const AGED_SHARE: u64 = 4;
/// Delay before the first retry of a failed item; doubles with every retry (Karmada: `--rate-limiter-base-delay`).
const RETRY_BASE: Duration = Duration::from_millis(5);
/// Maximum delay between retries, which is also the maximum delay after the end of a control plane fault. Karmada
/// waits up to 1,000 s (`--rate-limiter-max-delay`).
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Rate limits of an eviction from a cluster; all of them apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Rate of all evictions.
    pub global: Rate,
    /// Name and rate of the cluster group, if the brake slows it down.
    pub group: Option<(String, Rate)>,
    /// Rate of evictions from the cluster.
    pub cluster: Option<Rate>,
}

/// Item to add to the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Cluster that the item leaves.
    pub cluster: String,
    /// Priority; a higher one is evicted first.
    pub priority: Priority,
    /// Earliest time of evaluation.
    pub not_before: Duration,
}

/// Eviction priority: ordered by the score of plugins, then by the number from a label or a priority class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Priority {
    /// Weighted sum of the plugin scores that order evictions; 0 without such plugins.
    pub score: i64,
    /// Number from the label or the priority class.
    pub class: i32,
}

impl From<i32> for Priority {
    fn from(class: i32) -> Self {
        Self { score: 0, class }
    }
}

/// Next action of the queue's consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Process this item now. It must be finished with [`EvictionQueue::finish`].
    Take(K),
    /// Wait until this time, unless the queue or the limits change.
    WaitUntil(Duration),
    /// Wait for a change of the queue or the limits.
    Idle,
}

/// Consumed slot. It is in flight until it is settled, or released if no eviction followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    at: Duration,
    scopes: Vec<Scope>,
}

/// Result of processing an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The item was evicted or needs no eviction; it is removed from the queue.
    Done,
    /// The item must be evaluated again after this delay; not a failure.
    Later(Duration),
    /// The item must be retried with exponential backoff.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Global,
    Group(String),
    Cluster(String),
}

#[derive(Clone, Debug)]
struct Item {
    cluster: String,
    priority: Priority,
    since: Duration,
    sequence: u64,
    failures: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Delayed(Duration),
    Ready,
    Taken,
}

/// Ready items of one cluster.
#[derive(Clone, Debug, Default)]
struct Lane {
    by_rank: BTreeSet<(Reverse<Priority>, u64)>,
    by_age: BTreeSet<u64>,
}

/// Eviction queue. An item stays in the queue until it is finished as done or its cluster is dropped.
#[derive(Clone, Debug)]
pub struct EvictionQueue<K> {
    items: BTreeMap<K, Item>,
    keys: BTreeMap<u64, K>,
    lanes: BTreeMap<String, Lane>,
    delayed: BTreeSet<(Duration, u64)>,
    buckets: BTreeMap<Scope, Bucket>,
    aging: Option<Duration>,
    charged: u64,
    sequence: u64,
    /// Time at which the backoff of failed items was last cut short.
    resumed: Option<Duration>,
}

impl<K: Ord + Clone> EvictionQueue<K> {
    /// Creates an empty queue. Items that have waited for `aging` are preferred in some slots; `None` disables aging.
    pub fn new(aging: Option<Duration>) -> Self {
        Self {
            items: BTreeMap::new(),
            keys: BTreeMap::new(),
            lanes: BTreeMap::new(),
            delayed: BTreeSet::new(),
            buckets: BTreeMap::new(),
            aging,
            charged: 0,
            sequence: 0,
            resumed: None,
        }
    }

    /// Adds an item. An existing item keeps its position and takes the new priority. It is evaluated at the earlier
    /// of both times, unless it is in backoff after a failure.
    pub fn put(&mut self, key: K, waiting: Waiting, now: Duration) {
        let Some(mut item) = self.items.remove(&key) else {
            self.sequence += 1;
            self.keys.insert(self.sequence, key.clone());
            let Waiting {
                cluster,
                priority,
                not_before,
            } = waiting;
            let place = if not_before <= now {
                Place::Ready
            } else {
                Place::Delayed(not_before)
            };
            let item = Item {
                cluster,
                priority,
                since: now,
                sequence: self.sequence,
                failures: 0,
                place,
            };
            self.enter(&item);
            self.items.insert(key, item);
            return;
        };
        self.leave(&item);
        item.priority = waiting.priority;
        if let Place::Delayed(until) = item.place
            && item.failures == 0
            && waiting.not_before < until
        {
            item.place = if waiting.not_before <= now {
                Place::Ready
            } else {
                Place::Delayed(waiting.not_before)
            };
        }
        self.enter(&item);
        self.items.insert(key, item);
    }

    fn enter(&mut self, item: &Item) {
        match item.place {
            Place::Taken => {}
            Place::Delayed(until) => {
                self.delayed.insert((until, item.sequence));
            }
            Place::Ready => {
                let lane = self.lanes.entry(item.cluster.clone()).or_default();
                lane.by_rank.insert((Reverse(item.priority), item.sequence));
                lane.by_age.insert(item.sequence);
            }
        }
    }

    fn leave(&mut self, item: &Item) {
        match item.place {
            Place::Taken => {}
            Place::Delayed(until) => {
                self.delayed.remove(&(until, item.sequence));
            }
            Place::Ready => {
                if let Some(lane) = self.lanes.get_mut(&item.cluster) {
                    lane.by_rank.remove(&(Reverse(item.priority), item.sequence));
                    lane.by_age.remove(&item.sequence);
                    if lane.by_age.is_empty() {
                        self.lanes.remove(&item.cluster);
                    }
                }
            }
        }
    }

    /// Removes and returns the items that wait to leave a cluster, because the cluster recovered or was removed. An
    /// item that is being processed is not removed; its consumer finishes it.
    pub fn drop_cluster(&mut self, cluster: &str) -> Vec<K> {
        let waits = |item: &Item| item.cluster == cluster && item.place != Place::Taken;
        let dropped: Vec<_> = self
            .items
            .iter()
            .filter(|(_, item)| waits(item))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &dropped {
            self.remove(key);
        }
        dropped
    }

    fn remove(&mut self, key: &K) {
        if let Some(item) = self.items.remove(key) {
            self.leave(&item);
            self.keys.remove(&item.sequence);
        }
    }

    /// Makes all delayed items ready now, for example because a pause ended. Items in backoff after a failure stay
    /// delayed.
    pub fn wake(&mut self, now: Duration) {
        let sleeping: Vec<_> = self
            .delayed
            .iter()
            .filter_map(|(_, sequence)| self.keys.get(sequence))
            .cloned()
            .collect();
        for key in sleeping {
            if self.items.get(&key).is_some_and(|item| item.failures == 0) {
                self.change(&key, |item| item.place = Place::Delayed(now));
            }
        }
    }

    /// Retries failed items now, because a write succeeded and their common fault may be over. Runs at most once per
    /// `RETRY_MAX`, so items that fail for other reasons are not retried much more often than their backoff allows.
    pub fn resume(&mut self, now: Duration) {
        let is_early = self
            .resumed
            .is_some_and(|resumed| now.saturating_sub(resumed) < RETRY_MAX);
        if is_early {
            return;
        }
        let waits = |item: &Item| item.failures > 0 && matches!(item.place, Place::Delayed(_));
        let failed: Vec<_> = self
            .items
            .iter()
            .filter(|(_, item)| waits(item))
            .map(|(key, _)| key.clone())
            .collect();
        if failed.is_empty() {
            return;
        }
        self.resumed = Some(now);
        for key in &failed {
            self.change(key, |item| item.place = Place::Delayed(now));
        }
    }

    fn change(&mut self, key: &K, change: impl FnOnce(&mut Item)) {
        if let Some(mut item) = self.items.remove(key) {
            self.leave(&item);
            change(&mut item);
            self.enter(&item);
            self.items.insert(key.clone(), item);
        }
    }

    /// Returns the next item whose rates all permit an eviction now. Consumes no slot yet.
    pub fn next(&mut self, now: Duration, limit: impl Fn(&str) -> Limit) -> Next<K> {
        while let Some((until, sequence)) = self.delayed.first().copied().filter(|(until, _)| *until <= now) {
            self.delayed.remove(&(until, sequence));
            if let Some(key) = self.keys.get(&sequence).cloned() {
                self.change(&key, |item| item.place = Place::Ready);
            }
        }
        let mut wake_at = self.delayed.first().map(|(until, _)| *until);
        let mut open = Vec::new();
        for (cluster, lane) in &self.lanes {
            match self.opens_at(cluster, &limit(cluster)) {
                Some(opens) if opens <= now => open.push(lane),
                Some(opens) => wake_at = Some(wake_at.map_or(opens, |earlier| earlier.min(opens))),
                None => {}
            }
        }
        let Some(sequence) = self.pick(&open, now) else {
            return wake_at.map_or(Next::Idle, Next::WaitUntil);
        };
        let Some(key) = self.keys.get(&sequence).cloned() else {
            return Next::Idle;
        };
        self.change(&key, |item| item.place = Place::Taken);
        Next::Take(key)
    }

    /// Returns the priority of an item, also while it is being processed. `None` if it is not in the queue.
    pub fn priority(&self, key: &K) -> Option<Priority> {
        self.items.get(key).map(|item| item.priority)
    }

    fn pick(&self, open: &[&Lane], now: Duration) -> Option<u64> {
        let oldest = open.iter().filter_map(|lane| lane.by_age.first()).min().copied()?;
        let since = self
            .keys
            .get(&oldest)
            .and_then(|key| self.items.get(key))
            .map(|item| item.since);
        let over_age = self
            .aging
            .zip(since)
            .is_some_and(|(aging, since)| now.saturating_sub(since) >= aging);
        if over_age && self.charged % AGED_SHARE == AGED_SHARE - 1 {
            return Some(oldest);
        }
        open.iter()
            .filter_map(|lane| lane.by_rank.first())
            .min()
            .map(|(_, sequence)| *sequence)
    }

    fn scopes(cluster: &str, limit: &Limit) -> Vec<(Scope, Rate)> {
        let mut scopes = vec![(Scope::Global, limit.global)];
        scopes.extend(
            limit
                .group
                .iter()
                .map(|(group, rate)| (Scope::Group(group.clone()), *rate)),
        );
        scopes.extend(limit.cluster.map(|rate| (Scope::Cluster(cluster.to_owned()), rate)));
        scopes
    }

    /// Returns the time at which all rates for a cluster permit an eviction; `None` while one of them is 0.
    fn opens_at(&self, cluster: &str, limit: &Limit) -> Option<Duration> {
        let opens = |(scope, rate): (Scope, Rate)| self.buckets.get(&scope).copied().unwrap_or_default().opens_at(rate);
        Self::scopes(cluster, limit)
            .into_iter()
            .map(opens)
            .try_fold(Duration::ZERO, |latest, opens| opens.map(|opens| latest.max(opens)))
    }

    /// Consumes a slot for one eviction from a cluster in all its rates. Must be called for an item that
    /// [`EvictionQueue::next`] returned at the same `now`.
    pub fn charge(&mut self, cluster: &str, limit: &Limit, now: Duration) -> Slot {
        self.charged += 1;
        // The bucket of the cluster is charged even without a rate of its own. A rate that applies later then
        // accounts for the last eviction.
        let mut scopes: Vec<_> = Self::scopes(cluster, limit)
            .into_iter()
            .map(|(scope, _)| scope)
            .collect();
        let own = Scope::Cluster(cluster.to_owned());
        if !scopes.contains(&own) {
            scopes.push(own);
        }
        for scope in &scopes {
            self.buckets.entry(scope.clone()).or_default().charge(now);
        }
        Slot { at: now, scopes }
    }

    /// Charges the rates of a cluster as if an eviction had just happened, because a past eviction cannot be ruled
    /// out.
    pub fn charge_conservatively(&mut self, cluster: &str, limit: &Limit, now: Duration) {
        for (scope, _) in Self::scopes(cluster, limit) {
            self.buckets.entry(scope).or_default().record(now);
        }
    }

    /// Ends the flight of a slot: its eviction from the cluster took effect at `now` at the latest.
    pub fn settle(&mut self, slot: &Slot, cluster: &str, limit: &Limit, now: Duration) {
        let rates = Self::scopes(cluster, limit);
        for scope in &slot.scopes {
            let rate = rates
                .iter()
                .find(|(of, _)| of == scope)
                .map_or(Rate::STOP, |(_, rate)| *rate);
            if let Some(bucket) = self.buckets.get_mut(scope) {
                bucket.settle(rate, now);
            }
        }
    }

    /// Releases an unused slot.
    pub fn release(&mut self, slot: &Slot) {
        for scope in &slot.scopes {
            if let Some(bucket) = self.buckets.get_mut(scope) {
                bucket.release(slot.at);
            }
        }
    }

    /// Finishes an item that is being processed.
    pub fn finish(&mut self, key: &K, finished: Finished, now: Duration) {
        match finished {
            Finished::Done => self.remove(key),
            Finished::Later(delay) => self.change(key, |item| {
                item.failures = 0;
                item.place = Place::Delayed(now.saturating_add(delay));
            }),
            Finished::Failed => self.change(key, |item| {
                let doubled = RETRY_BASE.saturating_mul(1_u32.checked_shl(item.failures).unwrap_or(u32::MAX));
                item.failures = item.failures.saturating_add(1);
                item.place = Place::Delayed(now.saturating_add(doubled.min(RETRY_MAX)));
            }),
        }
    }

    /// Returns the time that an item has spent in the queue.
    pub fn waited(&self, key: &K, now: Duration) -> Option<Duration> {
        self.items.get(key).map(|item| now.saturating_sub(item.since))
    }

    /// Returns the items that are ready, regardless of their rates.
    pub fn ready(&self) -> Vec<K> {
        let ready = self.items.iter().filter(|(_, item)| item.place == Place::Ready);
        ready.map(|(key, _)| key.clone()).collect()
    }

    /// Returns all items with the cluster that they leave, including items being processed.
    pub fn items(&self) -> impl Iterator<Item = (&K, &str)> {
        self.items.iter().map(|(key, item)| (key, item.cluster.as_str()))
    }

    /// Returns the number of items, including items being processed.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there are no waiting items and no items being processed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests;
