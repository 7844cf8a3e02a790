//! Background refresh of plugins.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Plugins, Refresh};

/// Periodic check for changed plugins on a dedicated thread, until it is dropped.
///
/// It polls the catalog instead of using file notifications. Polling works the same for swapped links, network file
/// systems and mounted ConfigMaps, and costs one metadata lookup per file.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Default interval: two checks within the second in which a change has to become active.
    pub const INTERVAL: Duration = Duration::from_millis(400);

    /// Starts the checks, the first one after the first interval. `changed` is called after each check that found the
    /// catalog changed, even if the change was rejected.
    pub fn start(
        plugins: Arc<Plugins>,
        interval: Duration,
        changed: impl Fn(&Plugins) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let look = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if plugins.look() == Refresh::Changed {
                    changed(&plugins);
                }
            }
        };
        let thread = thread::Builder::new().name("plugin-watch".to_owned()).spawn(look)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
