//! Contents of the queue, for people.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{EvictionQueue, Limit, Place};

/// Item of the queue as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedItem<'a, K> {
    /// Key of the item.
    pub key: &'a K,
    /// Cluster that the item leaves.
    pub cluster: &'a str,
    /// Time that the item has spent in the queue.
    pub waited: Duration,
    /// State of the item.
    pub state: QueuedState,
}

/// State of an item of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedState {
    /// It is evaluated after this time, or earlier after a change.
    Delayed(Duration),
    /// It is evaluated when a slot of all its rates opens, in this time at the earliest; `None` while a rate is 0, or
    /// while an eviction is being written whose time counts.
    Ready(Option<Duration>),
    /// It is being processed.
    Taken,
}

impl<K: Ord + Clone> EvictionQueue<K> {
    /// Returns all items in the order of their keys.
    pub fn view(&self, now: Duration, limit: impl Fn(&str) -> Limit) -> Vec<QueuedItem<'_, K>> {
        let mut opens = BTreeMap::new();
        let items = self.items.iter().map(|(key, item)| {
            let cluster = item.cluster.as_str();
            let state = match item.place {
                Place::Delayed(until) => QueuedState::Delayed(until.saturating_sub(now)),
                Place::Ready => {
                    let opens = opens.entry(cluster);
                    let opens = *opens.or_insert_with(|| self.opens_at(cluster, &limit(cluster)));
                    QueuedState::Ready(opens.map(|opens| opens.saturating_sub(now)))
                }
                Place::Taken => QueuedState::Taken,
            };
            QueuedItem {
                key,
                cluster,
                waited: now.saturating_sub(item.since),
                state,
            }
        });
        items.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Waiting};
    use super::*;
    use crate::decide::eviction::Rate;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_view_has_the_state_of_each_item_and_the_time_of_its_next_check() {
        let limit = |_: &str| Limit {
            global: Rate::per_second(0.1),
            group: None,
            cluster: None,
        };
        let mut queue = EvictionQueue::new(None);
        let mut put = |key: &'static str, not_before: u64| {
            let waiting = Waiting {
                cluster: "m1".to_owned(),
                priority: 0.into(),
                not_before: at(not_before),
            };
            queue.put(key, waiting, at(0));
        };
        put("a", 0);
        put("b", 0);
        put("c", 100);
        assert_eq!(queue.next(at(20), limit), Next::Take("a"));
        let slot = queue.charge("m1", &limit("m1"), at(20));
        queue.settle(&slot, "m1", &limit("m1"), at(20));
        let states: Vec<_> = queue
            .view(at(24), limit)
            .iter()
            .map(|item| (*item.key, item.state, item.waited))
            .collect();
        let expected = [
            ("a", QueuedState::Taken, at(24)),
            ("b", QueuedState::Ready(Some(at(6))), at(24)),
            ("c", QueuedState::Delayed(at(76)), at(24)),
        ];
        assert_eq!(states, expected);
    }
}
