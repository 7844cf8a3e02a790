//! Eviction writes in flight.

use std::time::Duration;

use bulkhead_core::decide::eviction::Slot;
use bulkhead_runtime::controller::Error;
use tokio::task::JoinSet;
use tracing::Span;

use super::Eviction;

/// Maximum number of eviction writes in flight. It determines how long a mass eviction takes, not its rate. Two of
/// the writes that a client may have in flight are left for follow-up writes, so that these do not wait for the last
/// eviction.
const WRITES_MAX: usize = 14;

/// Write that has ended.
pub(super) struct Attempt {
    pub(super) eviction: Eviction,
    pub(super) slot: Slot,
    /// Time when the slot was taken.
    pub(super) since: Duration,
    pub(super) result: Result<(), Error>,
    /// Span of the eviction.
    pub(super) span: Span,
}

/// Eviction writes in flight.
#[derive(Default)]
pub(super) struct Writing {
    tasks: JoinSet<Attempt>,
}

impl Writing {
    /// True if another write may start.
    pub(super) fn has_room(&self) -> bool {
        self.tasks.len() < WRITES_MAX
    }

    /// Starts a write.
    pub(super) fn add(&mut self, attempt: impl Future<Output = Attempt> + Send + 'static) {
        self.tasks.spawn(attempt);
    }

    /// Waits for the next write to end. Returns `None` if none is in flight.
    pub(super) async fn next(&mut self) -> Option<Attempt> {
        match self.tasks.join_next().await? {
            Ok(attempt) => Some(attempt),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Tasks are cancelled only when all of them are dropped.
                Err(_) => None,
            },
        }
    }
}
