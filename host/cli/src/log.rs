//! Log and traces of the servers. The other commands print their results and errors, and log nothing.

use bulkhead_server::logs::LogArguments;
use bulkhead_server::traces::{FromEnvironment, Traces};
use tracing::{info, warn};

/// Installs the subscriber of the process. Called once, before the server starts. Returns the exporter of traces, if
/// the environment asks for one.
pub(crate) fn install(arguments: &LogArguments) -> Option<Traces> {
    let FromEnvironment { traces, warnings } = Traces::from_environment();
    // The first one stays. A second call is a bug of `main`.
    let installed = tracing::dispatcher::set_global_default(arguments.dispatch(traces.as_ref()));
    debug_assert!(installed.is_ok(), "a subscriber is installed already");
    for warning in warnings {
        warn!(target: "bulkhead::traces", "{warning}");
    }
    if let Some(traces) = &traces {
        info!(target: "bulkhead::traces", "traces exported to {}", traces.endpoint());
    }
    traces
}
