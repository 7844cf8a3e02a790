//! Output of all checks, as text and as JSON.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::finding::{Section, Severity, count};

/// Width at which text is wrapped, in characters.
const WIDTH: usize = 110;

/// Counts the findings of a severity.
fn number(sections: &[Section], severity: Severity) -> usize {
    sections
        .iter()
        .flat_map(|section| &section.findings)
        .filter(|finding| finding.severity == severity)
        .count()
}

/// Returns true if no check found an error.
pub(super) fn is_sound(sections: &[Section]) -> bool {
    number(sections, Severity::Error) == 0
}

/// Returns the results as JSON.
pub(super) fn data(about: &str, sections: &[Section]) -> Value {
    json!({
        "installation": about,
        "sound": is_sound(sections),
        "errors": number(sections, Severity::Error),
        "warnings": number(sections, Severity::Warning),
        "notes": number(sections, Severity::Note),
        "checks": sections,
    })
}

/// Formats the results for a terminal; the output stream strips colours if it is not one.
pub(super) fn text(about: &str, sections: &[Section]) -> String {
    let mut text = format!("{about}\n\n");
    let width = sections
        .iter()
        .map(|section| section.check.len())
        .max()
        .unwrap_or_default();
    for section in sections {
        let (sign, style) = if section.skipped && section.findings.is_empty() {
            ("-", Style::new())
        } else {
            sign(section.worst())
        };
        let _ = writeln!(
            text,
            "{style}{sign}{style:#} {:<width$}  {}",
            section.check, section.summary
        );
        let mut findings: Vec<_> = section.findings.iter().collect();
        findings.sort_by_key(|finding| finding.severity);
        for finding in findings {
            let (_, style) = sign_of(finding.severity);
            let word = word(finding.severity);
            wrapped(
                &mut text,
                &format!("    {style}{word:<7}{style:#} "),
                12,
                &format!("{}: {}", finding.place, finding.what),
            );
            for line in &finding.diff {
                let _ = writeln!(text, "              {line}");
            }
            if !finding.remedy.is_empty() {
                wrapped(&mut text, "            → ", 14, &finding.remedy);
            }
        }
    }
    let numbers = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let numbers = numbers
        .map(|(severity, word)| count(number(sections, severity), word))
        .join(", ");
    let verdict = if is_sound(sections) { "sound" } else { "not sound" };
    let _ = writeln!(text, "\n{verdict}: {numbers}");
    text
}

fn sign(worst: Option<Severity>) -> (&'static str, Style) {
    worst.map_or(("✓", AnsiColor::Green.on_default()), sign_of)
}

fn sign_of(severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Error => ("✗", AnsiColor::Red.on_default()),
        Severity::Warning => ("!", AnsiColor::Yellow.on_default()),
        Severity::Note => ("·", AnsiColor::Cyan.on_default()),
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Appends a paragraph after a head; continuation lines are indented. Words are not broken, so that commands can be
/// copied.
fn wrapped(text: &mut String, head: &str, indent: usize, paragraph: &str) {
    text.push_str(head);
    let mut column = indent;
    for (index, word) in paragraph.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}
