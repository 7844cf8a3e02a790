//! Informer of a store: what lists and watches change in it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::Store;
use crate::informer::{self, Receiver};
use crate::key::Key;
use crate::object_lock::is_newer;
use crate::unread::Unread;

/// List in progress.
#[derive(Default)]
pub(super) struct Listing {
    /// Objects on the list.
    found: BTreeSet<Key>,
    /// Objects that this process wrote since the list began. The list may have older versions of them.
    pub(super) written: BTreeSet<Key>,
}

impl<K> Store<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Keeps the store current until the future is dropped. Objects that vanished while the watch was down are
    /// deleted once the new list is complete. Failures are retried, and shown by [`Store::informer`].
    pub async fn run_informer(self: Arc<Self>, api: Api<Unread<K>>, config: watcher::Config) {
        self.has_informer.store(true, Ordering::Release);
        informer::run(&*self, api, config).await;
    }

    /// Replaces all objects, as a complete list does. For stores without an informer, for example in tests.
    pub fn replace_all(&self, objects: impl IntoIterator<Item = K>) {
        self.begin_list();
        for object in objects {
            self.listed(object);
        }
        self.end_list();
    }

    fn begin_list(&self) {
        *self.listing() = Some(Listing::default());
    }

    /// Stores an object of a list. A list is authoritative even if it is older, for example after the control plane was
    /// restored from a backup. But it may lack writes made since it was requested.
    fn listed(&self, object: K) {
        let is_written = {
            let (key, mut listing) = (Key::of(&object), self.listing());
            let listing = listing.get_or_insert_default();
            let is_written = listing.written.contains(&key);
            listing.found.insert(key);
            is_written
        };
        self.insert(object, |known, new| {
            !(is_written && known.is_some_and(|known| is_newer(new, known)))
        });
    }

    fn end_list(&self) {
        let found = self.listing().take().unwrap_or_default().found;
        let keys: Vec<_> = self.read().by_key.keys().cloned().collect();
        for key in keys.iter().filter(|key| !found.contains(*key)) {
            self.delete(key);
        }
        // Later lists do not change this.
        let _ = self.synced.set(());
    }

    /// Stores an object of a watch.
    fn watched(&self, object: K) {
        self.insert(object, |known, new| !known.is_some_and(|known| is_newer(new, known)));
    }

    /// True if the store has this version of the object, as it does after a write of this process. Only a list can show
    /// that the control plane was restored from a backup and gave the version to another state.
    fn has(&self, object: &Unread<K>) -> bool {
        let known = self.get(&Key::of(object));
        known.is_some_and(|known| {
            let (known, metadata) = (known.meta(), object.meta());
            known.resource_version.is_some()
                && known.resource_version == metadata.resource_version
                && known.uid == metadata.uid
        })
    }
}

