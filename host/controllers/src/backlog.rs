//! Decisions on their way to the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Records that were handed in and are not kept yet. A write waits until those are kept that came before it.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    handed_in: AtomicU64,
    kept: watch::Sender<u64>,
}

impl Default for Backlog {
    /// Nothing is on its way.
    fn default() -> Self {
        Self(Arc::new(Counts { handed_in: AtomicU64::new(0), kept: watch::Sender::new(0) }))
    }
}

impl Backlog {
    /// Notes that a record is handed in. Called before it is.
    pub fn add(&self) {
        self.0.handed_in.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that one more record is kept.
    pub(crate) fn done(&self) {
        self.0.kept.send_modify(|kept| *kept += 1);
    }

    /// Nobody keeps anything any more, so nobody waits.
    pub(crate) fn close(&self) {
        self.0.kept.send_replace(u64::MAX);
    }

    /// How many records are kept, if others wait to be.
    pub fn waiting(&self) -> Option<u64> {
        let kept = *self.0.kept.borrow();
        (kept < self.0.handed_in.load(Ordering::SeqCst)).then_some(kept)
    }

    /// Waits until everything is kept that was handed in so far.
    pub async fn passed(&self) {
        let last = self.0.handed_in.load(Ordering::SeqCst);
        // The sender lives as long as this does.
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
