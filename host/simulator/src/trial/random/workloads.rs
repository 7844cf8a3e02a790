//! Random resource templates.

use serde_json::{Value, json};

use crate::trial::seeded_rng::SeededRng;

/// Resource template and its properties.
pub(super) struct App {
    pub(super) name: String,
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    /// Number of replicas; 0 for kinds without replicas.
    pub(super) replicas: u64,
    /// True for a cluster-scoped kind.
    pub(super) cluster_scoped: bool,
    pub(super) objects: Vec<Value>,
}

impl App {
    /// Returns true if the template has replicas.
    pub(super) fn is_workload(&self) -> bool {
        self.replicas > 0
    }
}

pub(super) fn draw(rng: &mut SeededRng, n: u64) -> App {
    let name = format!("app-{n}");
    match rng.between(1, 10) {
        1 => plain(name, "v1", "ConfigMap", false, json!({"data": {"n": n.to_string()}})),
        2 => plain(
            name,
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            true,
            json!({"rules": []}),
        ),
        3 | 4 => workload(rng, name, "StatefulSet"),
        _ => workload(rng, name, "Deployment"),
    }
}

fn plain(name: String, api_version: &'static str, kind: &'static str, cluster_scoped: bool, rest: Value) -> App {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !cluster_scoped {
        object["metadata"]["namespace"] = json!("default");
    }
    if let (Some(object), Some(rest)) = (object.as_object_mut(), rest.as_object()) {
        object.extend(rest.clone());
    }
    App {
        name,
        api_version,
        kind,
        replicas: 0,
        cluster_scoped,
        objects: vec![object],
    }
}

fn workload(rng: &mut SeededRng, name: String, kind: &'static str) -> App {
    let replicas = rng.between(1, 5);
    let labels = json!({"app": name});
    let mut metadata = json!({"name": name, "namespace": "default"});
    if rng.chance(20) {
        metadata["labels"] = json!({"bulkhead.dev/eviction-priority": rng.between(1, 9).to_string()});
    }
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}},
    });
    if kind == "StatefulSet" {
        spec["serviceName"] = json!(name);
        // Ordered startup would take longer than an application may be unhealthy.
        spec["podManagementPolicy"] = json!("Parallel");
    }
    let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec});
    App {
        name,
        api_version: "apps/v1",
        kind,
        replicas,
        cluster_scoped: false,
        objects: vec![object],
    }
}
