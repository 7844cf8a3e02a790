//! What was seen of an application on each cluster: the clock of application failover.
//!
//! It is kept in an annotation of the binding. The status would be the better place, but an API server with
//! Karmada's CRDs drops fields that it does not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Binding;
use crate::mutation::{self, Mutation};
use crate::time::Time;

/// Annotation of a binding: what was seen of its application, as JSON, by cluster.
pub const HEALTH_MEMORY: &str = "failover.bulkhead.dev/application-health";

/// What was seen, by target cluster.
pub type HealthMemory = BTreeMap<String, Sighting>;

/// What was seen of an application on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// When a report first came; preconditions count from here.
    pub first_seen: Time,
    /// Whether it was healthy once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Since when it is unhealthy without a break; absent while the clock stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_since: Option<Time>,
    /// For how long it was unhealthy before that, since it last was healthy, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unhealthy_seconds: i64,
}

fn is_zero(seconds: &i64) -> bool {
    *seconds == 0
}

/// The next whole second, because the API keeps no fractions: a clock that starts too late tolerates too long,
/// one that starts too early evicts too soon.
fn next_second(now: Time) -> Time {
    Time::from_millis(now.as_millis().saturating_add(999)).truncated()
}

impl Sighting {
    /// The first report.
    pub fn first(now: Time) -> Self {
        Self { first_seen: next_second(now), settled: false, unhealthy_since: None, unhealthy_seconds: 0 }
    }

    /// A healthy report sets the clock back.
    #[must_use]
    pub fn healthy(self) -> Self {
        Self { settled: true, unhealthy_since: None, unhealthy_seconds: 0, ..self }
    }

    /// A report that says nothing stops the clock: only time in which the application was known to be unhealthy
    /// counts, and only knowing that it is healthy wipes that out (Karmada's issue 7431).
    #[must_use]
    pub fn paused(&self, now: Time) -> Self {
        let kept = !mutation::on(Mutation::Karmada7431);
        let unhealthy_seconds = if kept { self.unhealthy_ms(now) / 1000 } else { 0 };
        Self { unhealthy_since: None, unhealthy_seconds, ..self.clone() }
    }

    /// An unhealthy report starts the clock, or lets it run. A start that lies in the future, because a clock was
    /// set back, is now.
    #[must_use]
    pub fn unhealthy(self, now: Time) -> Self {
        let start = next_second(now);
        let since = self.unhealthy_since.map_or(start, |since| since.min(start));
        Self { unhealthy_since: Some(since), ..self }
    }

    /// For how long it is known to be unhealthy, in milliseconds.
    pub fn unhealthy_ms(&self, now: Time) -> i64 {
        let running = self.unhealthy_since.map_or(0, |since| now.millis_since(since).max(0));
        self.unhealthy_seconds.max(0).saturating_mul(1000).saturating_add(running)
    }
}

/// What is remembered about a binding. An annotation that cannot be read counts as none: the clock starts again.
pub fn read(binding: &Binding) -> HealthMemory {
    let text = binding.annotations.get(HEALTH_MEMORY);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn issue_7431_unknown_stops_the_clock_and_only_healthy_sets_it_back() {
        let seen = Sighting::first(at(0)).unhealthy(at(10));
        assert_eq!(seen.unhealthy_ms(at(40)), 30_000);
        let paused = seen.paused(at(40));
        assert_eq!(paused.unhealthy_ms(at(900)), 30_000, "time that nobody can tell about does not count");
        let again = paused.unhealthy(at(100));
        assert_eq!(again.unhealthy_ms(at(130)), 60_000);
        assert_eq!(again.healthy().unhealthy_ms(at(130)), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_lets_nothing_expire() {
        let seen = Sighting::first(at(100)).unhealthy(at(100));
        assert_eq!(seen.unhealthy_ms(at(50)), 0);
        assert_eq!(seen.unhealthy(at(50)).unhealthy_since, Some(at(50)));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let memory = HealthMemory::from([("m1".to_owned(), Sighting::first(at(1)).healthy().unhealthy(at(7)))]);
        let text = serde_json::to_string(&memory).unwrap();
        let mut binding = Binding::default();
        binding.annotations.insert(HEALTH_MEMORY.to_owned(), text);
        assert_eq!(read(&binding), memory);
        binding.annotations.insert(HEALTH_MEMORY.to_owned(), "{".to_owned());
        assert_eq!(read(&binding), HealthMemory::new());
    }
}
