//! Writes that are safe against concurrent writers.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::debug;

use crate::controller::{Error, is_conflict, is_not_found};
use crate::key::Key;
use crate::object_lock::{ObjectLock, is_newer};
use crate::store::Store;

/// Target of the log lines of writes.
const TARGET: &str = "bulkhead::write";

/// Attempts at a status write, or at a deletion, before the reconcile fails.
const ATTEMPTS_MAX: usize = 5;

/// Writer of objects of one kind. It serializes the writes of this process to each object, and updates the store
/// before the watch does.
pub struct Writer<'a, K> {
    store: &'a Store<K>,
    api: Api<K>,
}

impl<'a, K> Writer<'a, K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + 'static,
{
    /// Creates a writer of the objects in a store. `api` must cover the objects that it writes.
    pub fn new(store: &'a Store<K>, api: Api<K>) -> Self {
        Self { store, api }
    }

    /// Creates an object. The store gets it from the watch.
    pub async fn create(&self, object: &K) -> Result<K, kube::Error> {
        let created = self.api.create(&PostParams::default(), object).await;
        log("create", object, created.as_ref().err());
        created
    }

    /// Changes the status of an object, and retries with a fresh copy after a conflict. `change` returns true if
    /// there is anything to write. Returns the current object, or `None` if it is gone. An object whose name belongs
    /// to another one by now counts as gone: the observed status does not apply to that one.
    pub async fn update_status(
        &self,
        known: &K,
        mut change: impl FnMut(&mut K) -> bool,
    ) -> Result<Option<Arc<K>>, Error> {
        let operation = || format!("writing the status of {} {}", K::kind(&()), known.name_any());
        let key = Key::of(known);
        let _lock = self.store.lock_object(&key).await;
        let newest = self.after_unanswered(known, &key).await;
        let Some(mut object) = newest.map_err(Error::api(operation()))? else {
            return Ok(None);
        };
        for attempt in 0.. {
            if !change(&mut object) {
                return Ok(Some(Arc::new(object)));
            }
            let written = self
                .api
                .replace_status(&object.name_any(), &PostParams::default(), &object)
                .await;
            log("update status", &object, written.as_ref().err());
            match written {
                Ok(written) => return Ok(Some(self.store.wrote(written))),
                Err(error) if is_not_found(&error) => return Ok(None),
                Err(error) if is_conflict(&error) && attempt + 1 < ATTEMPTS_MAX => {
                    let fresh = self
                        .api
                        .get_opt(&known.name_any())
                        .await
                        .map_err(Error::api(operation()))?;
                    match fresh.filter(|fresh| fresh.meta().uid == known.meta().uid) {
                        Some(fresh) => object = fresh,
                        None => return Ok(None),
                    }
                }
                Err(error) => {
                    let error = Error::api(operation())(error);
                    // A withheld write was not sent.
                    if !error.is_refusal() && !error.is_withheld() {
                        self.store.set_unanswered(&key, true);
                    }
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Returns the newest known version of an object. After a write without an answer it is read from the API server:
    /// the write may have taken effect, and its watch event may be late. Returns `None` if the object is gone.
    async fn after_unanswered(&self, known: &K, key: &Key) -> Result<Option<K>, kube::Error> {
        if self.store.is_unanswered(key) {
            let fresh = self.api.get_opt(&known.name_any()).await?;
            self.store.set_unanswered(key, false);
            let fresh = fresh.filter(|fresh| fresh.meta().uid == known.meta().uid);
            return Ok(fresh.map(|fresh| K::clone(&self.store.wrote(fresh))));
        }
        let newest = self.store.get(key).filter(|newest| is_newer(known, &**newest));
        Ok(Some(newest.map_or_else(|| known.clone(), |newest| K::clone(&newest))))
    }

    /// Merge-patches an object if it was not written since `read`.
    pub async fn patch_if_unchanged(&self, read: &K, patch: Value) -> Result<Arc<K>, kube::Error> {
        self.patch(read, patch, |_, _| false).await
    }

    /// Merge-patches an object if nothing but its status changed since `read`, for decisions that do not depend on
    /// it.
    pub async fn patch_despite_status(&self, read: &K, patch: Value) -> Result<Arc<K>, kube::Error> {
        self.patch(read, patch, same_but_status).await
    }

    /// Patches like [`Self::patch_despite_status`], for a caller that holds the lock of the object already.
    pub async fn patch_locked(&self, lock: ObjectLock, read: &K, patch: Value) -> Result<Arc<K>, kube::Error> {
        let written = self.patch_now(read, patch, same_but_status).await;
        drop(lock);
        written
    }

    async fn patch(&self, read: &K, patch: Value, holds: fn(&K, &K) -> bool) -> Result<Arc<K>, kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        self.patch_now(read, patch, holds).await
    }

    async fn patch_now(&self, read: &K, mut patch: Value, holds: fn(&K, &K) -> bool) -> Result<Arc<K>, kube::Error> {
        let version = self.version(read, holds)?;
        patch["metadata"]["resourceVersion"] = json!(version);
        let written = self
            .api
            .patch(&read.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
        log("patch", read, written.as_ref().err());
        self.learn(read, written).await
    }

    /// Replaces an object, except for its status, if nothing but its status changed since `read`.
    pub async fn replace(&self, read: &K, mut object: K) -> Result<Arc<K>, kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        let version = self.version(read, same_but_status)?;
        object.meta_mut().resource_version = version;
        let written = self
            .api
            .replace(&read.name_any(), &PostParams::default(), &object)
            .await;
        log("replace", read, written.as_ref().err());
        self.learn(read, written).await
    }

    /// Deletes an object if it is still the one that was read and nothing but its status changed. An object that is
    /// gone, or whose name belongs to another one, needs no deletion.
    pub async fn delete(&self, read: &K) -> Result<(), kube::Error> {
        let _lock = self.store.lock_object(&Key::of(read)).await;
        let mut version = self.version(read, same_but_status)?;
        for attempt in 0.. {
            let preconditions = Preconditions {
                uid: read.meta().uid.clone(),
                resource_version: version,
            };
            let parameters = DeleteParams::background().preconditions(preconditions);
            let deleted = self.api.delete(&read.name_any(), &parameters).await;
            log("delete", read, deleted.as_ref().err());
            match deleted {
                Err(error) if is_conflict(&error) && attempt + 1 < ATTEMPTS_MAX => {}
                Err(error) if !is_not_found(&error) => return Err(error),
                Err(_) => return Ok(()),
                Ok(outcome) => {
                    // Finalizers may keep the object for now.
                    if let Some(terminating) = outcome.left() {
                        self.store.wrote(terminating);
                    }
                    return Ok(());
                }
            }
            let fresh = self.api.get_opt(&read.name_any()).await?;
            match fresh.filter(|fresh| fresh.meta().uid == read.meta().uid) {
                None => return Ok(()),
                Some(fresh) => {
                    let fresh = self.store.wrote(fresh);
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
    async fn learn(&self, read: &K, written: Result<K, kube::Error>) -> Result<Arc<K>, kube::Error> {
        if let Err(error) = &written
            && is_conflict(error)
            && let Ok(Some(fresh)) = self.api.get_opt(&read.name_any()).await
        {
            self.store.wrote(fresh);
        }
        written.map(|written| self.store.wrote(written))
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

/// Logs a request in the span of its caller, which has the id of the decision.
fn log<K: Resource<DynamicType = ()>>(verb: &str, object: &K, error: Option<&kube::Error>) {
    let (kind, object) = (K::kind(&()), object.meta());
    let (namespace, name) = (object.namespace.as_deref(), object.name.as_deref());
    match error {
        None => debug!(target: TARGET, verb, %kind, namespace, name, "written"),
        Some(error) => debug!(target: TARGET, verb, %kind, namespace, name, %error, "not written"),
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Method, Request};
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::client::Body;
    use tower::{BoxError, Service as _, ServiceExt as _, service_fn};

    use super::*;
    use crate::testing::hub;

    type AsyncChange = fn(Api<Deployment>) -> futures::future::BoxFuture<'static, ()>;

    fn deployment(name: &str) -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"replicas": 1}})).unwrap()
    }

    /// Creates an object and returns it as it was before `change`.
    async fn read_before(api: &Api<Deployment>, change: impl AsyncFnOnce(&Api<Deployment>)) -> Deployment {
        let read = api.create(&PostParams::default(), &deployment("b")).await.unwrap();
        change(api).await;
        read
    }

    async fn recreate(api: &Api<Deployment>) {
        api.delete("b", &DeleteParams::default()).await.unwrap();
        api.create(&PostParams::default(), &deployment("b")).await.unwrap();
    }

    async fn report(api: &Api<Deployment>) {
        let status = Patch::Merge(json!({"status": {"observedGeneration": 7}}));
        api.patch_status("b", &PatchParams::default(), &status).await.unwrap();
    }

    async fn relabel(api: &Api<Deployment>) {
        let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        api.patch("b", &PatchParams::default(), &labels).await.unwrap();
    }

    #[tokio::test]
    async fn the_status_of_a_deleted_object_is_not_written_to_its_successor() {
        let hub = hub();
        let api: Api<Deployment> = Api::namespaced(hub.client(), "ns");
        let read = read_before(&api, recreate).await;
        let (store, mut changes) = (Store::new(), 0);
        let writer = Writer::new(&store, api.clone());
        let written = writer.update_status(&read, |deployment| {
            changes += 1;
            deployment.status.get_or_insert_default().observed_generation = Some(42);
            true
        });
        assert!(written.await.unwrap().is_none());
        let successor = api.get("b").await.unwrap();
        assert_eq!(
            (changes, successor.status.and_then(|status| status.observed_generation)),
            (1, None)
        );
    }

    /// Creates a client whose first write takes effect without an answer.
    fn losing_an_answer(server: &bulkhead_apiserver::ApiServer) -> kube::Client {
        let (service, lost) = (server.service(), Arc::new(AtomicBool::new(false)));
        let losing = service_fn(move |request: Request<Body>| {
            let loses = request.method() != Method::GET && !lost.swap(true, Ordering::Relaxed);
            let mut service = service.clone();
            async move {
                let answer = service.ready().await?.call(request).await?;
                if loses {
                    Err(BoxError::from("no answer"))
                } else {
                    Ok(answer)
                }
            }
        });
        kube::Client::new(losing, "ns")
    }

    #[tokio::test]
    async fn a_status_write_without_an_answer_is_followed_by_a_read() {
        let hub = hub();
        let api: Api<Deployment> = Api::namespaced(hub.client(), "ns");
        let read = read_before(&api, async |_| {}).await;
        let store = Store::new();
        let writer = Writer::new(&store, Api::namespaced(losing_an_answer(&hub), "ns"));
        let write = async |generation: Option<i64>| {
            let change = |deployment: &mut Deployment| {
                let status = deployment.status.get_or_insert_default();
                std::mem::replace(&mut status.observed_generation, generation) != generation
            };
            writer.update_status(&read, change).await
        };
        assert!(write(Some(7)).await.is_err());
        assert_eq!(api.get("b").await.unwrap().status.unwrap().observed_generation, Some(7));
        // The known version has no generation, and the watch has not brought the newer one.
        write(None).await.unwrap();
        assert_eq!(api.get("b").await.unwrap().status.unwrap().observed_generation, None);
    }

    #[tokio::test]
    async fn a_deletion_hits_only_the_object_that_was_read() {
        let check = async |change: AsyncChange, succeeds: bool, remains: bool| {
            let hub = hub();
            let api: Api<Deployment> = Api::namespaced(hub.client(), "ns");
            let read = read_before(&api, async |api| change(api.clone()).await).await;
            let store = Store::new();
            let deleted = Writer::new(&store, api.clone()).delete(&read).await;
            assert_eq!(
                (deleted.is_ok(), api.get_opt("b").await.unwrap().is_some()),
                (succeeds, remains)
            );
        };
        check(|api| Box::pin(async move { recreate(&api).await }), true, true).await;
        check(|api| Box::pin(async move { report(&api).await }), true, false).await;
        check(|api| Box::pin(async move { relabel(&api).await }), false, true).await;
    }

    #[tokio::test]
    async fn a_patch_of_an_outdated_version_is_a_conflict() {
        let hub = hub();
        let api: Api<Deployment> = Api::namespaced(hub.client(), "ns");
        let read = read_before(&api, relabel).await;
        let (store, patch) = (Store::new(), json!({"spec": {"replicas": 2}}));
        let refused = Writer::new(&store, api.clone())
            .patch_if_unchanged(&read, patch)
            .await
            .unwrap_err();
        assert!(is_conflict(&refused), "{refused}");
    }
}
