//! The hook through which the owner of a server defaults, changes or refuses what is written.

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use crate::kind::ResourceKind;

/// What a request is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object is stored.
    Create,
    /// A stored object is replaced or patched.
    Update,
}

/// What an [`Admission`] is asked about.
pub struct AdmissionRequest<'a> {
    /// What is about to happen.
    pub operation: Operation,
    /// The kind written.
    pub kind: &'a ResourceKind,
    /// The namespace written to; absent for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// The stored object; absent on creation.
    pub old: Option<&'a Value>,
    /// The object to be stored, free to change except for its name, namespace and uid.
    pub object: &'a mut Value,
    /// Every stored object of the kind, the one to be replaced included.
    pub others: &'a dyn Fn() -> Vec<Value>,
    /// Makes a new UUID from the server's seeded generator.
    pub ids: &'a mut dyn FnMut() -> String,
    /// The server's clock.
    pub now: Timestamp,
}

/// Why a request was denied, which decides the HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// 403 Forbidden.
    Forbidden,
    /// 422 Invalid.
    Invalid,
}

/// A refusal by an [`Admission`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Denied {
    /// Decides the HTTP status.
    pub reason: DenialReason,
    /// Path of the field that is wrong; only for [`DenialReason::Invalid`].
    pub field: String,
    /// Text for people, without the field.
    pub message: String,
}

/// Called on creation and on updates of the main resource, not of its status, before anything is stored.
///
/// It runs while the store is locked: it must not call the server it is attached to.
pub trait Admission: Send + Sync {
    /// Allows the request, possibly after changing the object.
    ///
    /// # Errors
    ///
    /// A denial, which the client receives as a `metav1.Status`.
    fn admit(&self, request: AdmissionRequest<'_>) -> Result<(), Denied>;
}
