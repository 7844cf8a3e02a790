//! Injected faults of requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::request::ResourceRequest;

/// Failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is not carried out; the response has this HTTP status and a matching `metav1.Status`.
    Respond(u16),
    /// The connection is refused; the request is not carried out.
    Refuse,
    /// The request is carried out; its response is lost.
    LoseReply,
    /// The request is carried out; the response is 504 after this time.
    TimeOut(Duration),
    /// The request is carried out at the given time.
    HoldUntil(Instant),
    /// The request is carried out. The predicate, which was called with it, may have changed the server before.
    Pass,
}

pub(crate) type Predicate = Box<dyn Fn(&ResourceRequest) -> bool + Send + Sync>;

/// Fault that applies once or until a deadline.
pub(crate) struct Injected {
    pub(crate) applies: Predicate,
    pub(crate) fault: Fault,
    /// End of the fault; `None` means that it applies once.
    pub(crate) until: Option<Instant>,
}

/// Injected faults in the order of their injection.
#[derive(Default)]
pub(crate) struct Faults {
    pending: Mutex<Vec<Injected>>,
}

impl Faults {
    pub(crate) fn inject(&self, injected: Injected) {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(injected);
    }

    /// Returns the first fault that applies to a request. Removes it if it applies once.
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

    pub(crate) fn pending_total(&self) -> usize {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
