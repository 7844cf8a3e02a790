//! Barrier between decision records and writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Counts of records that were submitted to the journal and of those that it has stored. A write waits until all
/// records submitted before it are stored.
#[derive(Clone, Debug)]
pub struct JournalBarrier(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    submitted: AtomicU64,
    stored: watch::Sender<u64>,
}

impl Default for JournalBarrier {
    /// Creates a barrier without outstanding records.
    fn default() -> Self {
        Self(Arc::new(Counts {
            submitted: AtomicU64::new(0),
            stored: watch::Sender::new(0),
        }))
    }
}

impl JournalBarrier {
    /// Counts a submitted record. Called before it is submitted.
    pub fn add(&self) {
        self.0.submitted.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a stored record.
    pub fn done(&self) {
        self.0.stored.send_modify(|stored| *stored += 1);
    }

    /// Releases all waiters permanently: no further record will be stored.
    pub fn close(&self) {
        self.0.stored.send_replace(u64::MAX);
    }

    /// Returns the number of stored records if others are outstanding.
    pub fn waiting(&self) -> Option<u64> {
        let stored = *self.0.stored.borrow();
        (stored < self.0.submitted.load(Ordering::SeqCst)).then_some(stored)
    }

    /// Waits until all records that were submitted so far are stored.
    pub async fn wait(&self) {
        let last = self.0.submitted.load(Ordering::SeqCst);
        // The sender cannot be gone: `self` owns it.
        let _ = self.0.stored.subscribe().wait_for(|stored| *stored >= last).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_came_before_is_waited_for_and_what_comes_after_is_not() {
        let barrier = JournalBarrier::default();
        barrier.wait().now_or_never().unwrap();
        barrier.add();
        let mut first = Box::pin(barrier.wait());
        assert!(first.as_mut().now_or_never().is_none());
        barrier.add();
        barrier.done();
        first.await;
        assert!(barrier.wait().now_or_never().is_none());
        assert_eq!(barrier.waiting(), Some(1));
        barrier.close();
        barrier.wait().await;
        assert_eq!(barrier.waiting(), None);
    }
}
