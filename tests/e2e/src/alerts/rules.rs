//! Alerting rules of the chart, with times that a test can wait for.

use std::fmt::Write as _;

/// Path of the rules, from the root of the workspace.
pub(super) const PATH: &str = "host/deploy/chart/monitoring/alerts.yaml";

/// Divisor of the times for which an expression must hold until its alert fires (`for:`).
const HOLD_DIVISOR: u64 = 60;
/// Divisor of the ranges of `rate` and `increase`. It is smaller, because a range must have several scrapes.
const RANGE_DIVISOR: u64 = 20;

/// Returns the names of the alerts, in order.
pub(super) fn names(rules: &str) -> Vec<&str> {
    let lines = rules.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix("- alert: ")).collect()
}

/// Returns the rules with shorter times: each `for:` is a sixtieth, and each range a twentieth. So 15 minutes of
/// `for:` are 15 s, and a range of 5 minutes is 15 s. Expressions, thresholds and annotations stay as they are.
pub(super) fn shortened(rules: &str) -> String {
    let mut out = String::new();
    for line in rules.lines() {
        let hold = line.split_once("for: ").filter(|(indent, _)| indent.trim().is_empty());
        if let Some((indent, hold_s)) = hold.and_then(|(indent, hold)| Some((indent, seconds(hold)?))) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{indent}for: {}s", hold_s.div_ceil(HOLD_DIVISOR));
        } else {
            shorten_ranges(line, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Appends a line with shorter ranges, such as `[15s]` in place of `[5m]`.
fn shorten_ranges(line: &str, out: &mut String) {
    let mut parts = line.split('[');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push('[');
        let range = part.split_once(']');
        if let Some((range_s, rest)) = range.and_then(|(range, rest)| Some((seconds(range)?, rest))) {
            let _ = write!(out, "{}s]{rest}", range_s.div_ceil(RANGE_DIVISOR));
        } else {
            out.push_str(part);
        }
    }
}

/// Returns a duration of Prometheus with one unit in seconds, such as 300 of `5m`.
fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let unit_s = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return None,
    };
    Some(number * unit_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "groups:\n- name: bulkhead.process\n  rules:\n  - alert: BulkheadDown\n    expr: 'absent(up{job=\"bulkhead\"} == 1)'\n    for: 15m\n    annotations:\n      description: for: nothing in [brackets]\n  - alert: BulkheadSlow\n    expr: 'rate(a[5m]) / increase(b[1h]) > 1'\n    for: 0m\n";

    #[test]
    fn only_times_are_shortened() {
        let expected = RULES
            .replace("for: 15m", "for: 15s")
            .replace("[5m]", "[15s]")
            .replace("[1h]", "[180s]")
            .replace("for: 0m", "for: 0s");
        assert_eq!(shortened(RULES), expected);
        assert_eq!(names(RULES), ["BulkheadDown", "BulkheadSlow"]);
    }
}
