//! Counts and log lines of failed reconciles, and the span of each reconcile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{Span, debug, error_span, warn};

use crate::controller::{Error, ErrorClass, Observer, TARGET};
use crate::key::ObjectName;

/// Failure counts by controller and error. Bounded by the number of classes and by the number of distinct texts,
/// which is limited to [`Failures::KINDS_MAX`].
#[derive(Default)]
pub struct Failures {
    counts: Mutex<BTreeMap<(String, String), Count>>,
    classes: Mutex<BTreeMap<(String, ErrorClass), u64>>,
    withheld: AtomicU64,
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
        let text = if error.is_conflict() { "another writer was faster".to_owned() } else { error.describe() };
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
        let counted = failures.entry(key).or_insert(Count { class, count: 0, first: now, last: now });
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
        Counter { failures: Arc::clone(self), controller, object_of }
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
        classes.iter().map(|((controller, class), count)| (controller.clone(), *class, *count)).collect()
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_that_are_over_make_room_for_new_ones() {
        let failures = Failures::default();
        let fail = |number: usize| failures.count("scheduler", &Error::Undecided(format!("{number:04}")));
        (0..Failures::KINDS_MAX + 2).for_each(fail);
        let counts = failures.counts();
        let last = counts.last().map(|failure| (failure.text.as_str(), failure.count));
        assert_eq!((counts.len(), last), (Failures::KINDS_MAX + 1, Some(("other failures", 2))));
        tokio::time::advance(Failures::FORGET).await;
        fail(5_000);
        assert_eq!(failures.counts().iter().map(|failure| failure.text.as_str()).collect::<Vec<_>>(), ["5000"]);
    }
}
