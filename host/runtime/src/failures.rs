//! Counts and log lines of failed reconciles, the span of each reconcile, and the backlogs of running controllers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{Span, debug, error_span, warn};

use crate::controller::{Error, ErrorClass, Observer, TARGET};
use crate::key::ObjectName;
use crate::queue::{Backlog, Observable};

/// Failure counts by controller and error. Bounded by the number of classes and by the number of distinct texts,
/// which is limited to [`Failures::KINDS_MAX`].
#[derive(Default)]
pub struct Failures {
    counts: Mutex<BTreeMap<(String, String), Count>>,
    classes: Mutex<BTreeMap<(String, ErrorClass), u64>>,
    withheld: AtomicU64,
    /// Queues of the running controllers, by name.
    queues: Mutex<BTreeMap<&'static str, Vec<Weak<dyn Observable>>>>,
}

struct Count {
    class: ErrorClass,
    count: u64,
    first: Instant,
    last: Instant,
}

/// A kind of failed reconcile with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the controller.
    pub controller: String,
    /// Error text.
    pub text: String,
    /// Error class.
    pub class: ErrorClass,
    /// Number of occurrences.
    pub count: u64,
}

impl Failures {
    /// Maximum number of distinct failures.
    pub const KINDS_MAX: usize = 1_000;
    /// Age after which a failure that did not recur makes room for others.
    const FORGET: Duration = Duration::from_mins(10);
    /// Time for which a missing precondition is only logged with debug level. Most are met soon.
    const PRECONDITION_GRACE: Duration = Duration::from_secs(10);

    /// Counts and logs a failure, or counts a withheld write. Writes that were cut off by the end of the process do
    /// not count.
    pub fn count(&self, controller: &str, error: &Error) {
        if error.is_withheld() {
            self.withheld.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if error.is_stop() {
            return;
        }
        let class = error.class();
        *self
            .classes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((controller.to_owned(), class))
            .or_default() += 1;
        // All conflicts share one text: only their number matters.
        let text = if error.is_conflict() {
            "another writer was faster".to_owned()
        } else {
            error.describe()
        };
        let now = Instant::now();
        let mut failures = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (controller.to_owned(), text);
        if failures.len() >= Self::KINDS_MAX && !failures.contains_key(&key) {
            failures.retain(|_, count| now - count.last < Self::FORGET);
            if failures.len() >= Self::KINDS_MAX {
                "other failures".clone_into(&mut key.1);
            }
        }
        let text = key.1.clone();
        let counted = failures.entry(key).or_insert(Count {
            class,
            count: 0,
            first: now,
            last: now,
        });
        counted.count += 1;
        counted.last = now;
        let is_early = class == ErrorClass::NotYet && now - counted.first < Self::PRECONDITION_GRACE;
        drop(failures);
        let class = class.name();
        if is_early {
            debug!(target: TARGET, controller, class, "{text}");
        } else {
            warn!(target: TARGET, controller, class, "{text}");
        }
    }

    /// Returns the observer that counts the failed reconciles of a controller and opens their spans. `object_of`
    /// returns the object of a key.
    pub fn counter<K>(
        self: &Arc<Self>,
        controller: &'static str,
        object_of: for<'a> fn(&'a K) -> ObjectName<'a>,
    ) -> Counter<K> {
        Counter {
            failures: Arc::clone(self),
            controller,
            object_of,
        }
    }

    /// Returns the failures so far, except for forgotten ones.
    pub fn counts(&self) -> Vec<Failure> {
        let failures = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |((controller, text), Count { class, count, .. }): (&(String, String), &Count)| Failure {
            controller: controller.clone(),
            text: text.clone(),
            class: *class,
            count: *count,
        };
        failures.iter().map(one).collect()
    }

    /// Returns the number of failures by controller and class.
    pub fn classes(&self) -> Vec<(String, ErrorClass, u64)> {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes
            .iter()
            .map(|((controller, class), count)| (controller.clone(), *class, *count))
            .collect()
    }

    /// Adds a queue to the backlogs until it is dropped. Queues of [`controller::run`](crate::controller::run) are
    /// added by the observer of their controller.
    pub fn observe(&self, name: &'static str, queue: Weak<dyn Observable>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(name).or_default().push(queue);
    }

    /// Returns the backlog of each running controller. A controller with several queues has one backlog.
    pub fn backlogs(&self) -> Vec<(&'static str, Backlog)> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for of_controller in queues.values_mut() {
            of_controller.retain(|queue| queue.strong_count() > 0);
        }
        queues.retain(|_, of_controller| !of_controller.is_empty());
        let backlog = |queue: &Weak<dyn Observable>| queue.upgrade().map(|queue| queue.backlog()).unwrap_or_default();
        let backlogs = queues.iter().map(|(controller, of_controller)| {
            let backlogs = of_controller.iter().map(backlog);
            (*controller, backlogs.fold(Backlog::default(), Backlog::with))
        });
        backlogs.collect()
    }

    /// Returns the number of writes that were decided but not sent because this process only reports.
    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }
}

