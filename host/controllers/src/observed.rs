//! What the scheduler has seen of bindings, where nobody waits to hear it.
//!
//! That a generation needs nothing, or that the same place was found again, is true as soon as the scheduler knows. In
//! the status it goes along with whatever else changes there, and is written by itself only after seconds: in an
//! eviction that is one write in place of four.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bulkhead_core::model::BindingStatus;
use bulkhead_core::time::Time;

use crate::store::Key;

/// What is to be written about one binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    /// The generation that was seen through.
    pub(crate) generation: i64,
    /// When it was scheduled, if it was.
    pub(crate) scheduled: Option<Time>,
}

impl Observation {
    /// Puts it into a status, unless that knows better. Returns whether anything changed.
    pub(crate) fn put_into(&self, status: &mut BindingStatus) -> bool {
        let generation = self.generation.max(status.scheduler_observed_generation);
        let scheduled = self.scheduled.max(status.last_scheduled_time);
        let changed = (status.scheduler_observed_generation, status.last_scheduled_time) != (generation, scheduled);
        (status.scheduler_observed_generation, status.last_scheduled_time) = (generation, scheduled);
        changed
    }

    /// What turns one status into the other, if that is all there is between them and the first one was scheduled
    /// before: who is new waits for the first time.
    pub(crate) fn between(before: &BindingStatus, after: &BindingStatus) -> Option<Self> {
        before.last_scheduled_time?;
        let observation =
            Self { generation: after.scheduler_observed_generation, scheduled: after.last_scheduled_time };
        let mut expected = before.clone();
        observation.put_into(&mut expected);
        (expected == *after).then_some(observation)
    }
}

/// What is still to be written, by binding; those without a namespace are cluster-scoped.
#[derive(Default)]
pub struct Observations(Mutex<BTreeMap<Key, Observation>>);

impl Observations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Observation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to what is to be written.
    pub(crate) fn note(&self, key: &Key, news: Observation) {
        let mut observations = self.lock();
        let noted = observations.entry(key.clone()).or_insert(news);
        *noted = Observation {
            generation: noted.generation.max(news.generation),
            scheduled: noted.scheduled.max(news.scheduled),
        };
    }

    /// What is to be written about a binding.
    pub(crate) fn get(&self, key: &Key) -> Option<Observation> {
        self.lock().get(key).copied()
    }

    /// Notes that this was written, or that there is nothing to write it to; what came meanwhile stays.
    pub(crate) fn done(&self, key: &Key, written: Observation) {
        let mut observations = self.lock();
        if observations.get(key) == Some(&written) {
            observations.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Condition, ConditionStatus};

    use super::*;

    fn status(generation: i64, scheduled_s: Option<i64>) -> BindingStatus {
        BindingStatus {
            scheduler_observed_generation: generation,
            last_scheduled_time: scheduled_s.map(|s| Time::from_millis(s * 1000)),
            ..BindingStatus::default()
        }
    }

    #[test]
    fn only_bookkeeping_of_a_binding_that_was_scheduled_can_wait() {
        let check = |before: &BindingStatus, after: &BindingStatus, expected: Option<i64>| {
            let found = Observation::between(before, after).map(|observation| observation.generation);
            assert_eq!(found, expected, "{before:?} {after:?}");
        };
        check(&status(1, Some(5)), &status(2, Some(9)), Some(2));
        check(&status(1, Some(5)), &status(2, Some(5)), Some(2));
        check(&status(0, None), &status(1, Some(5)), None);
        let mut failed = status(2, Some(5));
        failed.conditions =
            vec![Condition::new("Scheduled", ConditionStatus::False, "NoClusterFit", "", Time::from_millis(0))];
        check(&status(1, Some(5)), &failed, None);
        let renamed = BindingStatus { scheduler_observed_affinity_name: "second".to_owned(), ..status(2, Some(5)) };
        check(&status(1, Some(5)), &renamed, None);
    }

    #[test]
    fn what_is_noted_adds_up_and_what_comes_meanwhile_is_not_lost() {
        let (observations, key) = (Observations::default(), Key::new("ns", "b"));
        let first = Observation { generation: 2, scheduled: Some(Time::from_millis(1000)) };
        observations.note(&key, first);
        observations.note(&key, Observation { generation: 3, scheduled: None });
        let noted = observations.get(&key).unwrap();
        assert_eq!(noted, Observation { generation: 3, ..first });
        observations.done(&key, first);
        let mut old = status(1, None);
        assert!(noted.put_into(&mut old));
        assert_eq!(old, status(3, Some(1)));
        let mut newer = status(7, Some(9));
        assert!(!noted.put_into(&mut newer), "what is known better stays");
        observations.done(&key, noted);
        assert_eq!(observations.get(&key), None);
    }
}
