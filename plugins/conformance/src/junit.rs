//! JUnit XML for build servers.
//!
//! One suite per report and one test case per check. The document contains no times, because the suite reads no
//! clock. The cost of a check is the property `steps`.

use std::fmt::Write as _;

use crate::report::{Outcome, Report};

impl Report {
    /// Returns the report as JUnit XML, one test case per check.
    pub fn to_junit(&self) -> String {
        xml(self)
    }
}

fn xml(report: &Report) -> String {
    let failed = report.failures().count();
    let skipped = report.checks.iter().filter(|check| check.skipped()).count();
    let (plugin, tests) = (escaped(&report.plugin), report.checks.len());
    let counts = format!("tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\"");
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(xml, "{text}");
    };
    line(format!("<testsuites name=\"bulkhead conformance\" {counts}>"));
    line(format!("  <testsuite name=\"{plugin}\" {counts}>"));
    for check in &report.checks {
        let kind = check.kind.map_or("plugin", |kind| kind.as_str());
        line(format!(
            "    <testcase classname=\"{plugin}.{kind}\" name=\"{}\">",
            escaped(&check.name)
        ));
        line(format!(
            "      <properties><property name=\"steps\" value=\"{}\"/></properties>",
            check.steps
        ));
        match &check.outcome {
            Outcome::Passed => {}
            Outcome::Failed { why } => {
                let first = escaped(why.lines().next().unwrap_or_default());
                line(format!("      <failure message=\"{first}\">{}</failure>", escaped(why)));
            }
            Outcome::Skipped { why } => line(format!("      <skipped message=\"{}\"/>", escaped(why))),
        }
        line("    </testcase>".to_owned());
    }
    line("  </testsuite>".to_owned());
    line("</testsuites>".to_owned());
    xml
}

/// Escapes text for use in elements and attributes. Characters that XML 1.0 cannot represent, even escaped, become
/// the replacement character. White space is escaped because attribute normalization would turn it into blanks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::CallKind;

    use super::*;
    use crate::report::Check;

    #[test]
    fn nothing_that_a_plugin_says_breaks_the_document() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected);
        check("a < b && c > \"d\"", "a &lt; b &amp;&amp; c &gt; &quot;d&quot;");
        check("it's\ttwo\r\nlines", "it&apos;s&#9;two&#13;&#10;lines");
        check("\u{0}\u{1b}[31m\u{ffff}ü", "\u{fffd}\u{fffd}[31m\u{fffd}ü");
        check("]]>", "]]&gt;");
    }

    #[test]
    fn the_document_is_as_build_servers_expect() {
        let check = |name: &str, kind, outcome, steps| Check {
            name: name.to_owned(),
            kind,
            outcome,
            steps,
        };
        let checks = vec![
            check(
                "the same question gets the same answer",
                Some(CallKind::Health),
                Outcome::Passed,
                120,
            ),
            check(
                "case \"a\" <b>",
                Some(CallKind::Score),
                Outcome::failed("expected 1 & 2\ngot \u{7}"),
                3,
            ),
            check(
                "the schema accepts its examples",
                None,
                Outcome::skipped("no 'schema'"),
                0,
            ),
        ];
        let report = Report {
            plugin: "freeze & co (wasm)".to_owned(),
            checks,
            coverage: Vec::new(),
        };
        assert_eq!(xml(&report), include_str!("junit.golden.xml"));
    }
}
