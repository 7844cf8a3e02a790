//! Clock of the wall-clock backstop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::Engine;

/// Interval between two epochs. It is coarse, because it only has to stop work that fuel does not count.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Thread that advances an engine's epoch until it is dropped.
pub(crate) struct Ticker {
    ticks: Arc<AtomicU64>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let ticks = Arc::new(AtomicU64::new(0));
        let ticked = Arc::clone(&ticks);
        let thread = std::thread::Builder::new()
            .name("wasm-epoch".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    ticked.fetch_add(1, Ordering::Relaxed);
                    engine.increment_epoch();
                }
            })?;
        Ok(Self {
            ticks,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the number of epochs so far.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

/// Converts milliseconds to ticks, rounded up.
pub(crate) fn ticks_in_ms(ms: u64) -> u64 {
    u64::try_from(u128::from(ms).div_ceil(TICK.as_millis())).unwrap_or(u64::MAX)
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
