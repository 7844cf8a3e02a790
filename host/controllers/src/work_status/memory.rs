//! State of the controller between reconciles.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bulkhead_core::combine::{Diagnostics, PolicyFault};
use bulkhead_runtime::key::Key;

use crate::status_batcher::StatusBatcher;

/// Batched status changes and recorded faults, by Work.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) batcher: StatusBatcher,
    /// Faults of the last call about each Work, which are recorded already. The events of one change often lead to
    /// several calls, and a call with a fault is repeated.
    faults: Mutex<BTreeMap<Key, Vec<PolicyFault>>>,
}

impl Memory {
    /// Removes the faults that the last call about a Work had too.
    pub(super) fn without_recorded(&self, work: &Key, mut diagnostics: Diagnostics) -> Diagnostics {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let found = std::mem::take(&mut diagnostics.faults);
        let known = if found.is_empty() {
            faults.remove(work)
        } else {
            faults.insert(work.clone(), found.clone())
        };
        let known = known.unwrap_or_default();
        diagnostics.faults = found.into_iter().filter(|fault| !known.contains(fault)).collect();
        diagnostics
    }

    pub(super) fn forget(&self, work: &Key) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).remove(work);
    }
}
