//! When the details of a status are written: all but that a copy became healthy, which evictions wait for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::store::Key;

/// How long a detail waits for others. A rollout changes counters many times in a second, and nothing is decided from
/// most of them.
const PAUSE: Duration = Duration::from_secs(1);

/// Objects with details that are not written yet, and since when. What others decide from is not a detail, and takes
/// the details along.
#[derive(Default)]
pub(crate) struct Pace(Mutex<BTreeMap<Key, Instant>>);

impl Pace {
    /// How long an object whose details changed has to wait; none if they are to be written now.
    pub(crate) fn wait(&self, key: &Key) -> Option<Duration> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *waiting.entry(key.clone()).or_insert_with(Instant::now);
        PAUSE.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Notes that nothing is left to be written about an object.
    pub(crate) fn done(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn details_wait_for_a_second_from_the_first_of_them() {
        let (pace, a, b) = (Pace::default(), Key::new("ns", "a"), Key::new("ns", "b"));
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pace.wait(&a), ms(1000));
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!((pace.wait(&a), pace.wait(&b)), (ms(700), ms(1000)));
        tokio::time::advance(Duration::from_millis(700)).await;
        assert_eq!((pace.wait(&a), pace.wait(&b)), (None, ms(300)));
        pace.done(&a);
        assert_eq!(pace.wait(&a), ms(1000));
    }
}
