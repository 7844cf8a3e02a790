//! Resolution of API versions and kinds to resources, by discovery.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::{Api, ApiResource};
use kube::core::{DynamicResourceScope, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::{Client, Resource};

use crate::controller::Error;

/// `apiVersion` and `kind` of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKind {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

impl ObjectKind {
    /// Creates a kind.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
        }
    }

    /// Returns group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        GroupVersionKind::gvk(group, version, &self.kind)
    }
}

/// Formats a kind as `group/version kind`, for messages.
impl std::fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

/// A resource and its scope.
#[derive(Clone, Debug)]
pub struct KnownKind {
    /// Resource for an [`Api`].
    pub resource: ApiResource,
    /// True if objects have a namespace.
    pub namespaced: bool,
}

impl KnownKind {
    /// Returns an API for objects of this kind; `namespace` is ignored for cluster scope.
    pub fn api<K>(&self, client: Client, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        if self.namespaced {
            Api::namespaced_with(client, namespace, &self.resource)
        } else {
            Api::all_with(client, &self.resource)
        }
    }
}

/// Cache of the kinds that an API server serves. Entries are never removed.
pub struct Kinds {
    client: Client,
    known: Mutex<BTreeMap<ObjectKind, Arc<KnownKind>>>,
}

impl Kinds {
    /// Creates an empty cache.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Returns the resource of a kind, or an error if the API server does not serve it.
    pub async fn resolve(&self, kind: &ObjectKind) -> Result<Arc<KnownKind>, Error> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(kind) {
            return Ok(Arc::clone(found));
        }
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &kind.gvk())
            .await
            .map_err(Error::api(format!("looking up the kind {kind}")))?;
        let found = Arc::new(KnownKind {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
        });
        known().insert(kind.clone(), Arc::clone(&found));
        Ok(found)
    }
}
