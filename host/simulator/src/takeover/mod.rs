//! Rehearsal of a take-over: changes that the controllers of a mode would make on a control plane.
//!
//! [`read`] copies the objects of a live control plane and writes nothing. [`rehearse`] puts the copy into a control
//! plane in memory, runs the controllers of the mode on it in virtual time, and compares the objects before and after.
//! Controllers that talk to member clusters do not run, so reports of members stay as they are.

mod changes;
mod copy;
mod rehearsal;
mod writers;

use bulkhead_controllers::flags::Flags;
use bulkhead_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use copy::{ControlPlaneCopy, NotRead, read};
pub use rehearsal::{DURATION, rehearse};

/// Settings of a rehearsal.
#[derive(Clone, Copy, Debug)]
pub struct Take<'a> {
    /// Controllers of the mode. Those that talk to member clusters are left out.
    pub controllers: &'a [&'a str],
    /// Settings of the controllers.
    pub flags: &'a Flags,
    /// Time at which the objects were read.
    pub now: Time,
}

/// Result of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// Number of objects in the copy.
    pub objects: usize,
    /// Changes, in order of effect, kind and object.
    pub changes: Vec<Change>,
    /// Limits of this rehearsal, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Effect of a change, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// The manifest of a Work changes beyond its own labels and annotations, so its object in the member changes.
    Rewritten,
    /// An object is deleted.
    Deleted,
    /// An object is created.
    Created,
    /// An eviction begins.
    Evicted,
    /// An eviction task ends.
    Ended,
    /// The target clusters of a binding change.
    Placed,
    /// A taint of a cluster appears or disappears.
    Tainted,
    /// Another field changes.
    Field,
    /// Metadata or status changes.
    Bookkeeping,
}

/// Change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    /// Effect of the change.
    pub effect: Effect,
    /// Kind of the object.
    pub kind: String,
    /// Namespace and name of the object, or its name alone.
    pub object: String,
    /// Kind, namespace and name of the object in a Work; empty for other kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// Fields that change; empty for created and deleted objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// Field managers that wrote these fields last, in order of name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

/// Change of one field. Values of Secrets are replaced by their lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldChange {
    /// Path such as `spec.template.spec.containers[0].image`; in a Work, the path in its manifest.
    pub path: String,
    /// Value before; absent if the field is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Value after; absent if the field is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

#[cfg(test)]
mod tests;
