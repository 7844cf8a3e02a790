//! Health history of an application on each cluster: the timer of application failover.
//!
//! The history is stored in an annotation of the binding. The status would be a better place, but an API server with
//! Karmada's CRDs drops unknown fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Binding;
use crate::time::Time;

/// Annotation of a binding: health history of its application as JSON, by cluster.
pub const HEALTH_HISTORY: &str = "failover.bulkhead.dev/application-health";

/// Health history by target cluster.
pub type HealthHistories = BTreeMap<String, HealthHistory>;

/// Health history of an application on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthHistory {
    /// Time of the first report; preconditions count from here.
    pub first_seen: Time,
    /// True if the application has been healthy at least once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Start of the current unhealthy period; absent while the timer is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_since: Option<Time>,
    /// Total length in seconds of earlier unhealthy periods since the application was last healthy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unhealthy_seconds: i64,
}

fn is_zero(seconds: &i64) -> bool {
    *seconds == 0
}

/// Returns the next whole second, because the API stores no fractions. Rounding up tolerates slightly too long;
/// rounding down would evict too early.
fn next_second(now: Time) -> Time {
    Time::from_millis(now.as_millis().saturating_add(999)).truncated()
}

impl HealthHistory {
    /// Creates the history at the first report.
    pub fn first(now: Time) -> Self {
        Self {
            first_seen: next_second(now),
            settled: false,
            unhealthy_since: None,
            unhealthy_seconds: 0,
        }
    }

    /// Resets the timer after a healthy report.
    #[must_use]
    pub fn healthy(self) -> Self {
        Self {
            settled: true,
            unhealthy_since: None,
            unhealthy_seconds: 0,
            ..self
        }
    }

    /// Pauses the timer after an inconclusive report. Only time in which the application is known to be unhealthy
    /// counts, and only a healthy report resets it (Karmada issue 7431).
    #[must_use]
    pub fn paused(&self, now: Time) -> Self {
        let unhealthy_seconds = self.unhealthy_ms(now) / 1000;
        Self {
            unhealthy_since: None,
            unhealthy_seconds,
            ..self.clone()
        }
    }

    /// Starts or continues the timer after an unhealthy report. A start time in the future, which a clock that was
    /// set back can cause, is replaced by `now`.
    #[must_use]
    pub fn unhealthy(self, now: Time) -> Self {
        let start = next_second(now);
        let since = self.unhealthy_since.map_or(start, |since| since.min(start));
        Self {
            unhealthy_since: Some(since),
            ..self
        }
    }

    /// Returns the total time of known unhealthiness, in milliseconds.
    pub fn unhealthy_ms(&self, now: Time) -> i64 {
        let running = self.unhealthy_since.map_or(0, |since| now.millis_since(since).max(0));
        self.unhealthy_seconds
            .max(0)
            .saturating_mul(1000)
            .saturating_add(running)
    }
}

/// Reads the history of a binding. A malformed annotation counts as absent, which restarts the timer.
pub fn read(binding: &Binding) -> HealthHistories {
    let text = binding.annotations.get(HEALTH_HISTORY);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn karmada_7431_unknown_stops_the_clock_and_only_healthy_sets_it_back() {
        let seen = HealthHistory::first(at(0)).unhealthy(at(10));
        assert_eq!(seen.unhealthy_ms(at(40)), 30_000);
        let paused = seen.paused(at(40));
        assert_eq!(
            paused.unhealthy_ms(at(900)),
            30_000,
            "time of unknown health does not count"
        );
        let again = paused.unhealthy(at(100));
        assert_eq!(again.unhealthy_ms(at(130)), 60_000);
        assert_eq!(again.healthy().unhealthy_ms(at(130)), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_lets_nothing_expire() {
        let seen = HealthHistory::first(at(100)).unhealthy(at(100));
        assert_eq!(seen.unhealthy_ms(at(50)), 0);
        assert_eq!(seen.unhealthy(at(50)).unhealthy_since, Some(at(50)));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let health_histories =
            HealthHistories::from([("m1".to_owned(), HealthHistory::first(at(1)).healthy().unhealthy(at(7)))]);
        let text = serde_json::to_string(&health_histories).unwrap();
        let mut binding = Binding::default();
        binding.annotations.insert(HEALTH_HISTORY.to_owned(), text);
        assert_eq!(read(&binding), health_histories);
        binding.annotations.insert(HEALTH_HISTORY.to_owned(), "{".to_owned());
        assert_eq!(read(&binding), HealthHistories::new());
    }

    #[test]
    fn a_history_of_another_version_is_read() {
        // The first form that was written; fields that a later version adds are ignored.
        for text in [
            r#"{"m1":{"firstSeen":"2026-01-01T00:00:10Z","unhealthySeconds":30}}"#,
            r#"{"m1":{"firstSeen":"2026-01-01T00:00:10Z","settled":false,"unhealthySeconds":30,"restarts":4}}"#,
        ] {
            let mut binding = Binding::default();
            binding.annotations.insert(HEALTH_HISTORY.to_owned(), text.to_owned());
            let history = &read(&binding)["m1"];
            assert_eq!((history.settled, history.unhealthy_seconds), (false, 30), "{text}");
        }
    }
}
