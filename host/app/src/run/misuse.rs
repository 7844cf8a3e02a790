//! Arguments that are right each by itself and not together.

use std::error::Error;
use std::fmt;

/// What is wrong with an argument, whether it stands on the command line or in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    /// Its name, without hyphens.
    pub(crate) argument: String,
    text: String,
}

impl Misuse {
    /// `why` says what would be right.
    pub(super) fn new(argument: &str, why: impl fmt::Display) -> Self {
        Self { argument: argument.to_owned(), text: format!("{argument}: {why}") }
    }

    /// Of a text that begins with the name of the argument.
    pub(super) fn of_text(text: String) -> Self {
        let argument = text.split([' ', ':']).next().unwrap_or_default().to_owned();
        Self { argument, text }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Misuse {}
