//! Admission hook through which the owner of a server defaults, changes or rejects writes.

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use crate::kind::ResourceKind;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creation of an object.
    Create,
    /// Replacement or patch of a stored object.
    Update,
}

/// Input of an [`Admission`].
pub struct AdmissionRequest<'a> {
    /// Operation to be admitted.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: &'a ResourceKind,
    /// Namespace of the object; absent for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// Stored object; absent on creation.
    pub old: Option<&'a Value>,
    /// Object to be stored. Everything except its name, namespace and uid may be changed.
    pub object: &'a mut Value,
    /// Returns all stored objects of the kind, including the one to be replaced.
    pub others: &'a dyn Fn() -> Vec<Value>,
    /// Returns a new UUID from the server's seeded generator.
    pub ids: &'a mut dyn FnMut() -> String,
    /// Time of the server's clock.
    pub now: Timestamp,
}

/// Reason of a denial; determines the HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// 403 Forbidden.
    Forbidden,
    /// 422 Invalid.
    Invalid,
}

/// Rejection by an [`Admission`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Denied {
    /// Reason; determines the HTTP status.
    pub reason: DenialReason,
    /// Path of the invalid field; used only for [`DenialReason::Invalid`].
    pub field: String,
    /// Human-readable message without the field.
    pub message: String,
}

/// Admission of creations and of updates of the main resource, but not of its status, before anything is stored.
///
/// It runs while the store is locked: it must not call the server it is attached to.
pub trait Admission: Send + Sync {
    /// Admits the request, possibly after changing the object.
    ///
    /// # Errors
    ///
    /// A denial, which the client receives as a `metav1.Status`.
    fn admit(&self, request: AdmissionRequest<'_>) -> Result<(), Denied>;
}
