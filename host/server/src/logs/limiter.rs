//! Limits on repeated failures in the log and in events.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Interval at which a continuing failure is written again.
pub(super) const INTERVAL: Duration = Duration::from_mins(10);
/// Time without a repetition after which a failure counts as resolved, so that its next occurrence is written. Longer
/// than the longest back-off of a retry, which is one minute.
pub(super) const QUIET: Duration = Duration::from_mins(2);
/// Maximum number of new failures that are written within [`BURST`].
pub(super) const BURST_LINES_MAX: usize = 20;
/// Time that the maximum of new failures applies to.
pub(super) const BURST: Duration = Duration::from_secs(1);
/// Maximum number of failures that are remembered. Messages may contain names of objects.
const REMEMBERED_MAX: usize = 1_000;

/// Failures that were written, and counts of those that were not.
#[derive(Default)]
pub(crate) struct Limiter(Mutex<State>);

#[derive(Default)]
struct State {
    failures: HashMap<u64, Failure>,
    burst: Option<Burst>,
    others: u64,
}

struct Failure {
    written: Instant,
    last: Instant,
    repeats: u64,
}

struct Burst {
    start: Instant,
    lines: usize,
}

/// Numbers of failures that were suppressed before a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suppressed {
    /// Repetitions of the failure since it was last written.
    pub(super) repeats: u64,
    /// Failures with other messages since any failure was written.
    pub(super) others: u64,
}

impl Limiter {
    /// Returns the counts for the line of a failure, or `None` if the failure is suppressed. `key` identifies the
    /// message.
    pub(crate) fn admit(&self, key: u64, now: Instant) -> Option<Suppressed> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let repeats = if let Some(failure) = state.failures.get_mut(&key) {
            failure.repeat(now)?
        } else {
            state.add(key, now)?;
            0
        };
        Some(Suppressed {
            repeats,
            others: std::mem::take(&mut state.others),
        })
    }
}

impl Failure {
    /// Counts a repetition. Returns the number of suppressed ones if this one is due.
    fn repeat(&mut self, now: Instant) -> Option<u64> {
        let was_quiet = now.duration_since(self.last) >= QUIET;
        self.last = now;
        if was_quiet || now.duration_since(self.written) >= INTERVAL {
            self.written = now;
            return Some(std::mem::take(&mut self.repeats));
        }
        self.repeats += 1;
        None
    }
}

impl State {
    /// Adds a new failure. Returns `None` and counts it if there are too many.
    fn add(&mut self, key: u64, now: Instant) -> Option<()> {
        let current = self
            .burst
            .take()
            .filter(|burst| now.duration_since(burst.start) < BURST);
        let burst = self.burst.insert(current.unwrap_or(Burst { start: now, lines: 0 }));
        if self.failures.len() >= REMEMBERED_MAX {
            self.failures
                .retain(|_, failure| now.duration_since(failure.last) < QUIET);
        }
        if burst.lines >= BURST_LINES_MAX || self.failures.len() >= REMEMBERED_MAX {
            self.others += 1;
            return None;
        }
        burst.lines += 1;
        self.failures.insert(
            key,
            Failure {
                written: now,
                last: now,
                repeats: 0,
            },
        );
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn counts(repeats: u64, others: u64) -> Suppressed {
        Suppressed { repeats, others }
    }

    #[test]
    fn a_continuing_failure_is_written_once_per_interval_with_its_count() {
        let (limiter, start) = (Limiter::default(), Instant::now());
        let step = Duration::from_mins(1);
        let lines: Vec<_> = (0..25).map(|minute| limiter.admit(1, start + step * minute)).collect();
        assert_eq!(
            lines.iter().flatten().copied().collect::<Vec<_>>(),
            [counts(0, 0), counts(9, 0), counts(9, 0)]
        );
        assert!(lines[10].is_some() && lines[20].is_some(), "{lines:?}");
    }

    #[test]
    fn a_failure_that_returns_after_a_quiet_time_is_written_at_once() {
        let (limiter, start) = (Limiter::default(), Instant::now());
        assert_eq!(limiter.admit(1, start), Some(counts(0, 0)));
        assert_eq!(limiter.admit(1, start + QUIET / 2), None);
        assert_eq!(limiter.admit(2, start + QUIET / 2), Some(counts(0, 0)));
        assert_eq!(limiter.admit(1, start + QUIET / 2 + QUIET), Some(counts(1, 0)));
    }

    #[test]
    fn a_storm_of_failures_does_not_flood_the_log() {
        let (limiter, start) = (Limiter::default(), Instant::now());
        let storm = (0..100).filter(|key| limiter.admit(*key, start).is_some()).count();
        assert_eq!(storm, BURST_LINES_MAX);
        assert_eq!(limiter.admit(200, start + BURST), Some(counts(0, 80)));
        assert_eq!(limiter.admit(201, start + BURST), Some(counts(0, 0)));
    }

    #[test]
    fn failures_without_end_are_not_remembered_without_end() {
        let (limiter, start) = (Limiter::default(), Instant::now());
        // Five new failures per second fill the memory before any of them counts as resolved.
        let at = |number: u64| start + Duration::from_millis(100 * number);
        let lines = (0..1_100).filter(|key| limiter.admit(*key, at(*key)).is_some()).count();
        assert_eq!(lines, REMEMBERED_MAX);
        assert_eq!(limiter.0.lock().unwrap().failures.len(), REMEMBERED_MAX);
        assert_eq!(limiter.admit(5_000, at(1_100) + QUIET), Some(counts(0, 100)));
        assert_eq!(limiter.0.lock().unwrap().failures.len(), 1);
    }
}
