//! Bound on the requests that are answered at the same time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Bytes of a request body that one permit stands for.
const UNIT_BYTES: usize = 64 << 10;
/// Largest wait for a permit: after that an API server has given the request up.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Admits requests to the threads that answer them, by number and by size: a document takes many times its bytes once
/// it is parsed.
#[derive(Clone)]
pub(in crate::run) struct Gate {
    permits: Arc<Semaphore>,
    units: u32,
    /// Permits that the smallest request takes.
    least: u32,
}

/// Too many requests are being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct Overloaded;

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many requests are being answered")
    }
}

impl std::error::Error for Overloaded {}

impl Gate {
    /// A gate that admits at most `requests` at a time, with `bytes` of bodies in total. A body that is larger is
    /// admitted alone.
    pub(in crate::run) fn new(requests: usize, bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).max(requests);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { permits: Arc::new(Semaphore::new(units)), units: count(units), least: count(units / requests.max(1)) }
    }

    /// Runs `work` for a request of this size on a thread that may block. The thread keeps its permits when the caller
    /// goes away: the work goes on.
    ///
    /// # Errors
    ///
    /// [`Overloaded`] when no permit becomes free in time, or the process ends.
    ///
    /// # Panics
    ///
    /// When the work does.
    pub(in crate::run) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        let size = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let permits = Arc::clone(&self.permits).acquire_many_owned(size.clamp(self.least, self.units));
        let permits = tokio::time::timeout(WAIT_MAX, permits).await;
        let Ok(Ok(permits)) = permits else { return Err(Overloaded) };
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
