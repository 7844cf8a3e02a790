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
        // The reader of a pipe, such as `head`, has read enough.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {}", told(&error));
            ExitCode::from(BAD)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let kind = kind.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind());
        kind == Some(std::io::ErrorKind::BrokenPipe)
    })
}

/// Formats an error with its causes in one line, without repetitions.
pub(crate) fn told(error: &anyhow::Error) -> String {
    bulkhead_controllers::causes(error.as_ref())
}
