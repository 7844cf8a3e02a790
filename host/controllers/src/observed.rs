//! What the scheduler has seen of bindings, where nobody waits to hear it.
//!
//! That a generation needs nothing, or that the same place was found again, is true as soon as the scheduler knows. In
//! the status it goes along with whatever else changes there, and is written by itself only after seconds: in an
//! eviction that is one write in place of four. Controllers of this process need not wait for it, see
//! [`Binding::observed`](crate::binding_kind::Binding::observed).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::model::BindingStatus;
use bulkhead_core::time::Time;
use tokio::time::Instant;

use crate::handlers::Handlers;
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
pub struct Observations {
    unwritten: Mutex<BTreeMap<Key, Unwritten>>,
    handlers: Handlers<Handler>,
}

type Handler = dyn Fn(&Key) + Send + Sync;

struct Unwritten {
    observation: Observation,
    since: Instant,
}

impl Observations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Unwritten>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `handler` with the binding whenever something is noted, until what is returned is dropped.
    pub(crate) fn subscribe(&self, handler: impl Fn(&Key) + Send + Sync + 'static) -> Arc<Handler> {
        let handler: Arc<Handler> = Arc::new(handler);
        self.handlers.add(&handler);
        handler
    }

    /// Adds to what is to be written.
    pub(crate) fn note(&self, key: &Key, news: Observation) {
        {
            let mut observations = self.lock();
            let new = Unwritten { observation: news, since: Instant::now() };
            let noted = &mut observations.entry(key.clone()).or_insert(new).observation;
            *noted = Observation {
                generation: noted.generation.max(news.generation),
                scheduled: noted.scheduled.max(news.scheduled),
            };
        }
        self.handlers.call(|handler| handler(key));
    }

    /// Forgets a binding that is gone: another one of its name begins anew.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// What is to be written about a binding.
    pub(crate) fn get(&self, key: &Key) -> Option<Observation> {
        self.lock().get(key).map(|unwritten| unwritten.observation)
    }

    /// For how long something has been waiting to be written about a binding.
    pub(crate) fn age(&self, key: &Key) -> Option<Duration> {
        self.lock().get(key).map(|unwritten| unwritten.since.elapsed())
    }

    /// Notes that this was written, or that there is nothing to write it to; what came meanwhile stays.
    pub(crate) fn done(&self, key: &Key, written: Observation) {
        let mut observations = self.lock();
        if observations.get(key).is_some_and(|unwritten| unwritten.observation == written) {
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

    #[tokio::test(start_paused = true)]
    async fn what_is_noted_adds_up_is_told_and_what_comes_meanwhile_is_not_lost() {
        let (observations, key) = (Observations::default(), Key::new("ns", "b"));
        let told = Arc::<Mutex<Vec<Key>>>::default();
        let heard = Arc::clone(&told);
        let _subscription = observations.subscribe(move |key| heard.lock().unwrap().push(key.clone()));
        let first = Observation { generation: 2, scheduled: Some(Time::from_millis(1000)) };
        observations.note(&key, first);
        tokio::time::advance(Duration::from_secs(3)).await;
        observations.note(&key, Observation { generation: 3, scheduled: None });
        assert_eq!(*told.lock().unwrap(), [key.clone(), key.clone()]);
        assert_eq!(observations.age(&key), Some(Duration::from_secs(3)));
        let noted = observations.get(&key).unwrap();
        assert_eq!(noted, Observation { generation: 3, ..first });
        observations.done(&key, first);
        let mut old = status(1, None);
        assert!(noted.put_into(&mut old));
        assert_eq!(old, status(3, Some(1)));
        let mut newer = status(7, Some(9));
        assert!(!noted.put_into(&mut newer), "what is known better stays");
        observations.done(&key, noted);
        assert_eq!((observations.get(&key), observations.age(&key)), (None, None));
        observations.note(&key, first);
        observations.forget(&key);
        assert_eq!(observations.get(&key), None);
    }
}
