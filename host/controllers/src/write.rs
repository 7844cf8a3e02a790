//! Writes that are safe against concurrent writers.

use std::fmt::Debug;

use bulkhead_core::mutation::{self, Mutation};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::controller::{Error, is_conflict, is_not_found};
use crate::object_lock::{ObjectLock, is_newer};
use crate::store::{Key, Store};

/// Attempts at a status write, or at a deletion, before the reconcile fails.
const ATTEMPTS_MAX: usize = 5;

/// Writer of objects of one kind. It serializes the writes of this process to each object, and updates the store
/// before the watch does.
pub(crate) struct Writer<'a, K> {
    pub(crate) store: &'a Store<K>,
    pub(crate) api: Api<K>,
}

impl<K> Writer<'_, K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + 'static,
{
    /// Changes the status of an object, and retries with a fresh copy after a conflict. `change` returns true if
    /// there is anything to write. Returns the current object, or `None` if it is gone. An object whose name belongs
    /// to another one by now counts as gone: the observed status does not apply to that one.
    pub(crate) async fn update_status(
        &self,
        known: &K,
        mut change: impl FnMut(&mut K) -> bool,
    ) -> Result<Option<K>, Error> {
        let operation = || format!("writing the status of {} {}", K::kind(&()), known.name_any());
        let key = Key::of(known);
        let _lock = self.store.lock_object(&key).await;
        let newest = self.store.get(&key).filter(|newest| is_newer(known, &**newest));
        let mut object = newest.map_or_else(|| known.clone(), |newest| K::clone(&newest));
        for attempt in 0.. {
            if !change(&mut object) {
                return Ok(Some(object));
            }
            match self.api.replace_status(&object.name_any(), &PostParams::default(), &object).await {
                Ok(written) => {
                    self.store.wrote(&written);
                    return Ok(Some(written));
                }
                Err(error) if is_not_found(&error) => return Ok(None),
                Err(error) if is_conflict(&error) && attempt + 1 < ATTEMPTS_MAX => {
                    let fresh = self.api.get_opt(&known.name_any()).await.map_err(Error::api(operation()))?;
                    match fresh.filter(|fresh| fresh.meta().uid == known.meta().uid) {
                        Some(fresh) => object = fresh,
                        None => return Ok(None),
                    }
                }
                Err(error) => return Err(Error::api(operation())(error)),
            }
        }
        Ok(None)
    }

    /// Merge-patches an object if it was not written since `read`.
    pub(crate) async fn patch_if_unchanged(&self, read: &K, patch: Value) -> Result<K, kube::Error> {
        self.patch(read, patch, |_, _| false).await
    }

    /// Merge-patches an object if nothing but its status changed since `read`, for decisions that do not depend on
    /// it.
    pub(crate) async fn patch_despite_status(&self, read: &K, patch: Value) -> Result<K, kube::Error> {
        self.patch(read, patch, same_but_status).await
    }

    /// Patches like [`Self::patch_despite_status`], for a caller that holds the lock of the object already.
    pub(crate) async fn patch_locked(&self, lock: ObjectLock, read: &K, patch: Value) -> Result<K, kube::Error> {
        let written = self.patch_now(read, patch, same_but_status).await;
        drop(lock);
        written
    }

