//! What a controller knows of the API: an ordered copy of the objects of one kind, kept by an informer.
//!
//! What a write of this process answered is known at once ([`Store::wrote`]), before the watch tells; and writers of
//! one object take turns ([`Store::turn`]). Together they keep controllers of one process from losing races with each
//! other: whoever has the turn starts from the newest version that the process has made or seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::causes::causes;
use crate::handlers::Handlers;
use crate::turn::{Turn, Turns, is_newer};

/// Namespace (empty for cluster scope) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace; empty for cluster scope.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.meta().namespace.clone().unwrap_or_default(), object.name_any())
    }
}

/// `namespace/name`, or the name alone.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// What happened to an object in a store.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new, or was there when the handler was added.
    Added(&'a Arc<K>),
    /// It is another version now.
    Updated {
        /// Before.
        old: &'a Arc<K>,
        /// After.
        new: &'a Arc<K>,
    },
    /// It is gone.
    Deleted(&'a Arc<K>),
}

impl<K: Resource> Change<'_, K> {
    /// The newest version there is.
    pub fn object(&self) -> &K {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Updated { new: object, .. } => object,
        }
    }

    /// Whether the generation changed, or the object came or went. A deletion timestamp bumps the generation.
    pub fn is_generation_change(&self) -> bool {
        match self {
            Self::Added(_) | Self::Deleted(_) => true,
            Self::Updated { old, new } => old.meta().generation != new.meta().generation,
        }
    }
}

