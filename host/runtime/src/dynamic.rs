//! Caches of objects of any kind: templates in the control plane, and their copies in member clusters.

mod kept_object;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::ApiResource;
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use tokio::task::AbortHandle;

pub use self::kept_object::{KeptObject, live_value};
use crate::controller::Error;
use crate::handlers::Handlers;
use crate::key::Key;
use crate::kinds::{Kinds, ObjectKind};
use crate::store::{Change, Store, Subscription};
use crate::tasks::Tasks;

/// Returns the object as the subject of an event.
pub fn about(kind: &ObjectKind, object: &KeptObject) -> k8s_openapi::api::core::v1::ObjectReference {
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(kind.api_version.clone()),
        kind: Some(kind.kind.clone()),
        namespace: object.namespace(),
        name: object.metadata.name.clone(),
        uid: object.uid(),
        resource_version: object.resource_version(),
        ..Default::default()
    }
}

/// Source of a dynamic object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the API server.
    pub server: String,
    /// Kind of the object; items of a list do not carry it.
    pub kind: ObjectKind,
}

type ObjectHandler = dyn Fn(&Origin, &Change<'_, KeptObject>) + Send + Sync;
type SilenceHandler = dyn Fn(&str) + Send + Sync;

/// Informers for kinds that are determined at run time, by kind and by API server. The owner chooses the names of the
/// API servers.
pub struct DynamicStores {
    stores: Mutex<BTreeMap<Origin, Watched>>,
    handlers: Arc<Handlers<ObjectHandler>>,
    silence: Arc<Handlers<SilenceHandler>>,
    labels: Option<&'static str>,
    tasks: Tasks,
}

struct Watched {
    store: Arc<Store<KeptObject>>,
    resource: ApiResource,
    informer: AbortHandle,
    _forward: Subscription<KeptObject>,
}

/// Registration of a handler. Dropping it removes the handler.
#[must_use = "the handler is removed when this is dropped"]
pub struct ObjectSubscription(#[expect(dead_code, reason = "held for its reference count")] Arc<ObjectHandler>);

/// Registration of a handler. Dropping it removes the handler.
#[must_use = "the handler is removed when this is dropped"]
pub struct SilenceSubscription(#[expect(dead_code, reason = "held for its reference count")] Arc<SilenceHandler>);

impl DynamicStores {
    /// Creates a set without informers. `labels` is a label selector that applies to all of them.
    pub fn new(labels: Option<&'static str>) -> Self {
        let (handlers, silence) = (Arc::default(), Arc::default());
        Self {
            stores: Mutex::default(),
            handlers,
            silence,
            labels,
            tasks: Tasks::default(),
        }
    }

    /// Starts the informer of a kind on an API server unless it runs already.
    pub async fn ensure(
        &self,
        server: &str,
        kind: &ObjectKind,
        kinds: &Kinds,
        client: impl FnOnce() -> Result<Client, Error>,
    ) -> Result<(), Error> {
        if self.store(server, kind).is_some() {
            return Ok(());
        }
        let known = kinds.resolve(kind).await?;
        let client = client()?;
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        // Another task may have started it while the kind was looked up.
        let origin = Origin {
            server: server.to_owned(),
            kind: kind.clone(),
        };
        if stores.contains_key(&origin) {
            return Ok(());
        }
        let store = Store::new();
        let forward = forward(&store, origin.clone(), Arc::clone(&self.handlers));
        let (silent, silence) = (origin.server.clone(), Arc::clone(&self.silence));
        store.on_silence(move || silence.call(|handler| handler(&silent)));
        let informer = self.inform(&store, client, &known.resource);
        stores.insert(
            origin,
            Watched {
                store,
                resource: known.resource.clone(),
                informer,
                _forward: forward,
            },
        );
        Ok(())
    }

    fn inform(&self, store: &Arc<Store<KeptObject>>, client: Client, resource: &ApiResource) -> AbortHandle {
        let config = watcher::Config {
            label_selector: self.labels.map(str::to_owned),
            ..watcher::Config::default()
        };
        let api = kube::Api::all_with(client, resource);
        self.tasks.spawn(Arc::clone(store).run_informer(api, config))
    }

    /// Watches an API server through another client from now on. The cached objects stay until that client gets a
    /// list.
    pub fn reconnect(&self, server: &str, client: &Client) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, watched) in stores.iter_mut().filter(|(origin, _)| origin.server == server) {
            watched.informer.abort();
            watched.informer = self.inform(&watched.store, client.clone(), &watched.resource);
        }
    }

    /// Forgets an API server with all its cached objects.
    pub fn forget(&self, server: &str) {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|origin, watched| {
            let stays = origin.server != server;
            if !stays {
                watched.informer.abort();
            }
            stays
        });
    }

    /// Calls `handler` with the name of an API server whenever an informer gets no response from it, or its watch is
    /// cut.
    pub fn subscribe_silence(&self, handler: impl Fn(&str) + Send + Sync + 'static) -> SilenceSubscription {
        let handler: Arc<SilenceHandler> = Arc::new(handler);
        self.silence.add(&handler);
        SilenceSubscription(handler)
    }

    /// Returns the cache of a kind on an API server, if its informer was started.
    pub fn store(&self, server: &str, kind: &ObjectKind) -> Option<Arc<Store<KeptObject>>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = Origin {
            server: server.to_owned(),
            kind: kind.clone(),
        };
        stores.get(&origin).map(|watched| Arc::clone(&watched.store))
    }

    /// Returns an object, if its informer runs and knows it.
    pub fn get(&self, server: &str, kind: &ObjectKind, key: &Key) -> Option<Arc<KeptObject>> {
        self.store(server, kind)?.get(key)
    }

    /// Calls `handler` for every known object and then on every change, also for informers that are started later.
    pub fn subscribe(
        &self,
        handler: impl Fn(&Origin, &Change<'_, KeptObject>) + Send + Sync + 'static,
    ) -> ObjectSubscription {
        let handler: Arc<ObjectHandler> = Arc::new(handler);
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        for (origin, watched) in stores.iter() {
            for object in watched.store.list() {
                handler(origin, &Change::Added(&object));
            }
        }
        self.handlers.add(&handler);
        ObjectSubscription(handler)
    }
}

