//! Batching of status changes. Only the report that a copy became healthy is never delayed: evictions wait for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::Key;

/// Time for which a change waits for others. A rollout changes counters many times per second, and most of them
/// affect no decision.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest wait during continuous progress. The wait doubles from one write to the next.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// Wait while a Work is about to be deleted; its deletion updates the status anyway.
const PAUSE_OF_LEAVING: Duration = Duration::from_secs(30);
/// Age after which waiting changes are taken to belong to a deleted object.
const FORGOTTEN: Duration = Duration::from_mins(5);
/// Time without changes after which the wait starts at its minimum again.
const QUIET: Duration = Duration::from_secs(30);

/// Kind of a status change, the most important last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// A copy that is no longer wanted still exists.
    Leaving,
    /// Counters, messages, timestamps.
    Progress,
    /// A copy is no longer healthy. During a rollout it often recovers a moment later.
    Loss,
}

impl Detail {
    /// Classifies a change from the health of each copy before and after. Returns `None` if a copy became healthy,
    /// which must not wait.
    pub(crate) fn of(copies: impl IntoIterator<Item = (bool, bool)>) -> Option<Self> {
        copies.into_iter().try_fold(Self::Progress, |detail, copy| match copy {
            (false, true) => None,
            (true, false) => Some(Self::Loss),
            _ => Some(detail),
        })
    }
}

/// Objects with waiting status changes. A change that must not wait is written together with them.
#[derive(Default)]
pub(crate) struct Pace(Mutex<Objects>);

#[derive(Default)]
struct Objects {
    by_key: BTreeMap<Key, Details>,
    tidied: Option<Instant>,
}

struct Details {
    /// Time of the first change that is not written.
    unwritten: Option<Instant>,
    written: Instant,
    pause: Duration,
}

impl Pace {
    /// Returns how long the changes of an object still have to wait; `None` if they are due.
    pub(crate) fn wait(&self, key: &Key, detail: Detail) -> Option<Duration> {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        objects.tidy(now);
        let new = Details { unwritten: None, written: now, pause: PAUSE_MIN };
        let details = objects.by_key.entry(key.clone()).or_insert(new);
        if details.unwritten.is_none() && now - details.written >= QUIET {
            details.pause = PAUSE_MIN;
        }
        let since = *details.unwritten.get_or_insert(now);
        let pause = match detail {
            Detail::Leaving => PAUSE_OF_LEAVING,
            Detail::Progress => details.pause,
            Detail::Loss => PAUSE_MIN,
        };
        pause.checked_sub(now - since).filter(|left| !left.is_zero())
    }

    /// Records that all changes of an object are written.
    pub(crate) fn done(&self, key: &Key) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(details) = objects.by_key.get_mut(key)
            && details.unwritten.take().is_some()
        {
            (details.written, details.pause) = (Instant::now(), (details.pause * 2).min(PAUSE_MAX));
        }
    }
}

impl Objects {
    /// Forgets objects that have been quiet for so long that their state makes no difference.
    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_none_or(|tidied| now - tidied >= QUIET) {
            self.tidied = Some(now);
            self.by_key.retain(|_, details| match details.unwritten {
                Some(since) => now - since < FORGOTTEN,
                None => now - details.written < QUIET,
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
    fn that_a_copy_became_healthy_is_no_detail() {
        let check = |copies: &[(bool, bool)], expected| assert_eq!(Detail::of(copies.iter().copied()), expected);
        check(&[], Some(Detail::Progress));
        check(&[(true, true), (false, false)], Some(Detail::Progress));
        check(&[(true, false), (true, true)], Some(Detail::Loss));
        check(&[(true, false), (false, true)], None);
    }

    #[tokio::test(start_paused = true)]
    async fn details_wait_for_a_second_from_the_first_of_them() {
        let (pace, a, b) = (Pace::default(), Key::new("ns", "a"), Key::new("ns", "b"));
        assert_eq!(pace.wait(&a, Detail::Progress), Some(ms(1000)));
        pass(300).await;
        assert_eq!((pace.wait(&a, Detail::Progress), pace.wait(&b, Detail::Loss)), (Some(ms(700)), Some(ms(1000))));
        pass(700).await;
        assert_eq!((pace.wait(&a, Detail::Progress), pace.wait(&b, Detail::Loss)), (None, Some(ms(300))));
        assert_eq!(pace.wait(&a, Detail::Leaving), Some(ms(29_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_that_goes_on_is_told_less_and_less_often_and_a_loss_is_not() {
        let (pace, a) = (Pace::default(), Key::new("ns", "a"));
        for pause in [1000, 2000, 4000, 8000, 8000] {
            assert_eq!(pace.wait(&a, Detail::Progress), Some(ms(pause)));
            pass(500).await;
            assert_eq!(pace.wait(&a, Detail::Loss), Some(ms(500)));
            pass(pause - 500).await;
            assert_eq!(pace.wait(&a, Detail::Progress), None);
            pace.done(&a);
            // Nothing was waiting, so this is no write of changes.
            pace.done(&a);
        }
        pass(30_000).await;
        assert_eq!(pace.wait(&a, Detail::Progress), Some(ms(1000)));
        pace.done(&a);
        pass(30_000).await;
        assert_eq!(pace.wait(&Key::new("ns", "b"), Detail::Loss), Some(ms(1000)));
        assert_eq!(pace.0.lock().unwrap().by_key.len(), 1, "what is quiet is forgotten");
        pass(300_000).await;
        assert_eq!(pace.wait(&a, Detail::Progress), Some(ms(1000)));
        assert_eq!(pace.0.lock().unwrap().by_key.len(), 1, "so is what is never written");
    }
}