impl<K> Receiver<Unread<K>> for Store<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    fn receive(&self, event: watcher::Event<Unread<K>>) -> Result<(), String> {
        match event {
            watcher::Event::Init => self.begin_list(),
            watcher::Event::InitApply(object) => self.listed(object.read()?),
            watcher::Event::InitDone => self.end_list(),
            watcher::Event::Apply(object) if self.has(&object) => {}
            watcher::Event::Apply(object) => self.watched(object.read()?),
            watcher::Event::Delete(object) => self.delete(&Key::of(&object)),
        }
        self.note(None);
        Ok(())
    }

    fn failed(&self, reason: String) {
        self.note(Some(reason));
    }

    fn silent(&self) {
        if let Some(handler) = self.on_silence.get() {
            handler();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use bulkhead_apiserver::{Link, LinkState};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::store::Change;
    use crate::testing::hub;

    fn object(uid: &str, version: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": "b", "uid": uid, "resourceVersion": version}})).unwrap()
    }

    #[test]
    fn a_list_does_not_undo_what_was_written_since_it_was_asked_for() {
        let (store, key) = (Store::<ConfigMap>::new(), Key::new("", "b"));
        let version = || {
            store
                .get(&key)
                .and_then(|object| object.metadata.resource_version.clone())
        };
        let list = |versions: &[&str]| {
            for version in versions {
                store.listed(object("u", version));
            }
            store.end_list();
        };
        store.begin_list();
        list(&["5"]);
        assert!(store.has_synced());
        store.begin_list();
        store.wrote(object("u", "7"));
        list(&["6"]);
        assert_eq!(version().as_deref(), Some("7"));
        // Writes made before the list was requested are part of it, unless the control plane was restored.
        store.begin_list();
        list(&["3"]);
        assert_eq!(version().as_deref(), Some("3"));
        store.begin_list();
        store.wrote(object("u", "8"));
        list(&[]);
        assert_eq!(version(), None);
    }

    #[test]
    fn another_object_of_the_same_name_is_another_object() {
        let (store, received) = (Store::<ConfigMap>::new(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::clone(&received);
        let _subscription = store.subscribe(move |change| {
            let what = match change {
                Change::Added(_) => "added",
                Change::Updated { .. } => "updated",
                Change::Deleted(_) => "deleted",
            };
            heard
                .lock()
                .unwrap()
                .push((what, change.object().metadata.uid.clone().unwrap()));
        });
        for (uid, version) in [("u", "1"), ("u", "2"), ("v", "4")] {
            store.watched(object(uid, version));
        }
        let expected = [("added", "u"), ("updated", "u"), ("deleted", "u"), ("added", "v")];
        let expected: Vec<_> = expected.into_iter().map(|(what, uid)| (what, uid.to_owned())).collect();
        assert_eq!(*received.lock().unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_watch_is_reported_at_once_and_managed_fields_are_not_kept() {
        let hub = hub();
        let owner = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:data": {}}});
        let metadata = json!({"name": "b", "managedFields": [owner]});
        let object: ConfigMap = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let api: Api<ConfigMap> = Api::namespaced(hub.client(), "ns");
        api.create(&kube::api::PostParams::default(), &object).await.unwrap();
        let (store, link, silences) = (Store::<ConfigMap>::new(), Link::new(), Arc::new(AtomicU32::new(0)));
        let heard = Arc::clone(&silences);
        store.on_silence(move || {
            heard.fetch_add(1, Ordering::Relaxed);
        });
        let watched = Api::all(hub.client_through(link.clone()));
        let informer = tokio::spawn(Arc::clone(&store).run_informer(watched, watcher::Config::default()));
        store.wait_for_cache_sync().await;
        assert_eq!(store.get(&Key::new("ns", "b")).unwrap().metadata.managed_fields, None);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(silences.load(Ordering::Relaxed), 0);
        link.set(LinkState::Down);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(silences.load(Ordering::Relaxed), 1);
        assert!(store.informer().failure.is_some());
        informer.abort();
    }

    fn unread(object: &serde_json::Value) -> Unread<ConfigMap> {
        serde_json::from_str(&object.to_string()).unwrap()
    }

    #[test]
    fn a_version_that_the_store_has_is_not_parsed_again() {
        let store = Store::<ConfigMap>::new();
        store.watched(object("u", "6"));
        store.wrote(object("u", "7"));
        let metadata = |uid: &str, version: &str| json!({"name": "b", "uid": uid, "resourceVersion": version});
        let receive = |uid: &str, version: &str| {
            let odd = unread(&json!({"metadata": metadata(uid, version), "data": 5}));
            store.receive(watcher::Event::Apply(odd))
        };
        assert_eq!(receive("u", "7"), Ok(()));
        for (uid, version) in [("u", "8"), ("v", "7")] {
            let error = receive(uid, version).unwrap_err();
            assert!(
                error.starts_with("b: invalid type: integer `5`, expected a map"),
                "{error}"
            );
        }
        store.begin_list();
        let listed = unread(&json!({"metadata": metadata("u", "7"), "data": {"restored": "from a backup"}}));
        store.receive(watcher::Event::InitApply(listed)).unwrap();
        store.end_list();
        assert!(store.get(&Key::new("", "b")).unwrap().data.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_cannot_be_read_is_named_and_all_are_listed_again() {
        let hub = hub();
        let resource = kube::api::ApiResource::erase::<ConfigMap>(&());
        let any: Api<kube::api::DynamicObject> = Api::namespaced_with(hub.client(), "ns", &resource);
        let create = async |name: &str, data: serde_json::Value| {
            let object = serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap();
            any.create(&kube::api::PostParams::default(), &object).await.unwrap();
        };
        create("a", json!({"k": "v"})).await;
        create("b", json!(5)).await;
        let store = Store::<ConfigMap>::new();
        let all = Api::all(hub.client());
        let informer = tokio::spawn(Arc::clone(&store).run_informer(all, watcher::Config::default()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let failure = store.informer().failure.unwrap();
        assert!(
            failure.starts_with("cannot be read: ns/b: invalid type: integer `5`"),
            "{failure}"
        );
        assert!(!store.has_synced());
        any.delete("b", &kube::api::DeleteParams::default()).await.unwrap();
        store.wait_for_cache_sync().await;
        assert_eq!(store.list().len(), 1);
        // The watch delivers it.
        create("c", json!(5)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(store.informer().failure.unwrap().contains("ns/c: invalid type"));
        assert!(store.get(&Key::new("ns", "a")).is_some());
        informer.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_between_failed_lists_grows() {
        let (hub, link) = (hub(), Link::new());
        link.set(LinkState::Down);
        let store = Store::<ConfigMap>::new();
        let all = Api::all(hub.client_through(link));
        let informer = tokio::spawn(Arc::clone(&store).run_informer(all, watcher::Config::default()));
        tokio::time::sleep(Duration::from_mins(5)).await;
        // After 0.8, 1.6, 3.2, 6.4, 12.8 and 25.6 s, then every 30 s.
        assert_eq!(store.informer().errors, 15);
        informer.abort();
    }
}
