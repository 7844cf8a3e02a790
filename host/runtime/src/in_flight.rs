//! Writes in flight: sent and not answered yet.

use std::sync::Arc;

use tokio::sync::watch;

/// Number of writes in flight.
#[derive(Clone, Debug)]
pub(crate) struct InFlight(Arc<watch::Sender<usize>>);

/// A write that is in flight until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(InFlight);

impl Default for InFlight {
    /// Creates a counter of zero.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl InFlight {
    /// Counts one more write.
    pub(crate) fn add(&self) -> InFlightGuard {
        self.0.send_modify(|count| *count += 1);
        InFlightGuard(self.clone())
    }

    /// Waits until no write is in flight.
    pub(crate) async fn none(&self) {
        // The sender cannot be gone: `self` owns it.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
