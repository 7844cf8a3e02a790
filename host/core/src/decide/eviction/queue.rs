//! Items that wait for eviction, and which of them is next.
//!
//! Two queues of Karmada sleep between items, needed or not, in each of their workers. Here an item is looked at
//! when its slot opens, and only what is really evicted is charged for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bucket::{Bucket, Rate};

/// Of so many slots, one goes to the item that has waited longest, if one is over age. The others go by priority,
/// so neither a stream of important items nor a long queue of old ones shuts the other out.
const AGED_SHARE: u64 = 4;
/// First retry of a failed item; doubles from there (Karmada: `--rate-limiter-base-delay`).
const RETRY_BASE: Duration = Duration::from_millis(5);
/// Longest wait between retries, and with it the longest wait after a fault of the control plane ends. Karmada waits
/// up to 1,000 s (`--rate-limiter-max-delay`).
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The rates that an eviction from a cluster has to keep, all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Of all evictions together.
    pub global: Rate,
    /// Of a group of clusters that is braked, with its name.
    pub group: Option<(String, Rate)>,
    /// Of the cluster that is left.
    pub cluster: Option<Rate>,
}

/// An item that is put into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The cluster that is to be left.
    pub cluster: String,
    /// The higher one goes first.
    pub priority: Priority,
    /// Not to be looked at before.
    pub not_before: Duration,
}

/// Who leaves first: what score plugins say, then the number that a label or a priority class gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    /// The weighted sum of the plugins that order evictions; 0 without any.
    pub score: i64,
    /// The number of the label or of the priority class.
    pub class: i32,
}

impl From<i32> for Priority {
    fn from(class: i32) -> Self {
        Self { score: 0, class }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Decide about this item now. It must be finished with [`EvictionQueue::finish`].
    Take(K),
    /// Nothing can happen before that time, unless the queue or the limits change.
    WaitUntil(Duration),
    /// Nothing will happen by itself.
    Idle,
}

/// A slot that was charged, to be given back if it was not used after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    at: Duration,
    scopes: Vec<Scope>,
}

/// What became of an item that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It is evicted, or need not be: it leaves the queue.
    Done,
    /// It is to be looked at again after that time; nothing went wrong.
    Later(Duration),
    /// It is to be tried again, later each time.
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

/// The ready items of one cluster.
#[derive(Clone, Debug, Default)]
struct Lane {
    by_rank: BTreeSet<(Reverse<Priority>, u64)>,
    by_age: BTreeSet<u64>,
}

/// The queue. An item that is put in leaves it only when it is finished as done, or dropped.
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
    /// When failed items were last brought forward.
    resumed: Option<Duration>,
}

impl<K: Ord + Clone> EvictionQueue<K> {
    /// An empty queue. Items that have waited for `aging` are over age; none if that never happens.
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

