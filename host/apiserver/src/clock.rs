//! The only source of time: a fixed start plus the time elapsed on tokio's clock.
//!
//! With tokio's clock paused, the result is virtual time and identical in each run.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Clock that starts at a given moment and advances with `tokio::time`.
///
/// Clones share the same origin and therefore always agree.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// Returns a clock that reads `start` now.
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            origin: Instant::now(),
        }
    }

    /// Returns the current time; saturates at the largest representable timestamp.
    pub fn now(&self) -> Timestamp {
        self.start.checked_add(self.origin.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// Returns the tokio instant at which this clock reads `at`; a moment before the start maps to the start.
    pub fn instant_of(&self, at: Timestamp) -> Instant {
        let since_start = at.duration_since(self.start);
        self.origin + Duration::try_from(since_start).unwrap_or_default()
    }
}

/// Formats a timestamp as RFC 3339 with whole seconds, as Kubernetes writes `metav1.Time`.
pub fn rfc3339(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second())
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_advances_with_paused_time_only() {
        let start: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a timestamp");
        let clock = Clock::new(start);
        assert_eq!(clock.now(), start);
        tokio::time::sleep(Duration::from_millis(90_500)).await;
        assert_eq!(rfc3339(clock.now()), "2026-01-02T03:05:35Z");
        assert_eq!(clock.instant_of(clock.now()), Instant::now());
    }
}
