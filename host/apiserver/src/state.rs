//! Ordered object tables, their indexes and the bounded event log of each kind.
//!
//! This module knows no rules of the Kubernetes API. They are in `write` and `delete`, which call [`State::put`] and
//! [`State::take`], the only two functions that change objects.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::content::Content;
use crate::definition;
use crate::document::Document;
use crate::history::History;
use crate::json::text;
use crate::kind::{KindId, ResourceKind};
use crate::object::{Change, ChangeType, Object, ObjectKey, owner_uids};
use crate::persistence::{Contents, Persistence};
use crate::rng::SplitMix64;

/// All objects of one kind by namespace and name, and their recent changes.
pub(crate) struct Table {
    pub(crate) kind: Arc<ResourceKind>,
    /// True if requests can access the kind; false once its definition was deleted.
    pub(crate) is_served: bool,
    objects: BTreeMap<String, BTreeMap<String, Arc<Object>>>,
    objects_total: usize,
    pub(crate) history: History,
    /// Counter that is increased to end the open watches of this kind.
    pub(crate) watch_epoch: u64,
    /// End of the pause of open watches; absent if they are not paused.
    pub(crate) quiet_until: Option<Instant>,
    /// End of the duplication of watch events; absent if they are not duplicated.
    pub(crate) repeat_until: Option<Instant>,
    pub(crate) changed: Arc<Notify>,
}

impl Table {
    pub(crate) fn objects_total(&self) -> usize {
        self.objects_total
    }

    /// Returns the objects of one namespace or of all, in key order, strictly after a namespace and name.
    pub(crate) fn scan<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<(&'a str, &'a str)>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let first = match (namespace, after) {
            (Some(only), _) => Bound::Included(only),
            (None, Some((namespace, _))) => Bound::Included(namespace),
            (None, None) => Bound::Unbounded,
        };
        let last = namespace.map_or(Bound::Unbounded, Bound::Included);
        self.objects
            .range::<str, _>((first, last))
            .flat_map(move |(namespace, names)| {
                let start = match after {
                    Some((at, name)) if at == namespace => Bound::Excluded(name),
                    _ => Bound::Unbounded,
                };
                names
                    .range::<str, _>((start, Bound::Unbounded))
                    .map(|(_, object)| object)
            })
    }
}

/// State of a server, protected by one lock.
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) rng: SplitMix64,
    tables: Vec<Table>,
    by_path: BTreeMap<String, KindId>,
    by_uid: BTreeMap<String, ObjectKey>,
    by_owner_uid: BTreeMap<String, BTreeSet<ObjectKey>>,
    objects_by_namespace: BTreeMap<String, u64>,
    history_events_max: usize,
    persistence: Option<Arc<dyn Persistence>>,
    /// Aggregated discovery of the core group and of all other groups, until the kinds change.
    pub(crate) discovery: [OnceLock<Document>; 2],
    pub(crate) changed: Arc<Notify>,
}

impl State {
    pub(crate) fn new(seed: u64, history_events_max: usize, persistence: Option<Arc<dyn Persistence>>) -> Self {
        Self {
            persistence,
            version: 0,
            rng: SplitMix64::new(seed),
            tables: Vec::new(),
            by_path: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            by_owner_uid: BTreeMap::new(),
            objects_by_namespace: BTreeMap::new(),
            history_events_max,
            discovery: Default::default(),
            changed: Arc::new(Notify::new()),
        }
    }

    /// Adds a kind. A kind that is already registered keeps its objects and gets the new description.
    pub(crate) fn register(&mut self, kind: ResourceKind) -> KindId {
        self.discovery = Default::default();
        let path = path_key(&kind.group, &kind.version, &kind.plural);
        if let Some(&id) = self.by_path.get(&path) {
            let table = self.table_mut(id);
            table.kind = Arc::new(kind);
            table.is_served = true;
            return id;
        }
        let id = KindId(self.tables.len() as u32);
        self.by_path.insert(path, id);
        self.tables.push(Table {
            kind: Arc::new(kind),
            is_served: true,
            objects: BTreeMap::new(),
            objects_total: 0,
            history: History::default(),
            watch_epoch: 0,
            quiet_until: None,
            repeat_until: None,
            changed: Arc::new(Notify::new()),
        });
        id
    }

    /// Returns the random number generator together with the table of a kind.
    pub(crate) fn rng_and_table(&mut self, kind: &ResourceKind) -> (&mut SplitMix64, Option<&Table>) {
        let id = self.kind_by_path(&kind.group, &kind.version, &kind.plural);
        (&mut self.rng, id.and_then(|id| self.tables.get(id.0 as usize)))
    }

    pub(crate) fn kind_by_path(&self, group: &str, version: &str, plural: &str) -> Option<KindId> {
        self.by_path
            .get(&path_key(group, version, plural))
            .copied()
            .filter(|id| self.table(*id).is_served)
    }

    /// Stops serving a kind and ends its watches.
    pub(crate) fn unregister(&mut self, id: KindId) {
        self.discovery = Default::default();
        let table = self.table_mut(id);
        table.is_served = false;
        table.watch_epoch += 1;
        table.changed.notify_waiters();
    }

