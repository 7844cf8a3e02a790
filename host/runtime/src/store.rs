//! Cache of the objects of one kind, ordered by key and kept current by an informer.
//!
//! The response to a write of this process is visible at once ([`Store::wrote`]), before the watch delivers it.
//! Writers of one object take its lock ([`Store::lock_object`]). Together they prevent conflicts between controllers of
//! one process: the holder of the lock starts from the newest version that the process has written or read.

mod informer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use kube::Resource;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use self::informer::Listing;
use crate::handlers::Handlers;
use crate::key::Key;
use crate::object_lock::{ObjectLock, ObjectLocks, is_newer};

/// Change of an object in a store.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// The object is new, or existed when the handler was added.
    Added(&'a Arc<K>),
    /// The object has a new version.
    Updated {
        /// Previous version.
        old: &'a Arc<K>,
        /// New version.
        new: &'a Arc<K>,
    },
    /// The object was deleted.
    Deleted(&'a Arc<K>),
}

impl<K: Resource> Change<'_, K> {
    /// Returns the newest known version.
    pub fn object(&self) -> &K {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Updated { new: object, .. } => object,
        }
    }

    /// True if the generation changed, or the object was added or deleted. A deletion timestamp bumps the generation.
    pub fn is_generation_change(&self) -> bool {
        match self {
            Self::Added(_) | Self::Deleted(_) => true,
            Self::Updated { old, new } => old.meta().generation != new.meta().generation,
        }
    }
}

