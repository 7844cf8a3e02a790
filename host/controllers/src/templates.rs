//! Resource templates: objects of any kind in the control plane.

use std::sync::Arc;

use bulkhead_core::model::ObjectReference;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::dynamic::{DynamicStores, KeptObject};
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::{Kinds, ObjectKind};
use bulkhead_runtime::store::Store;
use kube::{Api, Client, ResourceExt};

/// Name of the control plane among the API servers that dynamic informers watch.
pub const HUB: &str = "";

/// Access to resource templates.
#[derive(Clone)]
pub(crate) struct Templates {
    /// Caches, from the API server that [`HUB`] names.
    pub(crate) cache: Arc<DynamicStores>,
    /// Kinds that the control plane serves.
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) hub: Client,
}

impl Templates {
    /// Returns a template, if its informer runs and knows it.
    pub(crate) fn get(&self, kind: &ObjectKind, key: &Key) -> Option<Arc<KeptObject>> {
        self.cache.get(HUB, kind, key)
    }

    /// Returns the cache of a kind, if its informer was started.
    pub(crate) fn store(&self, kind: &ObjectKind) -> Option<Arc<Store<KeptObject>>> {
        self.cache.store(HUB, kind)
    }

    /// Starts the informer of a kind unless it runs already.
    pub(crate) async fn ensure(&self, kind: &ObjectKind) -> Result<(), Error> {
        self.cache.ensure(HUB, kind, &self.kinds, || Ok(self.hub.clone())).await
    }

    /// Returns the API for templates of a kind; `namespace` is ignored for cluster scope.
    pub(crate) async fn api(&self, kind: &ObjectKind, namespace: &str) -> Result<Api<KeptObject>, Error> {
        Ok(self.kinds.resolve(kind).await?.api(self.hub.clone(), namespace))
    }

    /// Returns a template from its informer or, if that does not know it, from the API server.
    pub(crate) async fn read(&self, kind: &ObjectKind, key: &Key) -> Result<Option<Arc<KeptObject>>, Error> {
        if let Some(known) = self.get(kind, key) {
            return Ok(Some(known));
        }
        let api = self.api(kind, &key.namespace).await?;
        let found = api
            .get_opt(&key.name)
            .await
            .map_err(Error::api(format!("reading {} {key}", kind.kind)))?;
        Ok(found.map(Arc::new))
    }
}

/// Returns the reference of a binding to its object.
pub(crate) fn reference(kind: &ObjectKind, object: &KeptObject) -> ObjectReference {
    ObjectReference {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
    }
}
