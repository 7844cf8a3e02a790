//! Errors of arguments that are valid individually but not in combination.

use std::error::Error;
use std::fmt;

/// Error of an argument, from the command line or from a file.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageError {
    /// Name of the argument, without hyphens.
    pub argument: String,
    text: String,
}

impl UsageError {
    /// Creates an error. `why` states the valid values.
    pub(super) fn new(argument: &str, why: impl fmt::Display) -> Self {
        Self {
            argument: argument.to_owned(),
            text: format!("{argument}: {why}"),
        }
    }

    /// Creates an error from a text that begins with the name of the argument.
    pub(super) fn of_text(text: String) -> Self {
        let argument = text.split([' ', ':']).next().unwrap_or_default().to_owned();
        Self { argument, text }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for UsageError {}
