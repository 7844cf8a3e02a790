//! What makes objects outlive the process.

use serde_json::Value;

use crate::kind::ResourceKind;
use crate::object::Change;

/// Where changes go besides memory.
pub trait Persistence: Send + Sync {
    /// Keeps a change. It is called in the order of changes, while the store is locked, and before anybody is told: when
    /// it returns, the change must have left the process.
    fn keep(&self, kind: &ResourceKind, change: &Change);
}

/// What a server held before, to be put into a new one.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The version of its state, from which resourceVersions go on.
    pub version: u64,
    /// Its objects with their metadata, in any order.
    pub objects: Vec<Value>,
}
