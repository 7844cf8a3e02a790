//! Rendering of reports as text, JSON and HTML.

mod html;
pub mod page;
mod schedule;
mod svg;
mod text;
mod what_if;

use crate::report::Report;

pub use html::html;
pub use schedule::schedule;
pub use text::{TextOptions, text};
pub use what_if::{what_if, what_if_sections};

/// Formats the number of interpreters that a table leaves out, with a hint where to find them.
fn hidden_interpreters(count: usize, hint: &str) -> String {
    let (plural, verb) = if count == 1 { ("", "is") } else { ("s", "are") };
    format!("{count} interpreter{plural} without calls {verb} not shown; {hint}")
}

/// Renders the report as pretty-printed JSON with a trailing newline.
pub fn json(report: &Report) -> String {
    // A report is plain data with string keys, so serialization cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}

/// Formats milliseconds as a human-readable duration: `1m40s`, `2.5s`, `0s`, `3h20m`. From a day on, without minutes:
/// `2d4h`.
pub fn duration(ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (days, rest_ms) = (ms / DAY_MS, ms % DAY_MS);
    let (hours, rest_ms) = (rest_ms / 3_600_000, rest_ms % 3_600_000);
    let (minutes, rest_ms) = (rest_ms / 60_000, rest_ms % 60_000);
    let (seconds, tenths) = (rest_ms / 1000, rest_ms % 1000 / 100);
    let part = |value: i64, unit: &str| (value != 0).then(|| format!("{value}{unit}"));
    let seconds = if tenths == 0 {
        part(seconds, "s")
    } else {
        Some(format!("{seconds}.{tenths}s"))
    };
    let parts = if days == 0 {
        [part(hours, "h"), part(minutes, "m"), seconds]
    } else {
        [part(days, "d"), part(hours, "h"), None]
    };
    let text: String = parts.into_iter().flatten().collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{duration, hidden_interpreters};

    #[test]
    fn hidden_interpreters_are_counted() {
        assert_eq!(
            hidden_interpreters(1, "see x"),
            "1 interpreter without calls is not shown; see x"
        );
        assert_eq!(
            hidden_interpreters(27, "see x"),
            "27 interpreters without calls are not shown; see x"
        );
    }

    #[test]
    fn durations_are_short() {
        let check = |ms, expected: &str| assert_eq!(duration(ms), expected);
        check(0, "0s");
        check(2_500, "2.5s");
        check(60_000, "1m");
        check(100_000, "1m40s");
        check(99_005, "1m39s");
        check(99_850, "1m39.8s");
        check(600_000, "10m");
        check(3_600_000, "1h");
        check(3_603_000, "1h3s");
        check(12_000_000, "3h20m");
        check(187_259_900, "2d4h");
    }
}