type Handler<K> = dyn Fn(&Change<'_, K>) + Send + Sync;
type IndexBy<K> = fn(&K) -> Vec<String>;

/// Objects of one kind, ordered by namespace and name. Handlers are called synchronously on every change, so
/// they do no more than put keys into a queue.
pub struct Store<K> {
    objects: RwLock<Objects<K>>,
    listed: watch::Sender<bool>,
    handlers: Handlers<Handler<K>>,
    index_by: Option<IndexBy<K>>,
    turns: Turns,
    trouble: Mutex<Trouble>,
    on_silence: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What went wrong with an informer.
#[derive(Default)]
struct Trouble {
    errors: u64,
    last: Option<(String, Instant)>,
}

/// How an informer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformerState {
    /// Whether everything that was there when it started is known.
    pub listed: bool,
    /// Why it cannot list or watch at present.
    pub trouble: Option<String>,
    /// How often a list or a watch failed so far.
    pub errors: u64,
}

struct Objects<K> {
    by_key: BTreeMap<Key, Arc<K>>,
    index: BTreeMap<String, BTreeSet<Key>>,
}

/// Keeps a handler registered for as long as it lives.
#[must_use = "the handler is removed when this is dropped"]
pub struct Subscription<K>(#[expect(dead_code, reason = "held for its reference count")] Arc<Handler<K>>);

impl<K: Resource + 'static> Store<K> {
    /// An empty store.
    pub fn new() -> Arc<Self> {
        Self::build(None)
    }

    /// An empty store that can also be read by other values of an object than its key.
    pub fn indexed(index_by: IndexBy<K>) -> Arc<Self> {
        Self::build(Some(index_by))
    }

    fn build(index_by: Option<IndexBy<K>>) -> Arc<Self> {
        let objects = Objects { by_key: BTreeMap::new(), index: BTreeMap::new() };
        let listed = watch::Sender::new(false);
        Arc::new(Self {
            objects: RwLock::new(objects),
            listed,
            handlers: Handlers::default(),
            index_by,
            turns: Turns::default(),
            trouble: Mutex::default(),
            on_silence: OnceLock::new(),
        })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether everything that was there when the informer started is known, so that what is not known is not there.
    pub fn is_listed(&self) -> bool {
        *self.listed.borrow()
    }

    /// How its informer is doing.
    pub fn informer(&self) -> InformerState {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let last = trouble.last.as_ref().filter(|(_, at)| at.elapsed() < TROUBLE_LASTS);
        InformerState { listed: self.is_listed(), trouble: last.map(|(text, _)| text.clone()), errors: trouble.errors }
    }

    /// Notes that a list or a watch failed, or with none that one worked.
    fn note(&self, trouble: Option<String>) {
        let mut noted = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        noted.errors += u64::from(trouble.is_some());
        noted.last = trouble.map(|text| (text, Instant::now()));
    }

    /// Calls `handler` whenever a list or a watch gets no answer, or a watch is cut: the API server may be gone. Only
    /// who makes the store sets it, once.
    pub(crate) fn on_silence(&self, handler: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_silence.set(Box::new(handler));
    }

    /// Waits until [`Store::is_listed`].
    pub async fn listed(&self) {
        // The sender lives as long as the store, so this ends only with the answer.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().by_key.get(key).cloned()
    }

    /// Every object, in order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().by_key.values().cloned().collect()
    }

    /// The objects of one namespace, in order.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let from = objects.by_key.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects that the index lists under a value, in order.
    pub fn by_index(&self, value: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let keys = objects.index.get(value).into_iter().flatten();
        keys.filter_map(|key| objects.by_key.get(key).cloned()).collect()
    }

    /// Calls `handler` for every object that is there, then on every change, until the subscription is dropped.
    pub fn subscribe(&self, handler: impl Fn(&Change<'_, K>) + Send + Sync + 'static) -> Subscription<K> {
        let handler: Arc<Handler<K>> = Arc::new(handler);
        for object in self.list() {
            handler(&Change::Added(&object));
        }
        self.handlers.add(&handler);
        Subscription(handler)
    }

    fn notify(&self, change: &Change<'_, K>) {
        self.handlers.call(|handler| handler(change));
    }

    /// Waits until nobody else of this process writes the object, in the order of asking.
    pub(crate) async fn turn(&self, key: &Key) -> Turn {
        self.turns.take(key).await
    }

    /// The turn to write the object, if nobody of this process has it.
    pub(crate) fn try_turn(&self, key: &Key) -> Option<Turn> {
        self.turns.try_take(key)
    }

    /// Learns what a write answered. An object that is not known stays unknown: it may be gone again by now, and only
    /// the watch can tell.
    pub(crate) fn wrote(&self, object: &K)
    where
        K: Clone,
    {
        self.insert(object.clone(), |known, new| known.is_some_and(|known| is_newer(known, new)));
    }

    /// Takes a version if `wanted` says so of the known one and it. Who wrote which field is not kept: it is often larger
    /// than the rest, and an API server that is not told keeps what it knows.
    fn insert(&self, mut object: K, wanted: impl Fn(Option<&K>, &K) -> bool) {
        object.meta_mut().managed_fields = None;
        let (key, new) = (Key::of(&object), Arc::new(object));
        let old = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            if !wanted(objects.by_key.get(&key).map(|known| &**known), &new) {
                return;
            }
            let old = objects.by_key.insert(key.clone(), Arc::clone(&new));
            self.reindex(&mut objects, &key, old.as_deref(), Some(&new));
            old
        };
        match &old {
            None => self.notify(&Change::Added(&new)),
            Some(old) if old.meta().resource_version == new.meta().resource_version => {}
            Some(old) => self.notify(&Change::Updated { old, new: &new }),
        }
    }

    fn delete(&self, key: &Key) {
        let old = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            let old = objects.by_key.remove(key);
            self.reindex(&mut objects, key, old.as_deref(), None);
            old
        };
        if let Some(old) = old {
            self.notify(&Change::Deleted(&old));
        }
    }

    fn reindex(&self, objects: &mut Objects<K>, key: &Key, old: Option<&K>, new: Option<&K>) {
        let Some(index_by) = self.index_by else { return };
        for value in old.map(index_by).unwrap_or_default() {
            if let Some(keys) = objects.index.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    objects.index.remove(&value);
                }
            }
        }
        for value in new.map(index_by).unwrap_or_default() {
            objects.index.entry(value).or_default().insert(key.clone());
        }
    }
}

/// First pause after a failed list or watch; doubles from there.
const RETRY_BASE: Duration = Duration::from_millis(800);
/// Longest pause between attempts to list or watch.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// For how long a failure counts: a watch that works again says nothing until something happens, and one that does not
/// fails again within that time.
const TROUBLE_LASTS: Duration = Duration::from_secs(75);

