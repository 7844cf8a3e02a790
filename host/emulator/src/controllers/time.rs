//! Arithmetic on timestamps.

use std::time::Duration;

use jiff::Timestamp;

/// Returns `at` plus `duration`, saturating.
pub(super) fn add(at: Timestamp, duration: Duration) -> Timestamp {
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}
