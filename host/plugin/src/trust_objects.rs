//! `PluginTrust` objects of a control plane.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use bulkhead_core::manifest::trust::object::TrustObject;

/// Existing `PluginTrust` objects, as reported by their watcher. Before the first list nothing is known about them.
#[derive(Debug, Default)]
pub struct TrustObjects {
    state: RwLock<State>,
    /// True once the trust in an image depends on the first list.
    is_expected: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    objects: Option<Vec<TrustObject>>,
    revision: u64,
}

impl TrustObjects {
    /// Replaces the objects. Returns true if they differ from those before.
    pub fn set(&self, objects: Vec<TrustObject>) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = state.objects.as_ref() != Some(&objects);
        if is_other {
            *state = State {
                objects: Some(objects),
                revision: state.revision + 1,
            };
        }
        is_other
    }

    /// Returns the objects; `None` before the first list.
    pub fn listed(&self) -> Option<Vec<TrustObject>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.objects.clone()
    }

    /// Returns a number that changes whenever the objects do.
    pub fn revision(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Records that the trust in an image depends on the first list.
    pub fn expect(&self) {
        self.is_expected.store(true, Ordering::Release);
    }

    /// Returns true once the trust in an image depends on the first list.
    pub fn is_expected(&self) -> bool {
        self.is_expected.load(Ordering::Acquire)
    }
}