    async fn patch(&self, read: &K, patch: Value, holds: fn(&K, &K) -> bool) -> Result<K, kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        self.patch_now(read, patch, holds).await
    }

    async fn patch_now(&self, read: &K, mut patch: Value, holds: fn(&K, &K) -> bool) -> Result<K, kube::Error> {
        let stale = if K::kind(&()) == "Cluster" { Mutation::Karmada7348 } else { Mutation::Karmada7302 };
        let careless = mutation::on(stale);
        let version = self.version(read, if careless { |_, _| true } else { holds })?;
        if !careless {
            patch["metadata"]["resourceVersion"] = json!(version);
        }
        let written = self.api.patch(&read.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        self.learn(read, written).await
    }

    /// Replaces an object, except for its status, if nothing but its status changed since `read`.
    pub(crate) async fn replace(&self, read: &K, mut object: K) -> Result<K, kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        let version = self.version(read, same_but_status)?;
        object.meta_mut().resource_version = version;
        let written = self.api.replace(&read.name_any(), &PostParams::default(), &object).await;
        self.learn(read, written).await
    }

    /// Deletes an object if it is still the one that was read and nothing but its status changed. An object that is
    /// gone, or whose name belongs to another one, needs no deletion.
    pub(crate) async fn delete(&self, read: &K) -> Result<(), kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        let mut version = self.version(read, same_but_status)?;
        for attempt in 0.. {
            let preconditions = Preconditions { uid: read.meta().uid.clone(), resource_version: version };
            let parameters = DeleteParams::background().preconditions(preconditions);
            match self.api.delete(&read.name_any(), &parameters).await {
                Err(error) if is_conflict(&error) && attempt + 1 < ATTEMPTS_MAX => {}
                Err(error) if !is_not_found(&error) => return Err(error),
                _ => return Ok(()),
            }
            let fresh = self.api.get_opt(&read.name_any()).await?;
            match fresh.filter(|fresh| fresh.meta().uid == read.meta().uid) {
                None => return Ok(()),
                Some(fresh) => {
                    self.store.wrote(&fresh);
                    if !same_but_status(read, &fresh) {
                        return Err(lost_race::<K>(&Key::of(read)));
                    }
                    version = fresh.resource_version();
                }
            }
        }
        Ok(())
    }

    /// Updates the store with the result of a write. After a conflict it reads the version that won, so that the
    /// retry does not have to wait for the watch.
    async fn learn(&self, read: &K, written: Result<K, kube::Error>) -> Result<K, kube::Error> {
        match &written {
            Ok(written) => self.store.wrote(written),
            Err(error) if is_conflict(error) => {
                if let Ok(Some(fresh)) = self.api.get_opt(&read.name_any()).await {
                    self.store.wrote(&fresh);
                }
            }
            Err(_) => {}
        }
        written
    }

    /// Returns the version to write on top of, or a conflict if `holds` rejects the known one. The caller holds the
    /// lock.
    fn version(&self, read: &K, holds: fn(&K, &K) -> bool) -> Result<Option<String>, kube::Error> {
        let key = Key::of(read);
        let newest = self.store.get(&key).filter(|newest| is_newer(read, &**newest));
        match newest {
            Some(newest) if !holds(read, &newest) => Err(lost_race::<K>(&key)),
            Some(newest) => Ok(newest.resource_version()),
            None => Ok(read.resource_version()),
        }
    }
}

fn same_but_status<K: Resource>(left: &K, right: &K) -> bool {
    let (left, right) = (left.meta(), right.meta());
    left.generation == right.generation
        && left.labels == right.labels
        && left.annotations == right.annotations
        && left.finalizers == right.finalizers
}

/// Returns the error that the API server would return, for a conflict that is already certain.
fn lost_race<K: Resource<DynamicType = ()>>(key: &Key) -> kube::Error {
    let message = format!("{} {key} was changed meanwhile", K::kind(&()));
    kube::Error::Api(Box::new(Status::failure(&message, "Conflict").with_code(409)))
}

#[cfg(test)]
mod tests {
    use bulkhead_api::ClusterResourceBinding;

    use super::*;
    use crate::testing::hub_of_cluster_bindings;

    type AsyncChange = fn(Api<ClusterResourceBinding>) -> futures::future::BoxFuture<'static, ()>;

