//! Faults a test puts into a server: single requests that fail in a chosen way.

use std::sync::{Mutex, PoisonError};

use crate::request::ResourceRequest;

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with this HTTP status and a matching `metav1.Status`, and not carried out.
    Respond(u16),
    /// The connection is refused and the request not carried out.
    Refuse,
    /// The request is carried out and its answer lost.
    LoseReply,
}

type Predicate = Box<dyn Fn(&ResourceRequest) -> bool + Send + Sync>;

/// Faults waiting for the requests they apply to, in the order they were injected.
#[derive(Default)]
pub(crate) struct Faults {
    pending: Mutex<Vec<(Predicate, Fault)>>,
}

impl Faults {
    pub(crate) fn inject(&self, fault: Fault, applies: Predicate) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push((applies, fault));
    }

    /// Takes the first fault that applies to a request.
    pub(crate) fn take(&self, request: &ResourceRequest) -> Option<Fault> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let position = pending.iter().position(|(applies, _)| applies(request))?;
        Some(pending.remove(position).1)
    }

    pub(crate) fn pending_total(&self) -> usize {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
