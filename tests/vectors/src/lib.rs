//! Runner for case files that were recorded by executing Karmada's own code. It reports every difference.
//!
//! The heads of [`scheduler`] and [`interpreter`] describe the formats. A case consists of an input and the expected
//! output; this crate contains no rules of its own. `cargo xtask vectors` runs a file from the command line,
//! `tests/vectors.rs` runs the files committed in this crate.

mod cases;
mod federation;
pub mod interpreter;
pub mod scheduler;
mod units;

use std::fmt;

use serde_json::Value;

/// Result of running a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Number of cases with the expected outcome.
    pub passed: usize,
    /// Failed cases, in file order.
    pub failures: Vec<Failure>,
    /// Notes about the run, such as skipped cases with the reason.
    pub notes: Vec<String>,
}

/// A case with an unexpected outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Name of the case, or its list and number.
    pub case: String,
    /// Expected fields that differ.
    pub expected: Value,
    /// Actual values of these fields.
    pub got: Value,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n  expected {}\n  got      {}",
            self.case, self.expected, self.got
        )
    }
}

/// Writes the failures, the notes, then one line of counts.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.failures.len())
    }
}

impl Report {
    /// Records one case. `got` is the error text if the case could not be run.
    fn record(&mut self, case: impl Into<String>, expected: Value, got: Result<Value, String>) {
        let got = got.unwrap_or_else(|error| Value::String(format!("error: {error}")));
        if expected == got {
            self.passed += 1;
        } else {
            self.fail(case, expected, got);
        }
    }

    /// Records a failed case.
    fn fail(&mut self, case: impl Into<String>, expected: Value, got: Value) {
        self.failures.push(Failure {
            case: case.into(),
            expected,
            got,
        });
    }
}

/// Error of a file that is not a valid case file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is not JSON.
    #[error("not JSON")]
    Syntax(#[from] serde_json::Error),
    /// The file has another format.
    #[error("the format is {found}, expected {expected:?}")]
    Format {
        /// Format in the file.
        found: Value,
        /// Expected format.
        expected: &'static str,
    },
    /// The file has an unknown list.
    #[error("unknown list {0:?}")]
    UnknownList(String),
}
