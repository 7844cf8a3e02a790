//! Log of the servers. The other commands print their results and errors, and log nothing.

use bulkhead_server::logs::LogArguments;

/// Installs the subscriber of the process. Called once, before the server starts.
pub(crate) fn install(arguments: &LogArguments) {
    // The first one stays. A second call is a bug of `main`.
    let installed = tracing::dispatcher::set_global_default(arguments.dispatch());
    debug_assert!(installed.is_ok(), "a subscriber is installed already");
}
