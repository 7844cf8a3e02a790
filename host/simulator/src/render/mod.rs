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

/// Formats milliseconds as a human-readable duration: `1m40s`, `2.5s`, `0s`.
pub fn duration(ms: i64) -> String {
    let (minutes, rest_ms) = (ms / 60_000, ms % 60_000);
    let (seconds, tenths) = (rest_ms / 1000, rest_ms % 1000 / 100);
    let seconds = if tenths == 0 {
        format!("{seconds}s")
    } else {
        format!("{seconds}.{tenths}s")
    };
    match (minutes, rest_ms / 100) {
        (0, _) => seconds,
        (minutes, 0) => format!("{minutes}m"),
        (minutes, _) => format!("{minutes}m{seconds}"),
    }
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
    }
}
