//! What came of the checks, for people and for programs.

use std::fmt;

use bulkhead_core::call::CallKind;
use serde::Serialize;

/// What came of every check of one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Which plugin.
    pub plugin: String,
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
}

/// One check and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A sentence that holds if the check passed: a law, or the name of a case.
    pub name: String,
    /// The kind of call that it is about; absent when it is about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CallKind>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What all calls of the check cost together; 0 when the engine does not meter.
    pub steps: u64,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed {
        /// What was found, and on which input.
        why: String,
    },
    /// It could not be made, which is no failure.
    Skipped {
        /// What was missing.
        why: String,
    },
}

impl Outcome {
    /// A failure.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into() }
    }

    /// A check that could not be made.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }
}

impl Check {
    /// Whether it failed.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }

    /// Whether it could not be made.
    pub fn skipped(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped { .. })
    }
}

impl Report {
    /// Whether no check failed, and at least one passed: a report without any says nothing good about a plugin.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none() && self.checks.iter().any(|check| check.outcome == Outcome::Passed)
    }

    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.failed())
    }

    /// As JSON: `{"plugin": …, "passed": …, "checks": [{"name", "kind", "outcome", "why", "steps"}]}`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Told<'a> {
            plugin: &'a str,
            passed: bool,
            checks: &'a [Check],
        }
        let told = Told { plugin: &self.plugin, passed: self.passed(), checks: &self.checks };
        serde_json::to_string_pretty(&told).expect("strings and numbers are JSON")
    }

    /// As JUnit XML, one test case per check.
    pub fn to_junit(&self) -> String {
        crate::junit::xml(self)
    }
}

/// One line per check, and a last one that sums up. Why something failed is indented below it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.plugin)?;
        for check in &self.checks {
            let (word, why) = match &check.outcome {
                Outcome::Passed => ("ok", None),
                Outcome::Failed { why } => ("FAILED", Some(why)),
                Outcome::Skipped { why } => ("skipped", Some(why)),
            };
            let kind = check.kind.map_or_else(String::new, |kind| format!("{kind}: "));
            let steps = if check.steps == 0 { String::new() } else { format!(" ({} steps)", check.steps) };
            writeln!(f, "  {word:<7} {kind}{}{steps}", check.name)?;
            for line in why.iter().flat_map(|why| why.lines()) {
                writeln!(f, "          {line}")?;
            }
        }
        let failed = self.failures().count();
        let skipped = self.checks.iter().filter(|check| check.skipped()).count();
        writeln!(f, "{} passed, {failed} failed, {skipped} skipped", self.checks.len() - failed - skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, outcome: Outcome) -> Check {
        Check { name: name.to_owned(), kind: Some(CallKind::Health), outcome, steps: 7 }
    }

    #[test]
    fn a_report_passes_when_something_passed_and_nothing_failed() {
        let passed = |outcomes: &[Outcome]| {
            let checks = outcomes.iter().map(|outcome| check("c", outcome.clone())).collect();
            Report { plugin: "p".to_owned(), checks }.passed()
        };
        assert!(passed(&[Outcome::Passed, Outcome::skipped("no loader")]));
        assert!(!passed(&[Outcome::Passed, Outcome::failed("wrong")]));
        assert!(!passed(&[Outcome::skipped("no loader")]));
        assert!(!passed(&[]));
    }

    #[test]
    fn people_read_a_line_for_each_check() {
        let checks = vec![check("a", Outcome::Passed), check("b", Outcome::failed("one\ntwo")), {
            Check { kind: None, steps: 0, ..check("c", Outcome::skipped("no schema")) }
        }];
        let report = Report { plugin: "freeze (wasm)".to_owned(), checks };
        let expected = "freeze (wasm)\n  ok      health: a (7 steps)\n  FAILED  health: b (7 steps)\n          one\n          \
                        two\n  skipped c\n          no schema\n1 passed, 1 failed, 1 skipped\n";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn programs_read_json() {
        let checks = vec![check("a", Outcome::Passed), check("b", Outcome::failed("wrong"))];
        let json = Report { plugin: "p".to_owned(), checks }.to_json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({"plugin": "p", "passed": false, "checks": [
            {"name": "a", "kind": "health", "outcome": "passed", "steps": 7},
            {"name": "b", "kind": "health", "outcome": "failed", "why": "wrong", "steps": 7},
        ]});
        assert_eq!(json, expected);
    }
}
