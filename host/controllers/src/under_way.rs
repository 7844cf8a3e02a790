//! Writes that were sent and are not answered yet.

use std::sync::Arc;

use tokio::sync::watch;

/// How many writes are under way.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay(Arc<watch::Sender<usize>>);

/// A write that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Sent(UnderWay);

impl Default for UnderWay {
    /// None is.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl UnderWay {
    /// One more write.
    pub(crate) fn add(&self) -> Sent {
        self.0.send_modify(|count| *count += 1);
        Sent(self.clone())
    }

    /// Waits until there is none.
    pub(crate) async fn none(&self) {
        // The sender lives as long as this does.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
