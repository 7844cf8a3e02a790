//! Counters of writes by response code.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::request::{ResourceRequest, Verb};

/// Resource, verb and response code of a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteResponse {
    /// Resource, such as `deployments.apps` or `deployments.apps/status`.
    pub resource: String,
    /// Verb of the request.
    pub verb: Verb,
    /// HTTP status code.
    pub code: u16,
}

/// Number of writes by resource, verb and response code.
#[derive(Default)]
pub(crate) struct ResponseCounts(Mutex<BTreeMap<WriteResponse, u64>>);

impl ResponseCounts {
    /// Counts a response. Reads are not counted.
    pub(crate) fn note(&self, request: &ResourceRequest, code: u16) {
        if matches!(request.verb, Verb::Get | Verb::List | Verb::Watch) {
            return;
        }
        let mut resource = request.plural.clone();
        for (separator, part) in [('.', Some(&request.group)), ('/', request.subresource.as_ref())] {
            if let Some(part) = part.filter(|part| !part.is_empty()) {
                resource.push(separator);
                resource.push_str(part);
            }
        }
        let response = WriteResponse {
            resource,
            verb: request.verb,
            code,
        };
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(response)
            .or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<WriteResponse, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
