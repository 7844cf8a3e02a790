//! Exit codes. They mean the same in every command.

use std::io::Write;
use std::process::ExitCode;

use bulkhead_server::Failed;

/// Exit code if the expectation, check, test or comparison did not hold.
const NO: u8 = 1;
/// Exit code without an answer: an argument, a file or the environment cannot be used.
const BAD: u8 = 2;

/// Returns 0 for yes, 1 for no, and 2 for an error, which is printed.
pub(crate) fn code(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NO),
        // The reader of a pipe, such as `head`, has read enough.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {}", error_text(&error));
            ExitCode::from(BAD)
        }
    }
}

/// Returns 2: the control plane does not answer, so that most of the question is open. The output names it.
pub(crate) fn without_answer() -> ExitCode {
    ExitCode::from(BAD)
}

/// Returns 0 for a server that was stopped, and 2 for one that failed. Its log has the error.
pub(crate) fn of_server(ended: Result<(), Failed>) -> ExitCode {
    ended.map_or(ExitCode::from(BAD), |()| ExitCode::SUCCESS)
}

/// Returns true if the standard output was closed, as `head` does. The error itself has to be the failed write: an
/// interrupted connection to an API server is wrapped by its client.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let write = error.downcast_ref::<std::io::Error>();
    write.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Formats an error with its causes in one line, without repetitions.
pub(crate) fn error_text(error: &anyhow::Error) -> String {
    bulkhead_runtime::causes::causes(error.as_ref())
}