    pub(crate) fn kind_by_name(&self, api_version: &str, kind: &str) -> Option<KindId> {
        self.tables()
            .find(|(_, table)| table.is_served && table.kind.kind == kind && table.kind.has_api_version(api_version))
            .map(|(id, _)| id)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (KindId, &Table)> {
        self.tables
            .iter()
            .enumerate()
            .map(|(index, table)| (KindId(index as u32), table))
    }

    /// Returns the table of a kind. Panics on a handle from another server.
    pub(crate) fn table(&self, kind: KindId) -> &Table {
        &self.tables[kind.0 as usize]
    }

    pub(crate) fn table_mut(&mut self, kind: KindId) -> &mut Table {
        &mut self.tables[kind.0 as usize]
    }

    pub(crate) fn kind(&self, kind: KindId) -> Arc<ResourceKind> {
        Arc::clone(&self.table(kind).kind)
    }

    pub(crate) fn get(&self, kind: KindId, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.table(kind).objects.get(namespace)?.get(name)
    }

    pub(crate) fn get_key(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.get(key.kind, &key.namespace, &key.name)
    }

    pub(crate) fn uid_exists(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    /// Returns the key of the object with a uid.
    pub(crate) fn key_of_uid(&self, uid: &str) -> Option<ObjectKey> {
        self.by_uid.get(uid).cloned()
    }

    /// Returns the keys of the objects that name `uid` as an owner, in key order.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.by_owner_uid
            .get(uid)
            .map(|keys| keys.iter().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn namespace_is_empty(&self, namespace: &str) -> bool {
        !self.objects_by_namespace.contains_key(namespace)
    }

    /// Stores `content` under `key` with a new resourceVersion and records the change.
    pub(crate) fn put(&mut self, key: ObjectKey, content: Content) -> Arc<Object> {
        self.version += 1;
        let change_type = match self.get_key(&key) {
            Some(_) => ChangeType::Modified,
            None => ChangeType::Added,
        };
        let object = Arc::new(Object::new(content, self.version, change_type));
        let table = &mut self.tables[key.kind.0 as usize];
        let previous = table
            .objects
            .entry(key.namespace.clone())
            .or_default()
            .insert(key.name.clone(), Arc::clone(&object));
        if let Some(previous) = &previous {
            self.unindex_owners(&key, previous);
        } else {
            table.objects_total += 1;
            self.by_uid.insert(object.uid().to_owned(), key.clone());
            if !key.namespace.is_empty() {
                *self.objects_by_namespace.entry(key.namespace.clone()).or_default() += 1;
            }
        }
        for uid in owner_uids(object.content()) {
            self.by_owner_uid.entry(uid.to_owned()).or_default().insert(key.clone());
        }
        self.record(key, Arc::clone(&object), previous);
        object
    }

    /// Restores persisted objects with their resourceVersions. Returns those of kinds that are not served.
    pub(crate) fn restore(&mut self, contents: Contents) -> Vec<Value> {
        let persistence = self.persistence.take();
        let (definitions, others): (Vec<_>, Vec<_>) = contents
            .objects
            .into_iter()
            .partition(|object| object["kind"] == "CustomResourceDefinition");
        let mut homeless = Vec::new();
        for object in definitions.into_iter().chain(others) {
            let Some(kind) = self.kind_by_name(text(&object, "/apiVersion"), text(&object, "/kind")) else {
                homeless.push(object);
                continue;
            };
            if self.kind(kind).is_definition() {
                for defined in definition::kinds(&object).unwrap_or_default() {
                    self.register(defined);
                }
            }
            let version = text(&object, "/metadata/resourceVersion").parse::<u64>().unwrap_or(1);
            self.version = version.saturating_sub(1);
            let (namespace, name) = (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
            let key = ObjectKey::new(kind, namespace, name);
            self.put(key, Content::from(object));
        }
        self.version = contents.version;
        for table in &mut self.tables {
            table.history = History::from(contents.version);
        }
        self.persistence = persistence;
        homeless
    }

    /// Removes an object. The recorded change carries its last state with a new resourceVersion.
    pub(crate) fn take(&mut self, key: ObjectKey) -> Option<Arc<Object>> {
        let table = &mut self.tables[key.kind.0 as usize];
        let names = table.objects.get_mut(&key.namespace)?;
        let previous = names.remove(&key.name)?;
        if names.is_empty() {
            table.objects.remove(&key.namespace);
        }
        table.objects_total -= 1;
        self.version += 1;
        let object = Object::new(previous.content().clone(), self.version, ChangeType::Deleted);
        let object = Arc::new(object);
        self.unindex_owners(&key, &previous);
        self.by_uid.remove(previous.uid());
        if let Some(count) = self.objects_by_namespace.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.objects_by_namespace.remove(&key.namespace);
            }
        }
        self.record(key, Arc::clone(&object), Some(previous));
        Some(object)
    }

    fn unindex_owners(&mut self, key: &ObjectKey, object: &Object) {
        for uid in owner_uids(object.content()) {
            if let Some(keys) = self.by_owner_uid.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner_uid.remove(uid);
                }
            }
        }
    }

    fn record(&mut self, key: ObjectKey, object: Arc<Object>, previous: Option<Arc<Object>>) {
        let kind = key.kind;
        let change = Change { key, object, previous };
        if let Some(persistence) = &self.persistence {
            persistence.keep(&self.table(kind).kind, &change);
        }
        let history_events_max = self.history_events_max;
        let table = self.table_mut(kind);
        table.history.push(change, history_events_max);
        table.changed.notify_waiters();
        self.changed.notify_waiters();
    }
}

fn path_key(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}/{plural}")
}
