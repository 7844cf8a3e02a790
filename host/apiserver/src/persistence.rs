//! Persistence of objects beyond the process.

use serde_json::Value;

use crate::kind::ResourceKind;
use crate::object::Change;

/// Receiver of all changes of a server.
pub trait Persistence: Send + Sync {
    /// Persists a change. Called in the order of changes, while the store is locked and before watchers are notified.
    /// When it returns, the change must have left the process.
    fn keep(&self, kind: &ResourceKind, change: &Change);
}

/// Persisted contents of a server, to be restored in a new one.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Version of the state; new resourceVersions continue from here.
    pub version: u64,
    /// Objects with their metadata, in any order.
    pub objects: Vec<Value>,
}
