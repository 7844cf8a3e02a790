//! Common to all tests: member clusters, workloads and access to stored objects.

use bulkhead_apiserver::{ApiServer, Clock, ObjectKey};
use bulkhead_emulator::{MemberCluster, MemberOptions};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

pub(crate) fn clock() -> Clock {
    Clock::new("2026-01-01T00:00:00Z".parse().unwrap())
}

pub(crate) fn member_options() -> MemberOptions {
    MemberOptions::new("m1", 7, clock())
}

/// Starts a member cluster with a running emulator.
pub(crate) fn running(options: MemberOptions) -> MemberCluster {
    let member = MemberCluster::new(options);
    tokio::spawn(member.run());
    member
}

pub(crate) fn deployment(name: &str, replicas: u32, cpu: &str) -> Deployment {
    from(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name, cpu, "Always"),
        },
    }))
}

pub(crate) fn pod_template(app: &str, cpu: &str, restart_policy: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "restartPolicy": restart_policy,
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}],
        },
    })
}

pub(crate) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Returns the stored JSON of an object.
pub(crate) fn stored(server: &ApiServer, api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let kind = server.kind_id(api_version, kind).unwrap();
    let object = server.store().get(&ObjectKey::new(kind, namespace, name));
    object.map_or(Value::Null, |object| object.content().to_value())
}
