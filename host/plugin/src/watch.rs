//! Keeps plugins fresh in the background.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Plugins, Refresh};

/// Looks for changed plugins at intervals, on a thread of its own, until it is dropped.
///
/// It looks at the catalog instead of being told of changes: that works the same for links that are swapped, for
/// network file systems and for mounted ConfigMaps, and costs one look per file.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// How often to look by default: twice within the second in which a change has to be in force.
    pub const INTERVAL: Duration = Duration::from_millis(400);

    /// Starts to watch. The first look is taken after the first interval. `changed` is called after each look that found
    /// the catalog changed, whether or not the change could be taken.
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
        Ok(Self { stop: Some(stop), thread: Some(thread) })
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
