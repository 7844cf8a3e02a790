//! Findings of checks.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// A part of the installation does not work.
    Error,
    /// It works now, but will fail later or does less than requested.
    Warning,
    /// Information only.
    Note,
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Severity of the finding.
    pub(super) severity: Severity,
    /// Object, file, verb or setting that the finding is about.
    #[serde(rename = "where")]
    pub(super) place: String,
    /// Description of the problem.
    pub(super) what: String,
    /// Remedy; empty if no action is needed.
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
    /// Lines of a diff; empty if the finding is about no change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) diff: Vec<String>,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Section {
    /// Name of the check.
    pub(super) check: &'static str,
    /// True if there was nothing to check, or no means to check it.
    #[serde(skip)]
    pub(super) skipped: bool,
    /// Short description of the checked objects.
    pub(super) summary: String,
    /// Findings, in the order of the facts.
    pub(super) findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(check: &'static str) -> Self {
        Self {
            check,
            skipped: false,
            summary: String::new(),
            findings: Vec::new(),
        }
    }

    pub(super) fn error(&mut self, place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Error, place, what, remedy);
    }

    pub(super) fn warning(&mut self, place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Warning, place, what, remedy);
    }

    pub(super) fn note(&mut self, place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Note, place, what, remedy);
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        place: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (place, what, remedy) = (place.into(), what.into(), remedy.into());
        self.findings.push(Finding {
            severity,
            place,
            what,
            remedy,
            diff: Vec::new(),
        });
    }

    /// Adds a diff to the last finding.
    pub(super) fn with_diff(&mut self, lines: Vec<String>) {
        if let Some(finding) = self.findings.last_mut() {
            finding.diff = lines;
        }
    }

    /// Returns the highest severity among the findings.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).min()
    }
}

/// Formats a count with its noun: `1 verb`, `2 verbs`.
pub(super) fn count(number: usize, word: &str) -> String {
    let ending = match (number, word.strip_suffix('y')) {
        (1, _) => return format!("1 {word}"),
        (_, Some(stem)) if !stem.ends_with('a') => return format!("{number} {stem}ies"),
        _ => "s",
    };
    format!("{number} {word}{ending}")
}
