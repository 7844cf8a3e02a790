//! Batching of status changes. Only the report that a copy became healthy is never delayed: evictions wait for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bulkhead_runtime::key::Key;
use tokio::time::Instant;

/// Time for which a change waits for others. A rollout changes counters many times per second, and most of them
/// affect no decision.
const DELAY_MIN: Duration = Duration::from_secs(1);
/// Longest wait during continuous progress. The wait doubles from one write to the next.
const DELAY_MAX: Duration = Duration::from_secs(8);
/// Wait while a Work is about to be deleted; its deletion updates the status anyway.
const DELAY_OF_DELETION: Duration = Duration::from_secs(30);
/// Age after which waiting changes are taken to belong to a deleted object.
const EXPIRY: Duration = Duration::from_mins(5);
/// Time without changes after which the wait starts at its minimum again.
const QUIET: Duration = Duration::from_secs(30);

/// Kind of a status change, the most important last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatusChange {
    /// A copy that is no longer wanted still exists.
    Deleting,
    /// Counters, messages, timestamps.
    Progress,
    /// A copy is no longer healthy. During a rollout it often recovers a moment later.
    Unhealthy,
}

impl StatusChange {
    /// Classifies a change from the health of each copy before and after. Returns `None` if a copy became healthy,
    /// which must not wait.
    pub(crate) fn of(copies: impl IntoIterator<Item = (bool, bool)>) -> Option<Self> {
        copies.into_iter().try_fold(Self::Progress, |change, copy| match copy {
            (false, true) => None,
            (true, false) => Some(Self::Unhealthy),
            _ => Some(change),
        })
    }
}

/// Objects with waiting status changes. A change that must not wait is written together with them.
#[derive(Default)]
pub(crate) struct StatusBatcher(Mutex<Objects>);

#[derive(Default)]
struct Objects {
    by_key: BTreeMap<Key, PendingChanges>,
    tidied: Option<Instant>,
}

struct PendingChanges {
    /// Time of the first change that is not written.
    unwritten: Option<Instant>,
    written: Instant,
    delay: Duration,
}

impl StatusBatcher {
    /// Returns how long the changes of an object still have to wait; `None` if they are due.
    pub(crate) fn wait(&self, key: &Key, change: StatusChange) -> Option<Duration> {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        objects.tidy(now);
        let new = PendingChanges {
            unwritten: None,
            written: now,
            delay: DELAY_MIN,
        };
        let pending = objects.by_key.entry(key.clone()).or_insert(new);
        if pending.unwritten.is_none() && now - pending.written >= QUIET {
            pending.delay = DELAY_MIN;
        }
        let since = *pending.unwritten.get_or_insert(now);
        let delay = match change {
            StatusChange::Deleting => DELAY_OF_DELETION,
            StatusChange::Progress => pending.delay,
            StatusChange::Unhealthy => DELAY_MIN,
        };
        delay.checked_sub(now - since).filter(|remaining| !remaining.is_zero())
    }

    /// Records that all changes of an object are written.
    pub(crate) fn done(&self, key: &Key) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pending) = objects.by_key.get_mut(key)
            && pending.unwritten.take().is_some()
        {
            (pending.written, pending.delay) = (Instant::now(), (pending.delay * 2).min(DELAY_MAX));
        }
    }
}

impl Objects {
    /// Forgets objects that have been quiet for so long that their state makes no difference.
    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_none_or(|tidied| now - tidied >= QUIET) {
            self.tidied = Some(now);
            self.by_key.retain(|_, pending| match pending.unwritten {
                Some(since) => now - since < EXPIRY,
                None => now - pending.written < QUIET,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    async fn pass(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    #[test]
    fn a_copy_that_became_healthy_must_not_wait() {
        let check = |copies: &[(bool, bool)], expected| assert_eq!(StatusChange::of(copies.iter().copied()), expected);
        check(&[], Some(StatusChange::Progress));
        check(&[(true, true), (false, false)], Some(StatusChange::Progress));
        check(&[(true, false), (true, true)], Some(StatusChange::Unhealthy));
        check(&[(true, false), (false, true)], None);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_wait_for_a_second_from_the_first_of_them() {
        let (batcher, a, b) = (StatusBatcher::default(), Key::new("ns", "a"), Key::new("ns", "b"));
        assert_eq!(batcher.wait(&a, StatusChange::Progress), Some(ms(1000)));
        pass(300).await;
        assert_eq!(
            (
                batcher.wait(&a, StatusChange::Progress),
                batcher.wait(&b, StatusChange::Unhealthy)
            ),
            (Some(ms(700)), Some(ms(1000)))
        );
        pass(700).await;
        assert_eq!(
            (
                batcher.wait(&a, StatusChange::Progress),
                batcher.wait(&b, StatusChange::Unhealthy)
            ),
            (None, Some(ms(300)))
        );
        assert_eq!(batcher.wait(&a, StatusChange::Deleting), Some(ms(29_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn continuous_progress_is_written_less_and_less_often_and_lost_health_is_not() {
        let (batcher, a) = (StatusBatcher::default(), Key::new("ns", "a"));
        for pause in [1000, 2000, 4000, 8000, 8000] {
            assert_eq!(batcher.wait(&a, StatusChange::Progress), Some(ms(pause)));
            pass(500).await;
            assert_eq!(batcher.wait(&a, StatusChange::Unhealthy), Some(ms(500)));
            pass(pause - 500).await;
            assert_eq!(batcher.wait(&a, StatusChange::Progress), None);
            batcher.done(&a);
            // Nothing was waiting, so this is no write of changes.
            batcher.done(&a);
        }
        pass(30_000).await;
        assert_eq!(batcher.wait(&a, StatusChange::Progress), Some(ms(1000)));
        batcher.done(&a);
        pass(30_000).await;
        assert_eq!(
            batcher.wait(&Key::new("ns", "b"), StatusChange::Unhealthy),
            Some(ms(1000))
        );
        assert_eq!(batcher.0.lock().unwrap().by_key.len(), 1, "what is quiet is forgotten");
        pass(300_000).await;
        assert_eq!(batcher.wait(&a, StatusChange::Progress), Some(ms(1000)));
        assert_eq!(batcher.0.lock().unwrap().by_key.len(), 1, "so is what is never written");
    }
}
