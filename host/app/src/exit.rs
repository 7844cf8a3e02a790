//! Exit codes of commands that answer yes or no.

use std::io::Write;
use std::process::ExitCode;

/// Exit code of a negative answer: a check failed.
const NO: u8 = 1;
/// Exit code without an answer: the input was bad.
const BAD: u8 = 2;

/// Returns 0 for yes, 1 for no, and 2 for an error, which is printed.
pub(crate) fn code(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NO),
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {}", told(&error));
            ExitCode::from(BAD)
        }
    }
}

/// Formats an error with its causes in one line, without repetitions.
pub(crate) fn told(error: &anyhow::Error) -> String {
    bulkhead_controllers::causes(error.as_ref())
}
