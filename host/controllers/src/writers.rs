//! Writers of the control plane's objects.

use std::fmt::Debug;
use std::sync::Arc;

use bulkhead_api::{Cluster, Work};
use bulkhead_runtime::store::Store;
use bulkhead_runtime::write::Writer;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::stores::Stores;

/// Writers of the objects that several controllers write.
#[derive(Clone)]
pub(crate) struct Writers {
    pub(crate) stores: Arc<Stores>,
    pub(crate) hub: Client,
}

impl Writers {
    /// Returns the writer of Clusters.
    pub(crate) fn clusters(&self) -> Writer<'_, Cluster> {
        writer(&self.stores.clusters, Api::all(self.hub.clone()))
    }

    /// Returns the writer of the Works of one namespace.
    pub(crate) fn works(&self, namespace: &str) -> Writer<'_, Work> {
        writer(&self.stores.works, Api::namespaced(self.hub.clone(), namespace))
    }
}

/// Returns the writer of the objects in a store.
pub(crate) fn writer<K>(store: &Store<K>, api: Api<K>) -> Writer<'_, K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + 'static,
{
    Writer::new(store, api)
}

#[cfg(test)]
mod tests {
    use bulkhead_api::ResourceBinding;
    use bulkhead_runtime::controller::is_conflict;
    use kube::api::{Patch, PatchParams, PostParams};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::hub_of_works;

    fn task(from_cluster: &str) -> Value {
        json!({"fromCluster": from_cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
    }

    #[tokio::test]
    async fn karmada_7302_a_task_that_was_added_meanwhile_is_not_overwritten() {
        let hub = hub_of_works(1);
        let api: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
        let binding = serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {
                "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c"},
                "gracefulEvictionTasks": [task("m1")],
            },
        }))
        .unwrap();
        let read = api.create(&PostParams::default(), &binding).await.unwrap();
        let added = Patch::Merge(json!({"spec": {"gracefulEvictionTasks": [task("m1"), task("m2")]}}));
        api.patch("b", &PatchParams::default(), &added).await.unwrap();
        let store = Store::new();
        let none = json!({"spec": {"gracefulEvictionTasks": null}});
        let error = writer(&store, api.clone())
            .patch_if_unchanged(&read, none)
            .await
            .unwrap_err();
        assert!(is_conflict(&error), "{error}");
        let tasks = api.get("b").await.unwrap().spec.graceful_eviction_tasks;
        assert_eq!(
            tasks.iter().map(|task| task.from_cluster.as_str()).collect::<Vec<_>>(),
            ["m1", "m2"]
        );
    }
}
