//! State that the parts of one server share.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fault::Faults;
use crate::kind::KindId;
use crate::request::Verb;
use crate::response_counts::ResponseCounts;
use crate::state::State;
use crate::write::Rules;

/// Response of `/readyz` and `/healthz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// 200 `ok`.
    Ready,
    /// This HTTP status.
    Failing(u16),
}

/// State of one server, shared by its clones, services and stores.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) rules: Rules,
    pub(crate) kubernetes_version: String,
    pub(crate) state: Mutex<State>,
    pub(crate) ready: Mutex<ReadyState>,
    pub(crate) requests: Mutex<BTreeMap<(Verb, KindId), u64>>,
    pub(crate) response_counts: ResponseCounts,
    pub(crate) faults: Faults,
}

impl Shared {
    /// Locks the objects and kinds of the server.
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Locks a mutex. A panic of another holder does not spread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
