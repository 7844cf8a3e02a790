//! Runner for recorded cases of the scheduler. The tests of `bulkhead-core` include it too, so it needs no other crate
//! than core and the built-in policies.

mod cases;
mod federation;
mod units;

use std::fmt;

use serde_json::Value;

/// Runs one case of a table. Returns the result in the form that the file expects, or why the case could not be run.
pub(crate) type Table = fn(&Value) -> Result<Value, String>;

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
    pub(crate) fn record(&mut self, case: impl Into<String>, expected: Value, got: Result<Value, String>) {
        let got = got.unwrap_or_else(|error| Value::String(format!("error: {error}")));
        if expected == got {
            self.passed += 1;
        } else {
            self.fail(case, expected, got);
        }
    }

    /// Records a failed case.
    pub(crate) fn fail(&mut self, case: impl Into<String>, expected: Value, got: Value) {
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

/// Runs every case of a file of this format. `table` returns the function of a list of calls that this module does not
/// know, if any.
pub(crate) fn run(
    file: &Value,
    format: &'static str,
    table: impl Fn(&str) -> Option<Table>,
) -> Result<Report, FileError> {
    let found = file.get("format").cloned().unwrap_or_default();
    if found != format {
        return Err(FileError::Format {
            found,
            expected: format,
        });
    }
    let mut report = Report::default();
    for (name, list) in file.as_object().into_iter().flatten() {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        match name.as_str() {
            "format" | "source" | "doc" => {}
            "cases" | "randomCases" => list.iter().for_each(|case| cases::run(case, &mut report)),
            _ => match name
                .strip_prefix("unit.")
                .and_then(|name| units::table(name).or_else(|| table(name)))
            {
                Some(run) => list.iter().enumerate().for_each(|(index, case)| {
                    let label = case.get("name").and_then(Value::as_str);
                    let label = label.map_or_else(|| format!("{name}[{index}]"), |label| format!("{name}/{label}"));
                    report.record(label, case.get("expected").cloned().unwrap_or_default(), run(case));
                }),
                None => return Err(FileError::UnknownList(name.clone())),
            },
        }
    }
    Ok(report)
}
