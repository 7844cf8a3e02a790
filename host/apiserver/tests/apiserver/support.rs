//! Common to all tests: servers, clients and short ways to write objects.

use bulkhead_apiserver::{ApiServer, Clock, Options};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

pub(crate) fn clock() -> Clock {
    Clock::new("2026-01-01T00:00:00Z".parse().unwrap())
}

pub(crate) fn options() -> Options {
    Options::new("host", 1, clock())
}

/// Returns a server with the namespace `default`.
pub(crate) fn server() -> ApiServer {
    server_with(options())
}

pub(crate) fn server_with(options: Options) -> ApiServer {
    let server = ApiServer::new(options);
    let kind = server.kind_id("v1", "Namespace").unwrap();
    server
        .store()
        .create(kind, "", json!({"metadata": {"name": "default"}}))
        .unwrap();
    server
}

pub(crate) fn configmaps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

pub(crate) fn configmap(name: &str, data: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name}, "data": {"key": data}}))
}

pub(crate) async fn create_configmap(server: &ApiServer, name: &str, data: &str) -> ConfigMap {
    configmaps(server)
        .create(&PostParams::default(), &configmap(name, data))
        .await
        .unwrap()
}

pub(crate) async fn create_namespace(client: kube::Client, name: &str) {
    let namespace: Namespace = from(json!({"metadata": {"name": name}}));
    Api::all(client)
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
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

/// Returns the HTTP status and reason of a failed request.
pub(crate) fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not an API error: {other:?}"),
    }
}
