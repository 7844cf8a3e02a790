//! Formats of texts that Kubernetes validates in custom resources. Other formats are only documentation.

use std::net::{Ipv4Addr, Ipv6Addr};

use k8s_openapi::ByteString;
use serde_json::json;

use super::pattern;

/// Number with a unit as Go's `time.ParseDuration` reads it, or in words as in `3 days`.
const DURATION: &str = r"^([+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)|[0-9]+\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?))$";
const EMAIL: &str = r"^[^\s@]+@[^\s@]+$";
const HOSTNAME: &str =
    r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?$";
const MAC: &str = r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$";
const URI: &str = r"^([a-zA-Z][a-zA-Z0-9+.-]*:[^\s]*|/[^\s]*)$";
const UUID: &str = r"^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$";

/// Returns true if a text has a format, and for formats that are not validated.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => pattern::matches(DURATION, text),
        "byte" => serde_json::from_value::<ByteString>(json!(text)).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "email" => pattern::matches(EMAIL, text),
        "hostname" => text.len() <= 255 && pattern::matches(HOSTNAME, text),
        "mac" => pattern::matches(MAC, text),
        "uri" => pattern::matches(URI, text),
        "uuid" => pattern::matches(UUID, text),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Ok(length) = length.parse::<u8>() else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && length <= 32) || (address.parse::<Ipv6Addr>().is_ok() && length <= 128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_kubernetes() {
        let cases = [
            ("date-time", "2026-01-01T00:00:00Z", "yesterday"),
            ("date", "2026-01-01", "2026-13-01"),
            ("duration", "1h30m", "1x"),
            ("duration", "3 days", "days"),
            ("byte", "YQ==", "*"),
            ("ipv4", "10.0.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0"),
            ("email", "a@example.org", "a"),
            ("hostname", "example.org", "-a"),
            ("mac", "00:00:5e:00:53:01", "00"),
            ("uri", "https://example.org", "example"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ];
        for (format, valid, invalid) in cases {
            assert!(fits(format, valid), "{format} {valid}");
            assert!(!fits(format, invalid), "{format} {invalid}");
        }
        assert!(fits("password", "anything"));
    }
}
