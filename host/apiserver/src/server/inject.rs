//! Injection of faults into a server.

use std::time::Duration;

use tokio::time::Instant;

use super::ApiServer;
use crate::fault::{Fault, Injected};
use crate::kind::KindId;
use crate::request::ResourceRequest;

impl ApiServer {
    /// Makes the next request for which `applies` is true fail. Each injected fault applies once, the oldest first.
    pub fn inject(&self, fault: Fault, applies: impl Fn(&ResourceRequest) -> bool + Send + Sync + 'static) {
        self.shared.faults.inject(Injected {
            applies: Box::new(applies),
            fault,
            until: None,
        });
    }

    /// Makes every request for which `applies` is true fail until `lasts` has elapsed.
    pub fn inject_for(
        &self,
        lasts: Duration,
        fault: Fault,
        applies: impl Fn(&ResourceRequest) -> bool + Send + Sync + 'static,
    ) {
        let until = Some(Instant::now() + lasts);
        self.shared.faults.inject(Injected {
            applies: Box::new(applies),
            fault,
            until,
        });
    }

    /// Returns the number of injected faults that have not been used or have not expired yet.
    pub fn pending_fault_count(&self) -> usize {
        self.shared.faults.pending_total()
    }

    /// Makes watches of a kind send every change twice until `lasts` has elapsed, as they may after a lost
    /// connection.
    pub fn repeat_watches(&self, kind: KindId, lasts: Duration) {
        self.shared.lock_state().table_mut(kind).repeat_until = Some(Instant::now() + lasts);
    }
}
