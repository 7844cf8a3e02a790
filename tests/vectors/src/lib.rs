//! Runs files of cases that were made by executing Karmada's own code, and says where we differ.
//!
//! The formats are described at the heads of [`scheduler`] and [`interpreter`]. A case is input and expected output; nothing here knows
//! any rule. `cargo xtask vectors` runs a file from the command line, `tests/vectors.rs` runs the file that is kept
//! beside this crate.

mod cases;
mod federation;
pub mod interpreter;
pub mod scheduler;
mod units;

use std::fmt;

use serde_json::Value;

/// What running a file came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// How many cases came out as expected.
    pub passed: usize,
    /// The others, in the order of the file.
    pub failures: Vec<Failure>,
    /// What is worth knowing about the run: what was not run, and why.
    pub notes: Vec<String>,
}

/// A case that did not come out as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its name, or its list and number.
    pub case: String,
    /// What the file says, as far as it differs.
    pub expected: Value,
    /// What we say, as far as it differs.
    pub got: Value,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  expected {}\n  got      {}", self.case, self.expected, self.got)
    }
}

/// The failures, the notes, then one line of counts.
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
    /// Counts one case. `got` is the error text when the case could not be run.
    fn record(&mut self, case: impl Into<String>, expected: Value, got: Result<Value, String>) {
        let got = got.unwrap_or_else(|error| Value::String(format!("error: {error}")));
        if expected == got {
            self.passed += 1;
        } else {
            self.fail(case, expected, got);
        }
    }

    /// Notes a case that came out differently.
    fn fail(&mut self, case: impl Into<String>, expected: Value, got: Value) {
        self.failures.push(Failure { case: case.into(), expected, got });
    }
}

/// A file that is not one of vectors.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not JSON.
    #[error("not JSON")]
    Syntax(#[from] serde_json::Error),
    /// It is something else.
    #[error("the format is {found}, expected {expected:?}")]
    Format {
        /// What the file says.
        found: Value,
        /// What it should say.
        expected: &'static str,
    },
    /// It has a list that nobody knows how to run.
    #[error("unknown list {0:?}")]
    UnknownList(String),
}
