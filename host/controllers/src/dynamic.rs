//! Objects of any kind: templates in the control plane, and what became of them in member clusters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::context::{Context, HUB};
use crate::controller::Error;
use crate::handlers::Handlers;
use crate::kinds::{Kinds, ObjectKind};
use crate::store::{Change, Key, Store, Subscription};

/// Tasks that end when their owner does.
#[derive(Default)]
pub struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Runs a task until it ends or the owner is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}

/// Where a dynamic object was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Name of the API server.
    pub(crate) server: String,
    /// Kind of the object; items of a list do not carry it themselves.
    pub(crate) kind: ObjectKind,
}

type ObjectHandler = dyn Fn(&Origin, &Change<'_, DynamicObject>) + Send + Sync;
type SilenceHandler = dyn Fn(&str) + Send + Sync;

/// Informers for kinds that are named at run time, by API server (a name that the owner chooses) and kind.
pub struct DynamicStores {
    stores: Mutex<BTreeMap<Origin, Watched>>,
    handlers: Arc<Handlers<ObjectHandler>>,
    silence: Arc<Handlers<SilenceHandler>>,
    labels: Option<&'static str>,
    tasks: Tasks,
}

struct Watched {
    store: Arc<Store<DynamicObject>>,
    _forward: Subscription<DynamicObject>,
}

/// Keeps a handler registered for as long as it lives.
#[must_use = "the handler is removed when this is dropped"]
pub(crate) struct ObjectSubscription(#[expect(dead_code, reason = "held for its reference count")] Arc<ObjectHandler>);

/// Keeps a handler registered for as long as it lives.
#[must_use = "the handler is removed when this is dropped"]
pub(crate) struct SilenceSubscription(
    #[expect(dead_code, reason = "held for its reference count")] Arc<SilenceHandler>,
);

impl DynamicStores {
    /// No informers yet. `labels` restricts them all to what it selects.
    pub fn new(labels: Option<&'static str>) -> Self {
        let (handlers, silence) = (Arc::default(), Arc::default());
        Self { stores: Mutex::default(), handlers, silence, labels, tasks: Tasks::default() }
    }

    /// Starts the informer of a kind on an API server unless it runs already.
    pub(crate) async fn ensure(
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
        // Somebody else may have started it while the kind was looked up.
        let origin = Origin { server: server.to_owned(), kind: kind.clone() };
        if stores.contains_key(&origin) {
            return Ok(());
        }
        let store = Store::new();
        let forward = forward(&store, origin.clone(), Arc::clone(&self.handlers));
        let (silent, silence) = (origin.server.clone(), Arc::clone(&self.silence));
        store.on_silence(move || silence.call(|handler| handler(&silent)));
        let config =
            self.labels.map_or_else(watcher::Config::default, |labels| watcher::Config::default().labels(labels));
        let api = kube::Api::all_with(client, &known.resource);
        let informer = Arc::clone(&store).run_informer(api, config);
        stores.insert(origin, Watched { store, _forward: forward });
        self.tasks.spawn(informer);
        Ok(())
    }

    /// Calls `handler` with the name of an API server whenever an informer gets no answer from it, or its watch is cut.
    pub(crate) fn subscribe_silence(&self, handler: impl Fn(&str) + Send + Sync + 'static) -> SilenceSubscription {
        let handler: Arc<SilenceHandler> = Arc::new(handler);
        self.silence.add(&handler);
        SilenceSubscription(handler)
    }

    /// What is known of a kind on an API server, once its informer was started.
    pub(crate) fn store(&self, server: &str, kind: &ObjectKind) -> Option<Arc<Store<DynamicObject>>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = Origin { server: server.to_owned(), kind: kind.clone() };
        stores.get(&origin).map(|watched| Arc::clone(&watched.store))
    }

    /// One object, if its informer runs and knows it.
    pub(crate) fn get(&self, server: &str, kind: &ObjectKind, key: &Key) -> Option<Arc<DynamicObject>> {
        self.store(server, kind)?.get(key)
    }

    /// Calls `handler` for every object that is there and on every change from now on,
    /// for informers that are started later too.
    pub(crate) fn subscribe(
        &self,
        handler: impl Fn(&Origin, &Change<'_, DynamicObject>) + Send + Sync + 'static,
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
    store: &Store<DynamicObject>,
    origin: Origin,
    handlers: Arc<Handlers<ObjectHandler>>,
) -> Subscription<DynamicObject> {
    store.subscribe(move |change| handlers.call(|handler| handler(&origin, change)))
}

/// A template matters again when anything but its status, or bookkeeping of the API server, changes.
pub(crate) fn is_template_change(change: &Change<'_, DynamicObject>) -> bool {
    let Change::Updated { old, new } = change else { return true };
    let content = |object: &DynamicObject| {
        let mut data = object.data.clone();
        if let Some(data) = data.as_object_mut() {
            data.remove("status");
        }
        data
    };
    let metadata = |object: &DynamicObject| {
        let meta = &object.metadata;
        (meta.labels.clone(), meta.annotations.clone(), meta.deletion_timestamp.clone(), meta.uid.clone())
    };
    metadata(old) != metadata(new) || content(old) != content(new)
}

/// An object of the control plane: what its informer knows or, where that does not know it, what the API server says.
pub(crate) async fn hub_object(
    context: &Context,
    kind: &ObjectKind,
    key: &Key,
) -> Result<Option<Arc<DynamicObject>>, Error> {
    if let Some(known) = context.templates.get(HUB, kind, key) {
        return Ok(Some(known));
    }
    let api = context.kinds.resolve(kind).await?.api(context.hub.clone(), &key.namespace);
    let found = api.get_opt(&key.name).await.map_err(Error::api(format!("reading {} {key}", kind.kind)))?;
    Ok(found.map(Arc::new))
}

/// The object as plain JSON, which is what policies see.
pub(crate) fn to_value(kind: &ObjectKind, object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = Value::from(kind.api_version.as_str());
    value["kind"] = Value::from(kind.kind.as_str());
    value
}
