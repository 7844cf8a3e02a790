//! Commands that wait for requests.

use anyhow::Context as _;

/// Runs a future to its end, on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(future)
}
