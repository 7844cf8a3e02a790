//! Writes that are safe against a concurrent writer.

use std::fmt::Debug;

use bulkhead_core::mutation::{self, Mutation};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::controller::{Error, is_conflict, is_not_found};

/// Attempts at a status write before the reconcile is given back to its queue.
const STATUS_ATTEMPTS_MAX: usize = 5;

/// Changes the status of an object, starting again from a fresh copy on a conflict. `change` says whether there
/// is anything to write. An object that is gone is fine. Returns the object as it is now, if it is.
pub(crate) async fn update_status<K>(
    api: &Api<K>,
    known: &K,
    mut change: impl FnMut(&mut K) -> bool,
) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let operation = || format!("writing the status of {} {}", K::kind(&()), known.name_any());
    let mut object = known.clone();
    for attempt in 0.. {
        if !change(&mut object) {
            return Ok(Some(object));
        }
        match api.replace_status(&object.name_any(), &PostParams::default(), &object).await {
            Ok(written) => return Ok(Some(written)),
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(error) if is_conflict(&error) && attempt + 1 < STATUS_ATTEMPTS_MAX => {
                let fresh = api.get_opt(&known.name_any()).await.map_err(Error::api(operation()))?;
                let Some(fresh) = fresh else { return Ok(None) };
                object = fresh;
            }
            Err(error) => return Err(Error::api(operation())(error)),
        }
    }
    Ok(None)
}

/// Merge-patches an object on condition that nobody wrote it since this version was read.
pub(crate) async fn patch_if_unchanged<K>(api: &Api<K>, read: &K, mut patch: Value) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let stale = if K::kind(&()) == "Cluster" { Mutation::Karmada7348 } else { Mutation::Karmada7302 };
    if !mutation::on(stale) {
        patch["metadata"]["resourceVersion"] = json!(read.resource_version());
    }
    api.patch(&read.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await
}

#[cfg(test)]
mod tests {
    use bulkhead_api::ClusterResourceBinding;
    use bulkhead_controlplane::{ApiServer, Clock, Options, ResourceKind};

    use super::*;

    fn task(from_cluster: &str) -> Value {
        json!({"fromCluster": from_cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
    }

    #[tokio::test]
    async fn issue_7302_a_task_that_was_added_meanwhile_is_not_overwritten() {
        let kind = ResourceKind::cluster_scoped(
            "work.karmada.io",
            "v1alpha2",
            "ClusterResourceBinding",
            "clusterresourcebindings",
        );
        let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let hub = ApiServer::new(Options { kinds: vec![kind.with_status()], ..Options::new("hub", 1, clock) });
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
        let error =
            patch_if_unchanged(&api, &read, json!({"spec": {"gracefulEvictionTasks": null}})).await.unwrap_err();
        assert!(is_conflict(&error), "{error}");
        let tasks = api.get("b").await.unwrap().spec.graceful_eviction_tasks;
        assert_eq!(tasks.iter().map(|task| task.from_cluster.as_str()).collect::<Vec<_>>(), ["m1", "m2"]);
    }
}
