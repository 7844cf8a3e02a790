//! Ages in the short format of kubectl.

use jiff::Timestamp;
use serde_json::Value;

use crate::json::text;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age of an object.
pub(super) fn of(object: &Value, now: Timestamp) -> String {
    at(text(object, "/metadata/creationTimestamp"), now)
}

/// Returns the time since a moment; `<unknown>` if it cannot be parsed.
pub(super) fn at(moment: &str, now: Timestamp) -> String {
    moment
        .parse()
        .map_or_else(|_| "<unknown>".to_owned(), |at| since(at, now))
}

/// Returns the time since a moment.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> String {
    span(now.as_second() - at.as_second())
}

/// Formats a number of seconds with at most two units; the second one only for short spans (Kubernetes:
/// `apimachinery/pkg/util/duration.HumanDuration`).
pub(super) fn span(seconds: i64) -> String {
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{big_unit}"),
        _ => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_short_as_kubectl_makes_them() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (11_100, "3h5m"),
            (30_000, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (700_000, "8d"),
            (63_072_000, "2y"),
        ] {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }
}