/// What a failed list or watch is told as; none where that is how it goes: a watch that is too old begins anew.
fn told(error: &watcher::Error) -> Option<String> {
    let of = |error: &kube::Error| match error {
        kube::Error::Api(status) if status.code == 404 => {
            format!("it is not served in the version that this program speaks ({})", status.message.trim())
        }
        kube::Error::Api(status) => status.message.clone(),
        other => causes(other),
    };
    match error {
        watcher::Error::InitialListFailed(error) => Some(format!("cannot be listed: {}", of(error))),
        watcher::Error::WatchStartFailed(error) => Some(format!("cannot be watched: {}", of(error))),
        watcher::Error::WatchError(status) if status.code == 410 => None,
        watcher::Error::WatchError(status) => Some(format!("the watch failed: {}", status.message)),
        watcher::Error::WatchFailed(error) => Some(format!("the watch was cut: {}", of(error))),
        watcher::Error::NoResourceVersion => Some("cannot be watched: the list has no resourceVersion".to_owned()),
    }
}

/// Whether a watch cannot go on from where it was because that is forgotten. The watcher lists again only if it is told so
/// in the middle of a watch; told so as one starts, it would ask for the same again, for ever.
fn is_outdated(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Whether it was not the API server that said so.
fn is_silence(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !matches!(error, kube::Error::Api(_)),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

impl<K> Store<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Keeps the store in step with the API, for ever. Objects that vanished while the watch was down are
    /// deleted once the new list is complete. What goes wrong is tried again, and is in [`Store::informer`].
    pub async fn run_informer(self: Arc<Self>, api: Api<K>, config: watcher::Config) {
        let (mut listed, mut pause) = (None::<BTreeSet<Key>>, RETRY_BASE);
        loop {
            let mut events = std::pin::pin!(watcher(api.clone(), config.clone()));
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        pause = RETRY_BASE;
                        self.note(None);
                        self.handle(event, &mut listed);
                    }
                    Err(error) => {
                        if let Some(told) = told(&error) {
                            self.note(Some(told));
                        }
                        if is_silence(&error)
                            && let Some(handler) = self.on_silence.get()
                        {
                            handler();
                        }
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(RETRY_MAX);
                        if is_outdated(&error) {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn handle(&self, event: watcher::Event<K>, listed: &mut Option<BTreeSet<Key>>) {
        match event {
            watcher::Event::Init => *listed = Some(BTreeSet::new()),
            watcher::Event::InitApply(object) => {
                listed.get_or_insert_default().insert(Key::of(&object));
                // A list is right even when it is older, after the control plane was restored from a backup.
                self.insert(object, |_, _| true);
            }
            watcher::Event::InitDone => {
                let listed = listed.take().unwrap_or_default();
                let keys: Vec<_> = self.read().by_key.keys().cloned().collect();
                for key in keys.iter().filter(|key| !listed.contains(*key)) {
                    self.delete(key);
                }
                self.listed.send_replace(true);
            }
            watcher::Event::Apply(object) => {
                self.insert(object, |known, new| !known.is_some_and(|known| is_newer(new, known)));
            }
            watcher::Event::Delete(object) => self.delete(&Key::of(&object)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use bulkhead_api::ClusterResourceBinding;
    use bulkhead_controlplane::{Link, LinkState};
    use serde_json::json;

    use super::*;
    use crate::testing::hub_of_cluster_bindings;

    #[tokio::test(start_paused = true)]
    async fn a_cut_watch_is_told_at_once_and_owners_of_fields_are_not_kept() {
        let hub = hub_of_cluster_bindings();
        let owner = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}});
        let binding: ClusterResourceBinding = serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
            "metadata": {"name": "b", "managedFields": [owner]},
            "spec": {"resource": {"apiVersion": "v1", "kind": "Namespace", "name": "n"}},
        }))
        .unwrap();
        let api: Api<ClusterResourceBinding> = Api::all(hub.client());
        api.create(&kube::api::PostParams::default(), &binding).await.unwrap();
        let (store, link, silences) =
            (Store::<ClusterResourceBinding>::new(), Link::new(), Arc::new(AtomicU32::new(0)));
        let heard = Arc::clone(&silences);
        store.on_silence(move || {
            heard.fetch_add(1, Ordering::Relaxed);
        });
        let watched = Api::all(hub.client_through(link.clone()));
        let informer = tokio::spawn(Arc::clone(&store).run_informer(watched, watcher::Config::default()));
        store.listed().await;
        assert_eq!(store.get(&Key::new("", "b")).unwrap().metadata.managed_fields, None);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(silences.load(Ordering::Relaxed), 0);
        link.set(LinkState::Down);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(silences.load(Ordering::Relaxed), 1);
        assert!(store.informer().trouble.is_some());
        informer.abort();
    }
}
