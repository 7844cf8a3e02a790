//! What a check found.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It does not work.
    Error,
    /// It works and will not, or does less than somebody asked for.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// How bad it is.
    pub(super) severity: Severity,
    /// Which object, file, verb or setting.
    #[serde(rename = "where")]
    pub(super) place: String,
    /// What is the matter.
    pub(super) what: String,
    /// What to do; empty where nothing need be done.
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
}

/// What one check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Section {
    /// Name of the check.
    pub(super) check: &'static str,
    /// Whether there was nothing to look at, or nothing to look at it with.
    #[serde(skip)]
    pub(super) skipped: bool,
    /// What was looked at, in a few words.
    pub(super) summary: String,
    /// What was found, in the order of the facts.
    pub(super) findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(check: &'static str) -> Self {
        Self { check, skipped: false, summary: String::new(), findings: Vec::new() }
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
        self.findings.push(Finding { severity, place, what, remedy });
    }

    /// The worst that was found.
    pub(super) fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).min()
    }
}

/// One word, and several of it: `1 verb`, `2 verbs`.
pub(super) fn count(number: usize, word: &str) -> String {
    let ending = match (number, word.strip_suffix('y')) {
        (1, _) => return format!("1 {word}"),
        (_, Some(stem)) => return format!("{number} {stem}ies"),
        _ => "s",
    };
    format!("{number} {word}{ending}")
}
