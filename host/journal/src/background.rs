//! A writer on a thread of its own, so that nobody who decides waits for encoding, hashing or a disk.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bulkhead_core::journal::{Case, Record, Sink};

/// Records that may wait. Whoever decides faster than that waits for the disk after all.
const WAITING_MAX: usize = 4096;

/// Hands records to a thread that keeps them, in order. When [`Background::keep`](Sink::keep) returns, a record has
/// *not* left the process: whoever carries out decisions waits until `kept` was called for it.
pub struct Background {
    jobs: SyncSender<Job>,
}

enum Job {
    Keep(Box<Record>, Option<Arc<Case>>),
    Abandon(u64),
}

impl Background {
    /// Starts the thread. It ends when this is dropped and everything is kept. `kept` is called once for each record
    /// and each note that one was abandoned, in order, whether or not the sink could keep it: that a [`Writer`] cannot,
    /// it tells by itself.
    ///
    /// [`Writer`]: crate::Writer
    ///
    /// # Errors
    ///
    /// The system has no room for another thread.
    pub fn start(sink: impl Sink + 'static, kept: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (jobs, handed_in) = sync_channel(WAITING_MAX);
        thread::Builder::new().name("journal".to_owned()).spawn(move || work(&handed_in, &sink, kept))?;
        Ok(Self { jobs })
    }

    fn hand_in(&self, job: Job) {
        // The thread is gone only if it panicked; then `kept` was dropped, and its owner knows.
        let _ = self.jobs.send(job);
    }
}

fn work(handed_in: &Receiver<Job>, sink: &dyn Sink, mut kept: impl FnMut()) {
    for job in handed_in {
        match job {
            Job::Keep(record, case) => sink.keep(&record, case.as_ref()),
            Job::Abandon(id) => sink.abandon(id),
        }
        kept();
    }
}

impl Sink for Background {
    fn keep(&self, record: &Record, case: Option<&Arc<Case>>) {
        self.hand_in(Job::Keep(Box::new(record.clone()), case.cloned()));
    }

    fn abandon(&self, id: u64) {
        self.hand_in(Job::Abandon(id));
    }
}
