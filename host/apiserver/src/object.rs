//! Stored objects and their changes: immutable, shared by `Arc`, serialised once.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::content::Content;
use crate::json::{HasFields, array, text};
use crate::kind::KindId;

/// One stored version of an object.
#[derive(Debug)]
pub struct Object {
    content: Content,
    resource_version: u64,
    /// Type of the change that led to this version.
    change_type: ChangeType,
    /// Watch event of that change as one line of JSON, of which the object is a part.
    line: Bytes,
}

impl Object {
    pub(crate) fn new(mut content: Content, resource_version: u64, change_type: ChangeType) -> Self {
        content.set_version(resource_version);
        let line = content.between(&head(change_type), TAIL);
        Self {
            content,
            resource_version,
            change_type,
            line,
        }
    }

    /// Reads an object that another one returned as a watch event.
    pub(crate) fn from_line(line: Bytes, resource_version: u64, change_type: ChangeType) -> Self {
        Self {
            content: Content::read(&line.slice(part_of(change_type, &line)), resource_version),
            resource_version,
            change_type,
            line,
        }
    }

    /// Returns the fields of the object.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns the version of the server's state at which this object was written.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// Returns the type of the change that led to this version.
    pub(crate) fn change_type(&self) -> ChangeType {
        self.change_type
    }

    /// Returns the object as JSON.
    pub fn bytes(&self) -> Bytes {
        self.line.slice(part_of(self.change_type, &self.line))
    }

    /// Returns the watch event of the change that led to this version, as one line of JSON.
    pub(crate) fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        text(&self.content, "/metadata/name")
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        text(&self.content, "/metadata/namespace")
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> &str {
        text(&self.content, "/metadata/uid")
    }

    /// Returns true if `metadata.deletionTimestamp` is set.
    pub fn is_terminating(&self) -> bool {
        is_terminating(&self.content)
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

/// Returns the text before the object in a watch event.
fn head(change_type: ChangeType) -> String {
    [r#"{"type":""#, change_type.wire_name(), r#"","object":"#].concat()
}

/// Text after the object in a watch event.
const TAIL: &str = "}\n";

/// Returns the range of the object in a watch event.
fn part_of(change_type: ChangeType, line: &[u8]) -> Range<usize> {
    head(change_type).len()..line.len() - TAIL.len()
}

/// Entry of the event log.
#[derive(Debug)]
pub struct Change {
    /// Key of the object.
    pub key: ObjectKey,
    /// Object after the change; for a removal, its last state with the resourceVersion of the removal.
    pub object: Arc<Object>,
    /// Object before the change; absent on creation.
    pub previous: Option<Arc<Object>>,
}

impl Change {
    /// Returns the type of the change.
    pub fn change_type(&self) -> ChangeType {
        self.object.change_type
    }

    /// Returns the state version of the change; unique and increasing within a server.
    pub fn resource_version(&self) -> u64 {
        self.object.resource_version
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
    if change_type == object.change_type {
        return object.line();
    }
    Bytes::from([head(change_type).as_bytes(), &object.bytes(), TAIL.as_bytes()].concat())
}

/// Returns the uids in `metadata.ownerReferences`.
pub(crate) fn owner_uids(value: &impl HasFields) -> impl Iterator<Item = &str> {
    array(value, "/metadata/ownerReferences")
        .iter()
        .filter_map(|owner| owner["uid"].as_str())
}

pub(crate) fn has_finalizers(value: &impl HasFields) -> bool {
    !array(value, "/metadata/finalizers").is_empty()
}

pub(crate) fn is_terminating(value: &impl HasFields) -> bool {
    !text(value, "/metadata/deletionTimestamp").is_empty()
}
