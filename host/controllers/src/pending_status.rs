//! Scheduler status fields that are not written yet.
//!
//! If a generation needs no scheduling, or gets the same placement again, only bookkeeping fields of the status
//! change. They are written along with the next other change of the status, or alone after a delay. An eviction then
//! takes one write instead of four. Controllers of this process see the fields at once, see
//! [`Binding::latest`](crate::binding_kind::Binding::latest).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::model::BindingStatus;
use bulkhead_core::time::Time;
use bulkhead_runtime::handlers::Handlers;
use bulkhead_runtime::key::Key;
use tokio::time::Instant;

/// Pending status fields of one binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchedulerFields {
    /// Generation that the scheduler has processed.
    pub(crate) generation: i64,
    /// Time of the scheduling, if there was one.
    pub(crate) scheduled: Option<Time>,
}

impl SchedulerFields {
    /// Merges the fields into a status; the later value of each wins. Returns true if anything changed.
    pub(crate) fn merge_into(&self, status: &mut BindingStatus) -> bool {
        let generation = self.generation.max(status.scheduler_observed_generation);
        let scheduled = self.scheduled.max(status.last_scheduled_time);
        let changed = (status.scheduler_observed_generation, status.last_scheduled_time) != (generation, scheduled);
        (status.scheduler_observed_generation, status.last_scheduled_time) = (generation, scheduled);
        changed
    }

    /// Returns the fields that turn one status into the other. Returns `None` if other fields differ too, or if the
    /// binding was not scheduled before: its first scheduling must not be delayed.
    pub(crate) fn between(before: &BindingStatus, after: &BindingStatus) -> Option<Self> {
        before.last_scheduled_time?;
        let fields = Self {
            generation: after.scheduler_observed_generation,
            scheduled: after.last_scheduled_time,
        };
        let mut expected = before.clone();
        fields.merge_into(&mut expected);
        (expected == *after).then_some(fields)
    }
}

/// Pending status fields by binding. Keys without a namespace belong to cluster-scoped bindings.
#[derive(Default)]
pub struct PendingStatus {
    unwritten: Mutex<BTreeMap<Key, Unwritten>>,
    handlers: Handlers<Handler>,
}

type Handler = dyn Fn(&Key) + Send + Sync;

struct Unwritten {
    fields: SchedulerFields,
    since: Instant,
}

impl PendingStatus {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Unwritten>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `handler` with the key of a binding whenever fields are added, until the returned handle is dropped.
    pub(crate) fn subscribe(&self, handler: impl Fn(&Key) + Send + Sync + 'static) -> Arc<Handler> {
        let handler: Arc<Handler> = Arc::new(handler);
        self.handlers.add(&handler);
        handler
    }

    /// Adds fields to the pending ones of a binding.
    pub(crate) fn note(&self, key: &Key, new: SchedulerFields) {
        {
            let mut pending = self.lock();
            let unwritten = Unwritten {
                fields: new,
                since: Instant::now(),
            };
            let noted = &mut pending.entry(key.clone()).or_insert(unwritten).fields;
            *noted = SchedulerFields {
                generation: noted.generation.max(new.generation),
                scheduled: noted.scheduled.max(new.scheduled),
            };
        }
        self.handlers.call(|handler| handler(key));
    }

    /// Forgets a deleted binding, so that a new one of the same name starts without pending fields.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Returns the pending fields of a binding.
    pub(crate) fn get(&self, key: &Key) -> Option<SchedulerFields> {
        self.lock().get(key).map(|unwritten| unwritten.fields)
    }

    /// Returns how long a binding has had pending fields.
    pub(crate) fn age(&self, key: &Key) -> Option<Duration> {
        self.lock().get(key).map(|unwritten| unwritten.since.elapsed())
    }

    /// Removes fields that were written, or whose binding is gone. Fields that were added meanwhile stay.
    pub(crate) fn done(&self, key: &Key, written: SchedulerFields) {
        let mut pending = self.lock();
        if pending.get(key).is_some_and(|unwritten| unwritten.fields == written) {
            pending.remove(key);
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
            let found = SchedulerFields::between(before, after).map(|fields| fields.generation);
            assert_eq!(found, expected, "{before:?} {after:?}");
        };
        check(&status(1, Some(5)), &status(2, Some(9)), Some(2));
        check(&status(1, Some(5)), &status(2, Some(5)), Some(2));
        check(&status(0, None), &status(1, Some(5)), None);
        let mut failed = status(2, Some(5));
        failed.conditions = vec![Condition::new(
            "Scheduled",
            ConditionStatus::False,
            "NoClusterFit",
            "",
            Time::from_millis(0),
        )];
        check(&status(1, Some(5)), &failed, None);
        let renamed = BindingStatus {
            scheduler_observed_affinity_name: "second".to_owned(),
            ..status(2, Some(5))
        };
        check(&status(1, Some(5)), &renamed, None);
    }

    #[tokio::test(start_paused = true)]
    async fn fields_are_merged_and_announced_and_those_added_meanwhile_stay() {
        let (pending, key) = (PendingStatus::default(), Key::new("ns", "b"));
        let notified = Arc::<Mutex<Vec<Key>>>::default();
        let heard = Arc::clone(&notified);
        let _subscription = pending.subscribe(move |key| heard.lock().unwrap().push(key.clone()));
        let first = SchedulerFields {
            generation: 2,
            scheduled: Some(Time::from_millis(1000)),
        };
        pending.note(&key, first);
        tokio::time::advance(Duration::from_secs(3)).await;
        pending.note(
            &key,
            SchedulerFields {
                generation: 3,
                scheduled: None,
            },
        );
        assert_eq!(*notified.lock().unwrap(), [key.clone(), key.clone()]);
        assert_eq!(pending.age(&key), Some(Duration::from_secs(3)));
        let noted = pending.get(&key).unwrap();
        assert_eq!(noted, SchedulerFields { generation: 3, ..first });
        pending.done(&key, first);
        let mut old = status(1, None);
        assert!(noted.merge_into(&mut old));
        assert_eq!(old, status(3, Some(1)));
        let mut newer = status(7, Some(9));
        assert!(!noted.merge_into(&mut newer), "what is known better stays");
        pending.done(&key, noted);
        assert_eq!((pending.get(&key), pending.age(&key)), (None, None));
        pending.note(&key, first);
        pending.forget(&key);
        assert_eq!(pending.get(&key), None);
    }
}
