//! What a controller knows of the API: an ordered copy of the objects of one kind, kept by an informer.
//!
//! What a write of this process answered is known at once ([`Store::wrote`]), before the watch tells; and writers of
//! one object take turns ([`Store::turn`]). Together they keep controllers of one process from losing races with each
//! other: whoever has the turn starts from the newest version that the process has made or seen.

mod informer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use kube::{Resource, ResourceExt};
use tokio::sync::SetOnce;
use tokio::time::Instant;

use self::informer::Listing;
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
    /// Held from a change until everybody is told, so that nobody hears of a version after a newer one.
    order: Mutex<()>,
    listing: Mutex<Option<Listing>>,
    /// Wakes who waits in the order they came, so that a simulation is the same each time.
    listed: SetOnce<()>,
    handlers: Handlers<Handler<K>>,
    index_by: Option<IndexBy<K>>,
    turns: Turns,
    trouble: Mutex<Trouble>,
    on_silence: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// For how long a failure counts: a watch that works again says nothing until something happens, and one that does not
/// fails again within that time.
const TROUBLE_LASTS: Duration = Duration::from_secs(75);

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
        Arc::new(Self {
            objects: RwLock::new(objects),
            order: Mutex::new(()),
            listing: Mutex::new(None),
            listed: SetOnce::new(),
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
        self.listed.initialized()
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
        self.listed.wait().await;
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
        let _order = self.order();
        for object in self.list() {
            handler(&Change::Added(&object));
        }
        self.handlers.add(&handler);
        Subscription(handler)
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listing(&self) -> MutexGuard<'_, Option<Listing>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(listing) = &mut *self.listing() {
            listing.written.insert(Key::of(object));
        }
        self.insert(object.clone(), |known, new| known.is_some_and(|known| is_newer(known, new)));
    }

    /// Takes a version if `wanted` says so of the known one and it. Who wrote which field is not kept: it is often larger
    /// than the rest, and an API server that is not told keeps what it knows.
    fn insert(&self, mut object: K, wanted: impl Fn(Option<&K>, &K) -> bool) {
        object.meta_mut().managed_fields = None;
        let (key, new) = (Key::of(&object), Arc::new(object));
        let _order = self.order();
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
            // One of the same name in its place.
            Some(old) if old.meta().uid != new.meta().uid => {
                self.notify(&Change::Deleted(old));
                self.notify(&Change::Added(&new));
            }
            Some(old) if old.meta().resource_version == new.meta().resource_version => {}
            Some(old) => self.notify(&Change::Updated { old, new: &new }),
        }
    }

    fn delete(&self, key: &Key) {
        let _order = self.order();
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
