//! Stored objects and their changes: immutable, shared by `Arc`, serialised at most once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::json::{array, text};
use crate::kind::KindId;

/// One stored version of an object.
#[derive(Debug)]
pub struct Object {
    value: Arc<Value>,
    resource_version: u64,
    bytes: OnceLock<Bytes>,
}

impl Object {
    pub(crate) fn new(value: Value, resource_version: u64) -> Self {
        Self {
            value: Arc::new(value),
            resource_version,
            bytes: OnceLock::new(),
        }
    }

    /// Returns the object as JSON.
    pub fn value(&self) -> &Arc<Value> {
        &self.value
    }

    /// Returns the version of the server's state at which this object was written.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// Returns the object serialised as JSON. Computed on the first call and shared afterwards.
    pub fn bytes(&self) -> Bytes {
        // A value can always be serialized. Its `Display` is slower by half.
        let serialize = || Bytes::from(serde_json::to_vec(&*self.value).unwrap_or_default());
        self.bytes.get_or_init(serialize).clone()
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        text(&self.value, "/metadata/name")
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        text(&self.value, "/metadata/namespace")
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> &str {
        text(&self.value, "/metadata/uid")
    }

    /// Returns true if `metadata.deletionTimestamp` is set.
    pub fn is_terminating(&self) -> bool {
        is_terminating(&self.value)
    }
}

/// Type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    /// The object was created.
    Added,
    /// The object was modified.
    Modified,
    /// The object was removed.
    Deleted,
}

impl ChangeType {
    pub(crate) fn wire_name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Entry of the event log.
#[derive(Debug)]
pub struct Change {
    /// Type of the change.
    pub change_type: ChangeType,
    /// Key of the object.
    pub key: ObjectKey,
    /// Object after the change; for a removal, its last state with the resourceVersion of the removal.
    pub object: Arc<Object>,
    /// Object before the change; absent on creation.
    pub previous: Option<Arc<Object>>,
    pub(crate) line: OnceLock<Bytes>,
}

impl Change {
    /// Returns the state version of the change; unique and increasing within a server.
    pub fn resource_version(&self) -> u64 {
        self.object.resource_version
    }

    /// Returns the watch event as one line of JSON. Computed once and shared by all watchers.
    pub(crate) fn line(&self) -> Bytes {
        self.line
            .get_or_init(|| event_line(self.change_type, &self.object))
            .clone()
    }
}

/// Key of an object in a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Kind as registered in the server.
    pub kind: KindId,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key of an object of `kind`; `namespace` is empty for cluster-scoped kinds.
    pub fn new(kind: KindId, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Returns a watch event of the given type as one line of JSON.
pub(crate) fn event_line(change_type: ChangeType, object: &Object) -> Bytes {
    let bytes = object.bytes();
    let mut line = Vec::with_capacity(bytes.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(change_type.wire_name().as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(&bytes);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// Returns the uids in `metadata.ownerReferences`.
pub(crate) fn owner_uids(value: &Value) -> impl Iterator<Item = &str> {
    array(value, "/metadata/ownerReferences")
        .iter()
        .filter_map(|owner| owner["uid"].as_str())
}

pub(crate) fn has_finalizers(value: &Value) -> bool {
    !array(value, "/metadata/finalizers").is_empty()
}

pub(crate) fn is_terminating(value: &Value) -> bool {
    !text(value, "/metadata/deletionTimestamp").is_empty()
}