fn forward(
    store: &Store<KeptObject>,
    origin: Origin,
    handlers: Arc<Handlers<ObjectHandler>>,
) -> Subscription<KeptObject> {
    store.subscribe(move |change| handlers.call(|handler| handler(&origin, change)))
}

/// True if anything but the status of a template, or the bookkeeping of the API server, changed.
pub fn is_template_change(change: &Change<'_, KeptObject>) -> bool {
    let Change::Updated { old, new } = change else {
        return true;
    };
    let is_same_object = old.metadata.uid == new.metadata.uid;
    let is_going = |object: &KeptObject| object.metadata.deletion_timestamp.is_some();
    !is_same_object || !old.has_texts_of(new) || is_going(old) != is_going(new)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kept(value: &Value) -> Arc<KeptObject> {
        Arc::new(serde_json::from_value(value.clone()).unwrap())
    }

    #[test]
    fn a_template_matters_again_when_anything_but_its_status_changes() {
        let object = json!({"metadata": {"name": "a", "generation": 1}, "spec": {"replicas": 1}, "status": {"x": 1}});
        let check = |pointer: &str, value: Value, expected: bool| {
            let mut changed = object.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            let (old, new) = (kept(&object), kept(&changed));
            assert_eq!(
                is_template_change(&Change::Updated { old: &old, new: &new }),
                expected,
                "{pointer}"
            );
        };
        check("/status/x", json!(2), false);
        check("/metadata/generation", json!(2), false);
        check("/spec/replicas", json!(2), true);
        check("/metadata", json!({"name": "a", "labels": {"b": "c"}}), true);
        assert!(is_template_change(&Change::Added(&kept(&object))));
    }
}
