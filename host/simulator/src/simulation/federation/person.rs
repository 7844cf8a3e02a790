//! Concurrent writes of a person between a read and a write of a controller.

use bulkhead_apiserver::{ApiServer, DeleteOptions, KindId, ObjectKey, ResourceRequest};
use bulkhead_core::decide::reasons::REASON_TAINT_UNTOLERATED;
use serde_json::{Value, json};

/// Key of the taint and name of the label that mark a person's write.
const TRACE: &str = "example.com/in-the-same-moment";

/// Producer of a person's eviction tasks.
pub(in crate::simulation) const PRODUCER_PERSON: &str = "Person";

/// Direct writes of a person to the store, without a request.
pub(in crate::simulation) struct Person(ApiServer);

impl Person {
    pub(super) fn new(hub: &ApiServer) -> Self {
        Self(hub.clone())
    }

    fn object_of(&self, request: &ResourceRequest) -> Option<(ObjectKey, Value)> {
        let info = bulkhead_api::kinds::REGISTERED
            .iter()
            .find(|info| info.plural == request.plural)?;
        let kind = self.0.kind_id(&info.api_version(), info.kind)?;
        let key = ObjectKey::new(
            kind,
            request.namespace.as_deref().unwrap_or_default(),
            request.name.as_deref()?,
        );
        self.object(key)
    }

    fn cluster_kind(&self) -> Option<KindId> {
        self.0.kind_id("cluster.karmada.io/v1alpha1", "Cluster")
    }

    fn cluster(&self, name: &str) -> Option<(ObjectKey, Value)> {
        self.object(ObjectKey::new(self.cluster_kind()?, "", name))
    }

    fn object(&self, key: ObjectKey) -> Option<(ObjectKey, Value)> {
        let object = self.0.store().get(&key)?.content().to_value();
        Some((key, object))
    }

    /// Changes the object of a request, unless the request writes a subresource: adds a non-evicting taint to a
    /// cluster, an eviction task for a cluster without a copy to a scheduled binding, a label to other objects. Returns
    /// true on success.
    pub(in crate::simulation) fn touch(&self, request: &ResourceRequest) -> bool {
        let of_spec = request.subresource.is_none();
        let Some((key, mut object)) = self.object_of(request).filter(|_| of_spec) else {
            return false;
        };
        if request.plural == "clusters" {
            let taint = json!({"key": TRACE, "value": "person", "effect": "NoSchedule"});
            match object["spec"]["taints"].as_array_mut() {
                Some(taints) => taints.push(taint),
                None => object["spec"]["taints"] = json!([taint]),
            }
        } else {
            object["metadata"]["labels"][TRACE] = json!("true");
            if let Some(cluster) = self.unused_cluster(&object) {
                let task =
                    json!({"fromCluster": cluster, "producer": PRODUCER_PERSON, "reason": REASON_TAINT_UNTOLERATED});
                match object["spec"]["gracefulEvictionTasks"].as_array_mut() {
                    Some(tasks) => tasks.push(task),
                    None => object["spec"]["gracefulEvictionTasks"] = json!([task]),
                }
            }
        }
        self.0.store().update(&key, object).is_ok()
    }

    /// Removes the taint that [`Self::touch`] added to a cluster. Returns true if it had one.
    pub(in crate::simulation) fn untaint(&self, cluster: &str) -> bool {
        let kind = self.0.kind_id("cluster.karmada.io/v1alpha1", "Cluster");
        let Some(key) = kind.map(|kind| ObjectKey::new(kind, "", cluster)) else {
            return false;
        };
        let Some(mut object) = self.0.store().get(&key).map(|object| object.content().to_value()) else {
            return false;
        };
        let Some(taints) = object.pointer_mut("/spec/taints").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = taints.len();
        taints.retain(|taint| taint["key"] != TRACE);
        taints.len() < before && self.0.store().update(&key, object).is_ok()
    }

    /// Returns a cluster that is neither a target nor being evicted; `None` if the object is no scheduled binding.
    fn unused_cluster(&self, object: &Value) -> Option<String> {
        let names = |list: &str, field: &str| {
            let items = object["spec"][list].as_array().into_iter().flatten();
            items
                .filter_map(|item| Some(item[field].as_str()?.to_owned()))
                .collect::<Vec<_>>()
        };
        let targets = names("clusters", "name");
        let used = [targets.clone(), names("gracefulEvictionTasks", "fromCluster")].concat();
        let kind = self.cluster_kind().filter(|_| !targets.is_empty())?;
        let clusters = self.0.store().list(kind, None);
        let mut names = clusters.iter().map(|cluster| cluster.name());
        names
            .find(|name| !used.iter().any(|used| used == name))
            .map(str::to_owned)
    }

    /// Deletes and recreates the object of a request, if the request writes its status. Returns true on success.
    pub(in crate::simulation) fn recreate(&self, request: &ResourceRequest) -> bool {
        let of_status = request.subresource.as_deref() == Some("status");
        let Some((key, object)) = self.object_of(request).filter(|_| of_status) else {
            return false;
        };
        self.replace(&key, object)
    }

    /// Deletes and recreates a Cluster.
    pub(in crate::simulation) fn recreate_cluster(&self, name: &str) {
        if let Some((key, object)) = self.cluster(name) {
            self.replace(&key, object);
        }
    }

    /// Deletes and recreates an object. An object that is already being deleted is left alone.
    fn replace(&self, key: &ObjectKey, mut object: Value) -> bool {
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            return false;
        }
        let (store, mut again) = (self.0.store(), object.clone());
        let Some(metadata) = object["metadata"].as_object_mut() else {
            return false;
        };
        metadata.remove("finalizers");
        if store.update(key, object).is_err() || store.delete(key, &DeleteOptions::default()).is_err() {
            return false;
        }
        if let Some(again) = again.as_object_mut() {
            again.remove("status");
            if let Some(metadata) = again.get_mut("metadata").and_then(Value::as_object_mut) {
                let of_server = [
                    "uid",
                    "resourceVersion",
                    "creationTimestamp",
                    "generation",
                    "managedFields",
                ];
                metadata.retain(|field, _| !of_server.contains(&field.as_str()));
            }
        }
        store.create(key.kind, &key.namespace, again).is_ok()
    }
}
