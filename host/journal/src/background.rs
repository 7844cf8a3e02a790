//! Writer on a thread of its own, so that deciding threads do not wait for encoding, hashing or the disk.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bulkhead_core::journal::{DecisionRecord, Record, Sink};

/// Capacity of the queue, in jobs. While it is full, deciding threads wait for the disk.
const WAITING_MAX: usize = 4096;

/// Queue of records for a thread that keeps them, in order. When [`Background::keep`](Sink::keep) returns, the record
/// has *not* left the process: callers must wait until `kept` is called for it before they carry out the decision.
pub struct Background {
    jobs: SyncSender<Job>,
}

enum Job {
    Keep(Box<Record>, Option<Arc<DecisionRecord>>),
    Abandon(u64),
}

impl Background {
    /// Starts the thread. It ends when this is dropped and everything is kept. `kept` is called once for each record
    /// and each abandonment, in order, even if the sink failed: a [`Writer`] reports a failure itself.
    ///
    /// [`Writer`]: crate::Writer
    ///
    /// # Errors
    ///
    /// The operating system cannot start another thread.
    pub fn start(sink: impl Sink + 'static, kept: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (jobs, handed_in) = sync_channel(WAITING_MAX);
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || work(&handed_in, &sink, kept))?;
        Ok(Self { jobs })
    }

    fn submit(&self, job: Job) {
        // The thread ends early only if it panics; then `kept` is dropped, and its owner notices.
        let _ = self.jobs.send(job);
    }
}

fn work(handed_in: &Receiver<Job>, sink: &dyn Sink, mut kept: impl FnMut()) {
    for job in handed_in {
        match job {
            Job::Keep(record, decision) => sink.keep(&record, decision.as_ref()),
            Job::Abandon(id) => sink.abandon(id),
        }
        kept();
    }
}

impl Sink for Background {
    fn keep(&self, record: &Record, decision: Option<&Arc<DecisionRecord>>) {
        self.submit(Job::Keep(Box::new(record.clone()), decision.cloned()));
    }

    fn abandon(&self, id: u64) {
        self.submit(Job::Abandon(id));
    }
}