    fn task(from_cluster: &str) -> Value {
        json!({"fromCluster": from_cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
    }

    fn binding(name: &str) -> ClusterResourceBinding {
        serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding", "metadata": {"name": name},
            "spec": {"resource": {"apiVersion": "v1", "kind": "Namespace", "name": "n"}},
        }))
        .unwrap()
    }

    /// Creates an object and returns it as it was before `change`.
    async fn read_before(
        api: &Api<ClusterResourceBinding>,
        change: impl AsyncFnOnce(&Api<ClusterResourceBinding>),
    ) -> ClusterResourceBinding {
        let read = api.create(&PostParams::default(), &binding("b")).await.unwrap();
        change(api).await;
        read
    }

    async fn recreate(api: &Api<ClusterResourceBinding>) {
        api.delete("b", &DeleteParams::default()).await.unwrap();
        api.create(&PostParams::default(), &binding("b")).await.unwrap();
    }

    async fn report(api: &Api<ClusterResourceBinding>) {
        let status = Patch::Merge(json!({"status": {"schedulerObservedGeneration": 7}}));
        api.patch_status("b", &PatchParams::default(), &status).await.unwrap();
    }

    async fn relabel(api: &Api<ClusterResourceBinding>) {
        let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        api.patch("b", &PatchParams::default(), &labels).await.unwrap();
    }

    #[tokio::test]
    async fn the_status_of_a_deleted_object_is_not_written_to_its_successor() {
        let hub = hub_of_cluster_bindings();
        let api: Api<ClusterResourceBinding> = Api::all(hub.client());
        let read = read_before(&api, recreate).await;
        let (writer, mut changes) = (Writer { store: &Store::new(), api: api.clone() }, 0);
        let written = writer.update_status(&read, |binding| {
            changes += 1;
            binding.status.scheduler_observed_generation = 42;
            true
        });
        assert!(written.await.unwrap().is_none());
        assert_eq!((changes, api.get("b").await.unwrap().status.scheduler_observed_generation), (1, 0));
    }

    #[tokio::test]
    async fn a_deletion_hits_only_the_object_that_was_read() {
        let check = async |change: AsyncChange, succeeds: bool, remains: bool| {
            let hub = hub_of_cluster_bindings();
            let api: Api<ClusterResourceBinding> = Api::all(hub.client());
            let read = read_before(&api, async |api| change(api.clone()).await).await;
            let writer = Writer { store: &Store::new(), api: api.clone() };
            let deleted = writer.delete(&read).await;
            assert_eq!((deleted.is_ok(), api.get_opt("b").await.unwrap().is_some()), (succeeds, remains));
        };
        check(|api| Box::pin(async move { recreate(&api).await }), true, true).await;
        check(|api| Box::pin(async move { report(&api).await }), true, false).await;
        check(|api| Box::pin(async move { relabel(&api).await }), false, true).await;
    }

    #[tokio::test]
    async fn karmada_7302_a_task_that_was_added_meanwhile_is_not_overwritten() {
        let hub = hub_of_cluster_bindings();
        let api: Api<ClusterResourceBinding> = Api::all(hub.client());
        let binding = serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding", "metadata": {"name": "b"},
            "spec": {
                "resource": {"apiVersion": "v1", "kind": "Namespace", "name": "n"},
                "gracefulEvictionTasks": [task("m1")],
            },
        }))
        .unwrap();
        let read = api.create(&PostParams::default(), &binding).await.unwrap();
        let added = Patch::Merge(json!({"spec": {"gracefulEvictionTasks": [task("m1"), task("m2")]}}));
        api.patch("b", &PatchParams::default(), &added).await.unwrap();
        let writer = Writer { store: &Store::new(), api: api.clone() };
        let none = json!({"spec": {"gracefulEvictionTasks": null}});
        let error = writer.patch_if_unchanged(&read, none).await.unwrap_err();
        assert!(is_conflict(&error), "{error}");
        let tasks = api.get("b").await.unwrap().spec.graceful_eviction_tasks;
        assert_eq!(tasks.iter().map(|task| task.from_cluster.as_str()).collect::<Vec<_>>(), ["m1", "m2"]);
    }
}
