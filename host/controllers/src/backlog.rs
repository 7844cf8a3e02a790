//! Barrier between decision records and writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Counts of records that were submitted to the journal and of those that it has stored. A write waits until all
/// records submitted before it are stored.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    handed_in: AtomicU64,
    kept: watch::Sender<u64>,
}

impl Default for Backlog {
    /// Creates a barrier without outstanding records.
    fn default() -> Self {
        Self(Arc::new(Counts { handed_in: AtomicU64::new(0), kept: watch::Sender::new(0) }))
    }
}

impl Backlog {
    /// Counts a submitted record. Called before it is submitted.
    pub fn add(&self) {
        self.0.handed_in.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a stored record.
    pub(crate) fn done(&self) {
        self.0.kept.send_modify(|kept| *kept += 1);
    }

    /// Releases all waiters permanently: no further record will be stored.
    pub(crate) fn close(&self) {
        self.0.kept.send_replace(u64::MAX);
    }

    /// Returns the number of stored records if others are outstanding.
    pub fn waiting(&self) -> Option<u64> {
        let kept = *self.0.kept.borrow();
        (kept < self.0.handed_in.load(Ordering::SeqCst)).then_some(kept)
    }

    /// Waits until all records that were submitted so far are stored.
    pub async fn passed(&self) {
        let last = self.0.handed_in.load(Ordering::SeqCst);
        // The sender cannot be gone: `self` owns it.
        let _ = self.0.kept.subscribe().wait_for(|kept| *kept >= last).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_came_before_is_waited_for_and_what_comes_after_is_not() {
        let backlog = Backlog::default();
        backlog.passed().now_or_never().unwrap();
        backlog.add();
        let mut first = Box::pin(backlog.passed());
        assert!(first.as_mut().now_or_never().is_none());
        backlog.add();
        backlog.done();
        first.await;
        assert!(backlog.passed().now_or_never().is_none());
        assert_eq!(backlog.waiting(), Some(1));
        backlog.close();
        backlog.passed().await;
        assert_eq!(backlog.waiting(), None);
    }
}
