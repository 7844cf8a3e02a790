//! Limit of concurrent requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Number of request body bytes per semaphore permit.
const UNIT_BYTES: usize = 64 << 10;
/// Maximum wait for a permit: an API server gives up the request after that.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Limits the number and total size of concurrent requests. A document takes up many times its size once it is
/// parsed.
#[derive(Clone)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    units: u32,
    /// Number of permits of the smallest request.
    least: u32,
}

/// Error: too many concurrent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overloaded;

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many requests are being answered")
    }
}

impl std::error::Error for Overloaded {}

impl Gate {
    /// Creates a gate for at most `requests` concurrent requests with `bytes` of bodies in total. A larger body is
    /// admitted alone.
    pub(crate) fn new(requests: usize, bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).max(requests);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            permits: Arc::new(Semaphore::new(units)),
            units: count(units),
            least: count(units / requests.max(1)),
        }
    }

    /// Runs `work` for a request of this size on a blocking thread. If the caller is cancelled, the work continues
    /// and keeps its permits.
    ///
    /// # Errors
    ///
    /// [`Overloaded`] if no permit becomes free in time, or if the process ends.
    ///
    /// # Panics
    ///
    /// If `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        let size = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let permits = Arc::clone(&self.permits).acquire_many_owned(size.clamp(self.least, self.units));
        let permits = tokio::time::timeout(WAIT_MAX, permits).await;
        let Ok(Ok(permits)) = permits else {
            return Err(Overloaded);
        };
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permits);
            done
        });
        match working.await.map_err(JoinError::try_into_panic) {
            Ok(done) => Ok(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(Overloaded),
        }
    }
}
