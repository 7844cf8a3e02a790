//! How commands end that answer yes or no.

use std::io::Write;
use std::process::ExitCode;

/// The answer is no: something was found wanting.
const NO: u8 = 1;
/// There is no answer: the input was bad.
const BAD: u8 = 2;

/// 0 for yes, 1 for no, 2 after an error, which is printed.
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

/// An error with its causes, each once, in one line.
pub(crate) fn told(error: &anyhow::Error) -> String {
    bulkhead_controllers::causes(error.as_ref())
}