/// Observer of the reconciles of one controller.
pub struct Counter<K> {
    failures: Arc<Failures>,
    controller: &'static str,
    object_of: for<'a> fn(&'a K) -> ObjectName<'a>,
}

impl<K: 'static> Observer<K> for Counter<K> {
    /// Returns the span `reconcile`. Its level is ERROR, so that a failure has its context with every filter that
    /// shows it.
    fn span(&self, key: &K) -> Span {
        let object = (self.object_of)(key);
        error_span!(target: TARGET, "reconcile", controller = self.controller, kind = object.kind, %object)
    }

    fn failed(&self, _: &K, error: &Error) {
        self.failures.count(self.controller, error);
    }

    fn started(&self, queue: Weak<dyn Observable>) {
        self.failures.observe(self.controller, queue);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tracing_subscriber::filter::LevelFilter;

    use super::*;
    use crate::key::Key;
    use crate::queue::WorkQueue;
    use crate::{captured, controller};

    #[tokio::test(start_paused = true)]
    async fn failures_that_are_over_make_room_for_new_ones() {
        let failures = Failures::default();
        let fail = |number: usize| failures.count("scheduler", &Error::Undecided(format!("{number:04}")));
        (0..Failures::KINDS_MAX + 2).for_each(fail);
        let counts = failures.counts();
        let last = counts.last().map(|failure| (failure.text.as_str(), failure.count));
        assert_eq!(
            (counts.len(), last),
            (Failures::KINDS_MAX + 1, Some(("other failures", 2)))
        );
        tokio::time::advance(Failures::FORGET).await;
        fail(5_000);
        assert_eq!(
            failures
                .counts()
                .iter()
                .map(|failure| failure.text.as_str())
                .collect::<Vec<_>>(),
            ["5000"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_logged_in_the_span_of_its_reconcile() {
        let (dispatch, captured) = captured::subscriber(LevelFilter::WARN);
        let _subscribed = tracing::dispatcher::set_default(&dispatch);
        let queue = Arc::<WorkQueue<Key>>::default();
        queue.add(Key::new("default", "web"));
        let reconcile = |key: Key| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Err(Error::Undecided(format!("cannot place {key}")))
        };
        let observer = Arc::<Failures>::default().counter("scheduler", |key: &Key| key.named("ResourceBinding"));
        let _ = tokio::time::timeout(Duration::from_millis(5), controller::run(queue, 1, reconcile, observer)).await;
        let line = captured.json().remove(0);
        let expected = json!({
            "name": "reconcile", "controller": "scheduler", "kind": "ResourceBinding", "object": "default/web",
        });
        assert_eq!(line["spans"], json!([expected]));
        assert_eq!(
            (&line["level"], &line["message"]),
            (&json!("WARN"), &json!("cannot place default/web"))
        );
        assert_eq!(line["class"], "undecided");
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_has_a_backlog_while_it_runs() {
        let (failures, queue) = (Arc::<Failures>::default(), Arc::<WorkQueue<Key>>::default());
        let reconcile = |_: Key| std::future::pending();
        let observer = failures.counter("scheduler", |key: &Key| key.named("ResourceBinding"));
        let running = tokio::spawn(controller::run(Arc::clone(&queue), 1, reconcile, observer));
        for name in ["a", "b", "c"] {
            queue.add(Key::new("default", name));
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let oldest = Duration::from_secs(3);
        assert_eq!(failures.backlogs(), [("scheduler", Backlog { depth: 2, oldest })]);
        running.abort();
        let _ = running.await;
        drop(queue);
        // The reconciles in progress are dropped by the runtime.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(failures.backlogs().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_precondition_is_a_warning_only_if_it_lasts() {
        let (dispatch, captured) = captured::subscriber(LevelFilter::DEBUG);
        let _subscribed = tracing::dispatcher::set_default(&dispatch);
        let failures = Failures::default();
        for _ in 0..2 {
            failures.count("cluster", &Error::NotYet("Cluster m9 has no finalizer yet".to_owned()));
            tokio::time::advance(Failures::PRECONDITION_GRACE).await;
        }
        let levels: Vec<_> = captured.json().iter().map(|line| line["level"].clone()).collect();
        assert_eq!(levels, ["DEBUG", "WARN"]);
    }
}
