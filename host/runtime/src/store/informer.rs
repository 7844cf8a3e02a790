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
    pub async fn run_informer(self: Arc<Self>, api: Api<K>, config: watcher::Config) {
        self.has_informer.store(true, Ordering::Release);
        informer::run(&*self, api, config).await;
    }

    /// Replaces all objects, as a complete list does. For stores without an informer, for example in tests.
    pub fn replace_all(&self, objects: impl IntoIterator<Item = K>) {
        self.handle(watcher::Event::Init);
        for object in objects {
            self.handle(watcher::Event::InitApply(object));
        }
        self.handle(watcher::Event::InitDone);
    }

    fn handle(&self, event: watcher::Event<K>) {
        match event {
            watcher::Event::Init => *self.listing() = Some(Listing::default()),
            watcher::Event::InitApply(object) => {
                // A list is authoritative even if it is older, for example after the control plane was restored from
                // a backup. But it may lack writes made since it was requested.
                let is_written = {
                    let (key, mut listing) = (Key::of(&object), self.listing());
                    let listing = listing.get_or_insert_default();
                    listing.found.insert(key.clone());
                    listing.written.contains(&key)
                };
                self.insert(object, |known, new| {
                    !(is_written && known.is_some_and(|known| is_newer(new, known)))
                });
            }
            watcher::Event::InitDone => {
                let found = self.listing().take().unwrap_or_default().found;
                let keys: Vec<_> = self.read().by_key.keys().cloned().collect();
                for key in keys.iter().filter(|key| !found.contains(*key)) {
                    self.delete(key);
                }
                // Later lists do not change this.
                let _ = self.synced.set(());
            }
            watcher::Event::Apply(object) => {
                self.insert(object, |known, new| !known.is_some_and(|known| is_newer(new, known)));
            }
            watcher::Event::Delete(object) => self.delete(&Key::of(&object)),
        }
    }
}

impl<K> Receiver<K> for Store<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    fn receive(&self, event: watcher::Event<K>) {
        self.note(None);
        self.handle(event);
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
                store.handle(watcher::Event::InitApply(object("u", version)));
            }
            store.handle(watcher::Event::InitDone);
        };
        store.handle(watcher::Event::Init);
        list(&["5"]);
        assert!(store.has_synced());
        store.handle(watcher::Event::Init);
        store.wrote(&object("u", "7"));
        list(&["6"]);
        assert_eq!(version().as_deref(), Some("7"));
        // Writes made before the list was requested are part of it, unless the control plane was restored.
        store.handle(watcher::Event::Init);
        list(&["3"]);
        assert_eq!(version().as_deref(), Some("3"));
        store.handle(watcher::Event::Init);
        store.wrote(&object("u", "8"));
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
            store.handle(watcher::Event::Apply(object(uid, version)));
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
        let watched = Api::<ConfigMap>::all(hub.client_through(link.clone()));
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
}