type Handler<K> = dyn Fn(&Change<'_, K>) + Send + Sync;
type IndexBy<K> = fn(&K) -> Vec<String>;

/// Objects of one kind, ordered by namespace and name. Handlers are called synchronously on every change, so they
/// must do no more than put keys into a queue.
pub struct Store<K> {
    objects: RwLock<Objects<K>>,
    /// Held from a change until all handlers have run, so that they see the versions in order.
    order: Mutex<()>,
    listing: Mutex<Option<Listing>>,
    /// Wakes waiters in FIFO order, so that simulations are reproducible.
    synced: SetOnce<()>,
    handlers: Handlers<Handler<K>>,
    index_by: Option<IndexBy<K>>,
    object_locks: ObjectLocks,
    /// Objects with a status write whose outcome is unknown.
    unanswered: Mutex<BTreeSet<Key>>,
    has_informer: AtomicBool,
    failures: Mutex<InformerFailures>,
    on_silence: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Time for which a failure is reported. A watch that works again is silent until something happens; one that does
/// not work fails again within this time.
const FAILURE_REPORT_TIME: Duration = Duration::from_secs(75);

/// Failures of an informer.
#[derive(Default)]
struct InformerFailures {
    errors: u64,
    last: Option<(String, Instant)>,
}

/// State of an informer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformerState {
    /// True if the first list is complete.
    pub synced: bool,
    /// Reason why it cannot list or watch at present.
    pub failure: Option<String>,
    /// Number of failed lists and watches so far.
    pub errors: u64,
}

struct Objects<K> {
    by_key: BTreeMap<Key, Arc<K>>,
    index: BTreeMap<String, BTreeSet<Key>>,
}

/// Registration of a handler. Dropping it removes the handler.
#[must_use = "the handler is removed when this is dropped"]
pub struct Subscription<K>(#[expect(dead_code, reason = "held for its reference count")] Arc<Handler<K>>);

impl<K: Resource + 'static> Store<K> {
    /// Creates an empty store.
    pub fn new() -> Arc<Self> {
        Self::build(None)
    }

    /// Creates an empty store whose objects can also be found by the values that `index_by` returns.
    pub fn indexed(index_by: IndexBy<K>) -> Arc<Self> {
        Self::build(Some(index_by))
    }

    fn build(index_by: Option<IndexBy<K>>) -> Arc<Self> {
        let objects = Objects {
            by_key: BTreeMap::new(),
            index: BTreeMap::new(),
        };
        Arc::new(Self {
            objects: RwLock::new(objects),
            order: Mutex::new(()),
            listing: Mutex::new(None),
            synced: SetOnce::new(),
            handlers: Handlers::default(),
            index_by,
            object_locks: ObjectLocks::default(),
            unanswered: Mutex::default(),
            has_informer: AtomicBool::default(),
            failures: Mutex::default(),
            on_silence: OnceLock::new(),
        })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the first list is complete, so that an object that is not in the store does not exist.
    pub fn has_synced(&self) -> bool {
        self.synced.initialized()
    }

    /// True once an informer was started.
    pub fn has_informer(&self) -> bool {
        self.has_informer.load(Ordering::Acquire)
    }

    /// Returns the state of the informer.
    pub fn informer(&self) -> InformerState {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let last = failures
            .last
            .as_ref()
            .filter(|(_, at)| at.elapsed() < FAILURE_REPORT_TIME);
        InformerState {
            synced: self.has_synced(),
            failure: last.map(|(text, _)| text.clone()),
            errors: failures.errors,
        }
    }

    /// Records a failed list or watch; `None` records one that worked.
    fn note(&self, failure: Option<String>) {
        let mut noted = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        noted.errors += u64::from(failure.is_some());
        noted.last = failure.map(|text| (text, Instant::now()));
    }

    /// Sets a handler for lists and watches that get no response, and for watches that are cut: the API server may be
    /// down. The creator of the store sets it, at most once.
    pub fn on_silence(&self, handler: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_silence.set(Box::new(handler));
    }

    /// Waits until the first list is complete ([`Store::has_synced`]).
    pub async fn wait_for_cache_sync(&self) {
        self.synced.wait().await;
    }

    /// Returns an object.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().by_key.get(key).cloned()
    }

    /// Returns all objects, in key order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().by_key.values().cloned().collect()
    }

    /// Returns the objects of one namespace, in key order.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let from = objects.by_key.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// Returns the objects that the index lists under a value, in key order.
    pub fn by_index(&self, value: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let keys = objects.index.get(value).into_iter().flatten();
        keys.filter_map(|key| objects.by_key.get(key).cloned()).collect()
    }

    /// Calls `handler` for every existing object, then on every change, until the subscription is dropped.
    pub fn subscribe(&self, handler: impl Fn(&Change<'_, K>) + Send + Sync + 'static) -> Subscription<K> {
        let handler: Arc<Handler<K>> = Arc::new(handler);
        let _order = self.order();
        for object in self.list() {
            handler(&Change::Added(&object));
        }
        self.handlers.add(&handler);
        Subscription(handler)
    }

    /// True if the outcome of a status write of an object is unknown.
    pub(crate) fn is_unanswered(&self, key: &Key) -> bool {
        self.unanswered().contains(key)
    }

    /// Sets if the outcome of a status write of an object is unknown.
    pub(crate) fn set_unanswered(&self, key: &Key, is_unanswered: bool) {
        if is_unanswered {
            self.unanswered().insert(key.clone());
        } else {
            self.unanswered().remove(key);
        }
    }

    fn unanswered(&self) -> MutexGuard<'_, BTreeSet<Key>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Waits for the lock that serializes the writes of this process to an object, in FIFO order.
    pub async fn lock_object(&self, key: &Key) -> ObjectLock {
        self.object_locks.lock(key).await
    }

    /// Takes the lock of an object if it is free.
    pub fn try_lock_object(&self, key: &Key) -> Option<ObjectLock> {
        self.object_locks.try_lock(key)
    }

    /// Stores the response to a write, and returns it. An unknown object stays unknown: it may have been deleted since,
    /// which only the watch can show.
    pub fn wrote(&self, object: K) -> Arc<K> {
        if let Some(listing) = &mut *self.listing() {
            listing.written.insert(Key::of(&object));
        }
        self.insert(object, |known, new| known.is_some_and(|known| is_newer(known, new)))
    }

    /// Stores a version if `wanted` accepts it after the known one, and returns it. Drops `managedFields`: they are often
    /// larger than the rest, and an API server keeps its own if a write omits them.
    fn insert(&self, mut object: K, wanted: impl Fn(Option<&K>, &K) -> bool) -> Arc<K> {
        object.meta_mut().managed_fields = None;
        let (key, new) = (Key::of(&object), Arc::new(object));
        let _order = self.order();
        let old = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            if !wanted(objects.by_key.get(&key).map(|known| &**known), &new) {
                return new;
            }
            let old = objects.by_key.insert(key.clone(), Arc::clone(&new));
            self.reindex(&mut objects, &key, old.as_deref(), Some(&new));
            old
        };
        match &old {
            None => self.notify(&Change::Added(&new)),
            // Another object of the same name took its place.
            Some(old) if old.meta().uid != new.meta().uid => {
                self.notify(&Change::Deleted(old));
                self.notify(&Change::Added(&new));
            }
            Some(old) if old.meta().resource_version == new.meta().resource_version => {}
            Some(old) => self.notify(&Change::Updated { old, new: &new }),
        }
        new
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
        let values = |object: Option<&K>| object.map(index_by).unwrap_or_default();
        let (old, new) = (values(old), values(new));
        if old == new {
            return;
        }
        for value in old {
            if let Some(keys) = objects.index.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    objects.index.remove(&value);
                }
            }
        }
        for value in new {
            objects.index.entry(value).or_default().insert(key.clone());
        }
    }
}