    /// Puts an item in. One that is there keeps its place in line, takes the new priority, and is looked at at the
    /// earlier of both times, unless it waits after a failure.
    pub fn put(&mut self, key: K, waiting: Waiting, now: Duration) {
        let Some(mut item) = self.items.remove(&key) else {
            self.sequence += 1;
            self.keys.insert(self.sequence, key.clone());
            let Waiting { cluster, priority, not_before } = waiting;
            let place = if not_before <= now { Place::Ready } else { Place::Delayed(not_before) };
            let item = Item { cluster, priority, since: now, sequence: self.sequence, failures: 0, place };
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
            item.place = if waiting.not_before <= now { Place::Ready } else { Place::Delayed(waiting.not_before) };
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

    /// Drops what waits to leave a cluster, because it recovered or is gone, and returns it. An item that was taken
    /// is not dropped: whoever took it finishes it.
    pub fn drop_cluster(&mut self, cluster: &str) -> Vec<K> {
        let waits = |item: &Item| item.cluster == cluster && item.place != Place::Taken;
        let dropped: Vec<_> = self.items.iter().filter(|(_, item)| waits(item)).map(|(key, _)| key.clone()).collect();
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

    /// Lets every item that waits for a time be looked at now, for example because a pause ended. Items that wait
    /// after a failure go on waiting.
    pub fn wake(&mut self, now: Duration) {
        let sleeping: Vec<_> =
            self.delayed.iter().filter_map(|(_, sequence)| self.keys.get(sequence)).cloned().collect();
        for key in sleeping {
            if self.items.get(&key).is_some_and(|item| item.failures == 0) {
                self.change(&key, |item| item.place = Place::Delayed(now));
            }
        }
    }

    /// Tries failed items again now, because a write succeeded: the fault that they share may be over. Items that fail
    /// whatever the control plane does are not tried more often than their own back-off allows in the long run, so
    /// this happens at most once in `RETRY_MAX`.
    pub fn resume(&mut self, now: Duration) {
        if self.resumed.is_some_and(|resumed| now.saturating_sub(resumed) < RETRY_MAX) {
            return;
        }
        let waits = |item: &Item| item.failures > 0 && matches!(item.place, Place::Delayed(_));
        let failed: Vec<_> = self.items.iter().filter(|(_, item)| waits(item)).map(|(key, _)| key.clone()).collect();
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

    /// The next item whose rates are all open now. Nothing is charged yet.
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
        let Some(key) = self.keys.get(&sequence).cloned() else { return Next::Idle };
        self.change(&key, |item| item.place = Place::Taken);
        Next::Take(key)
    }

    fn pick(&self, open: &[&Lane], now: Duration) -> Option<u64> {
        let oldest = open.iter().filter_map(|lane| lane.by_age.first()).min().copied()?;
        let since = self.keys.get(&oldest).and_then(|key| self.items.get(key)).map(|item| item.since);
        let over_age = self.aging.zip(since).is_some_and(|(aging, since)| now.saturating_sub(since) >= aging);
        if over_age && self.charged % AGED_SHARE == AGED_SHARE - 1 {
            return Some(oldest);
        }
        open.iter().filter_map(|lane| lane.by_rank.first()).min().map(|(_, sequence)| *sequence)
    }

    fn scopes(cluster: &str, limit: &Limit) -> Vec<(Scope, Rate)> {
        let mut scopes = vec![(Scope::Global, limit.global)];
        scopes.extend(limit.group.iter().map(|(group, rate)| (Scope::Group(group.clone()), *rate)));
        scopes.extend(limit.cluster.map(|rate| (Scope::Cluster(cluster.to_owned()), rate)));
        scopes
    }

    /// When every rate for a cluster is open; none while one of them is 0.
    fn opens_at(&self, cluster: &str, limit: &Limit) -> Option<Duration> {
        let opens = |(scope, rate): (Scope, Rate)| self.buckets.get(&scope).copied().unwrap_or_default().opens_at(rate);
        Self::scopes(cluster, limit)
            .into_iter()
            .map(opens)
            .try_fold(Duration::ZERO, |latest, opens| opens.map(|opens| latest.max(opens)))
    }

    /// Charges one eviction from a cluster to all its rates. To be called for an item that [`EvictionQueue::next`]
    /// gave at the same `now`.
    pub fn charge(&mut self, cluster: &str, limit: &Limit, now: Duration) -> Slot {
        self.charged += 1;
        // Every scope keeps its bucket filled even while it has no rate of its own, so that a rate that begins to
        // apply knows of the last eviction.
        let mut scopes: Vec<_> = Self::scopes(cluster, limit).into_iter().map(|(scope, _)| scope).collect();
        let own = Scope::Cluster(cluster.to_owned());
        if !scopes.contains(&own) {
            scopes.push(own);
        }
        for scope in &scopes {
            self.buckets.entry(scope.clone()).or_default().charge(now);
        }
        Slot { at: now, scopes }
    }

    /// Keeps the rates of a cluster closed as if an eviction from it had just happened: nobody knows that none has.
    pub fn suppose_charged(&mut self, cluster: &str, limit: &Limit, now: Duration) {
        for (scope, _) in Self::scopes(cluster, limit) {
            self.buckets.entry(scope).or_default().charge(now);
        }
    }

    /// Gives a slot back that was not used.
    pub fn give_back(&mut self, slot: &Slot) {
        for scope in &slot.scopes {
            if let Some(bucket) = self.buckets.get_mut(scope) {
                bucket.give_back(slot.at);
            }
        }
    }

    /// Finishes an item that was taken.
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

    /// How long an item has been in the queue.
    pub fn waited(&self, key: &K, now: Duration) -> Option<Duration> {
        self.items.get(key).map(|item| now.saturating_sub(item.since))
    }

    /// The items that could be looked at now, if their rates were open.
    pub fn ready(&self) -> Vec<K> {
        let ready = self.items.iter().filter(|(_, item)| item.place == Place::Ready);
        ready.map(|(key, _)| key.clone()).collect()
    }

    /// Every item with the cluster it is to leave, taken ones too.
    pub fn items(&self) -> impl Iterator<Item = (&K, &str)> {
        self.items.iter().map(|(key, item)| (key, item.cluster.as_str()))
    }

    /// Number of items, taken ones too.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing waits and nothing is taken.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests;
