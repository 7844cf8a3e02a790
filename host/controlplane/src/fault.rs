//! Faults a test puts into a server: requests that fail in a chosen way, and watches that tell things twice.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::kind::KindId;
use crate::request::ResourceRequest;
use crate::server::ApiServer;

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with this HTTP status and a matching `metav1.Status`, and not carried out.
    Respond(u16),
    /// The connection is refused and the request not carried out.
    Refuse,
    /// The request is carried out and its answer lost.
    LoseReply,
    /// The request is carried out, and after that time answered with 504.
    TimeOut(Duration),
    /// The request is carried out at that moment, not before.
    HoldUntil(Instant),
    /// The request is carried out. The predicate, which has seen it, may have done something else to the server first.
    Pass,
}

type Predicate = Box<dyn Fn(&ResourceRequest) -> bool + Send + Sync>;

/// A fault that waits for its request, or strikes for a time.
struct Injected {
    applies: Predicate,
    fault: Fault,
    /// Absent strikes once.
    until: Option<Instant>,
}

/// Faults waiting for the requests they apply to, in the order they were injected.
#[derive(Default)]
pub(crate) struct Faults {
    pending: Mutex<Vec<Injected>>,
}

impl Faults {
    fn inject(&self, injected: Injected) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(injected);
    }

    /// Takes the first fault that applies to a request.
    pub(crate) fn take(&self, request: &ResourceRequest) -> Option<Fault> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.is_empty() {
            return None;
        }
        let now = Instant::now();
        pending.retain(|injected| injected.until.is_none_or(|until| until > now));
        let position = pending.iter().position(|injected| (injected.applies)(request))?;
        let fault = pending[position].fault;
        if pending[position].until.is_none() {
            drop(pending.remove(position));
        }
        Some(fault)
    }

    fn pending_total(&self) -> usize {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl ApiServer {
    /// Lets the next request that `applies` fail; each injected fault strikes once, the oldest first.
    pub fn inject(&self, fault: Fault, applies: impl Fn(&ResourceRequest) -> bool + Send + Sync + 'static) {
        self.shared.faults.inject(Injected { applies: Box::new(applies), fault, until: None });
    }

    /// Lets every request that `applies` fail for that long.
    pub fn inject_for(
        &self,
        lasts: Duration,
        fault: Fault,
        applies: impl Fn(&ResourceRequest) -> bool + Send + Sync + 'static,
    ) {
        let until = Some(Instant::now() + lasts);
        self.shared.faults.inject(Injected { applies: Box::new(applies), fault, until });
    }

    /// How many injected faults still wait for their request, or strike.
    pub fn faults_pending_total(&self) -> usize {
        self.shared.faults.pending_total()
    }

    /// Lets watches of a kind tell every change twice for that long, as they may after a connection was lost.
    pub fn repeat_watches(&self, kind: KindId, lasts: Duration) {
        self.shared.lock_state().table_mut(kind).repeat_until = Some(Instant::now() + lasts);
    }
}
