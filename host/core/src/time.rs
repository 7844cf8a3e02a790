//! Time as a value; no clock is read.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Instant in UTC. The wire format is RFC 3339 with second precision, as for `metav1.Time`. A value read back from
/// the API can therefore be up to one second earlier than the value in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(jiff::Timestamp);

impl Time {
    /// Wraps a timestamp.
    pub fn new(timestamp: jiff::Timestamp) -> Self {
        Self(timestamp)
    }

    /// Returns the instant `millis` milliseconds after the Unix epoch; out-of-range values saturate.
    pub fn from_millis(millis: i64) -> Self {
        let fallback = if millis < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(fallback))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Returns the wrapped timestamp.
    pub fn timestamp(self) -> jiff::Timestamp {
        self.0
    }

    /// Returns this instant plus `seconds`.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_millis(self.as_millis().saturating_add(seconds.saturating_mul(1000)))
    }

    /// Returns the milliseconds from `earlier` to `self`; negative if `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> i64 {
        self.as_millis() - earlier.as_millis()
    }

    /// Truncates this instant to whole seconds, which matches its value after a round trip through the API.
    pub fn truncated(self) -> Self {
        Self::from_millis(self.as_millis().div_euclid(1000) * 1000)
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(timestamp: jiff::Timestamp) -> Self {
        Self(timestamp)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn the_wire_form_has_whole_seconds() {
        let time = Time::from_millis(1_700_000_000_999);
        assert_eq!(
            serde_json::to_string(&time).ok().as_deref(),
            Some("\"2023-11-14T22:13:20Z\"")
        );
        assert_eq!(
            serde_json::from_str::<Time>("\"2023-11-14T22:13:20Z\"").ok(),
            Some(time.truncated())
        );
    }
}
