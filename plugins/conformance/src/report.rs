//! Outcomes of the checks, formatted for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use bulkhead_core::call::CallKind;
use serde::Serialize;

/// Outcomes of all checks of one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// ID of the plugin.
    pub plugin: String,
    /// Checks in execution order.
    pub checks: Vec<Check>,
    /// Calls that the plugin answers, with the number of cases that make them.
    pub coverage: Vec<Coverage>,
}

/// Calls that a plugin answers, and the number of its cases that make them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Call kind.
    pub kind: CallKind,
    /// `apiVersion` and kind of the objects, separated by a space; absent for every kind, or for calls without an
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_kind: Option<String>,
    /// Number of cases.
    pub cases: usize,
    /// Number of cases by interpreter operation, under the name of its Lua function; empty for other calls.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<&'static str, usize>,
}

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Sentence that holds if the check passed: a law, or the name of a case.
    pub name: String,
    /// Call kind under test; absent if the check concerns no call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CallKind>,
    /// Outcome of the check.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Total steps of all calls of the check; 0 if the engine does not meter.
    pub steps: u64,
}

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The check holds.
    Passed,
    /// The check does not hold.
    Failed {
        /// Finding and the input that caused it.
        why: String,
    },
    /// The check was not made, which is not a failure.
    Skipped {
        /// Missing prerequisite.
        why: String,
    },
}

impl Outcome {
    /// Returns a failure.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into() }
    }

    /// Returns the outcome of a check that was not made.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }
}

impl Check {
    /// True if the check failed.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }

    /// True if the check was skipped.
    pub fn skipped(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped { .. })
    }
}

impl Report {
    /// True if no check failed and at least one passed. A report without passed checks proves nothing about the
    /// plugin.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none() && self.checks.iter().any(|check| check.outcome == Outcome::Passed)
    }

    /// Returns the failed checks.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.failed())
    }

    /// Returns the report as JSON:
    /// `{"plugin": …, "passed": …, "checks": [{"name", "kind", "outcome", "why", "steps"}], "coverage": [{"kind",
    /// "objectKind", "cases", "operations"}]}`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            plugin: &'a str,
            passed: bool,
            checks: &'a [Check],
            coverage: &'a [Coverage],
        }
        let document = Document {
            plugin: &self.plugin,
            passed: self.passed(),
            checks: &self.checks,
            coverage: &self.coverage,
        };
        serde_json::to_string_pretty(&document).expect("strings and numbers are JSON")
    }
}

/// Writes one line per check, one per call that the plugin answers, and a summary line. The reason of a failure is indented below its check.
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
            let steps = if check.steps == 0 {
                String::new()
            } else {
                format!(" ({} steps)", check.steps)
            };
            writeln!(f, "  {word:<7} {kind}{}{steps}", check.name)?;
            for line in why.iter().flat_map(|why| why.lines()) {
                writeln!(f, "          {line}")?;
            }
        }
        for coverage in &self.coverage {
            writeln!(f, "  cases   {coverage}")?;
        }
        let failed = self.failures().count();
        let skipped = self.checks.iter().filter(|check| check.skipped()).count();
        writeln!(
            f,
            "{} passed, {failed} failed, {skipped} skipped",
            self.checks.len() - failed - skipped
        )
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(object_kind) = &self.object_kind {
            write!(f, " of {object_kind}")?;
        }
        let noun = if self.cases == 1 { "case" } else { "cases" };
        match self.cases {
            0 => write!(f, ": no cases")?,
            cases => write!(f, ": {cases} {noun}")?,
        }
        let operations: Vec<_> = self
            .operations
            .iter()
            .map(|(name, cases)| format!("{name} {cases}"))
            .collect();
        if operations.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", operations.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, outcome: Outcome) -> Check {
        Check {
            name: name.to_owned(),
            kind: Some(CallKind::Health),
            outcome,
            steps: 7,
        }
    }

    #[test]
    fn a_report_passes_when_something_passed_and_nothing_failed() {
        let passed = |outcomes: &[Outcome]| {
            let checks = outcomes.iter().map(|outcome| check("c", outcome.clone())).collect();
            Report {
                plugin: "p".to_owned(),
                checks,
                coverage: Vec::new(),
            }
            .passed()
        };
        assert!(passed(&[Outcome::Passed, Outcome::skipped("no loader")]));
        assert!(!passed(&[Outcome::Passed, Outcome::failed("wrong")]));
        assert!(!passed(&[Outcome::skipped("no loader")]));
        assert!(!passed(&[]));
    }

    #[test]
    fn people_read_a_line_for_each_check() {
        let checks = vec![check("a", Outcome::Passed), check("b", Outcome::failed("one\ntwo")), {
            Check {
                kind: None,
                steps: 0,
                ..check("c", Outcome::skipped("no schema"))
            }
        }];
        let report = Report {
            plugin: "freeze (wasm)".to_owned(),
            checks,
            coverage: Vec::new(),
        };
        let expected = "freeze (wasm)\n  ok      health: a (7 steps)\n  FAILED  health: b (7 steps)\n          one\n          \
                        two\n  skipped c\n          no schema\n1 passed, 1 failed, 1 skipped\n";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn programs_read_json() {
        let checks = vec![check("a", Outcome::Passed), check("b", Outcome::failed("wrong"))];
        let json = Report {
            plugin: "p".to_owned(),
            checks,
            coverage: Vec::new(),
        }
        .to_json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({"plugin": "p", "passed": false, "checks": [
            {"name": "a", "kind": "health", "outcome": "passed", "steps": 7},
            {"name": "b", "kind": "health", "outcome": "failed", "why": "wrong", "steps": 7},
        ], "coverage": []});
        assert_eq!(json, expected);
    }
}
