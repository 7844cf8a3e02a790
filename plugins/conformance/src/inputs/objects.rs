//! Objects as member clusters report them.
//!
//! A kind that the suite does not know gets the fields that most workloads have. Cases provide objects with
//! kind-specific fields.

use serde_json::{Value, json};

/// Returns an object that is fully reconciled.
pub(crate) fn settled((api_version, kind): (&str, &str)) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": "nginx", "namespace": "default", "uid": "6f1c7f2e-0f4b-4c63-9d3a-1d2f1a7f0c55", "generation": 2,
            "resourceVersion": "4711", "labels": {"app": "nginx"}, "annotations": {"example.io/team": "web"},
        },
        "spec": {
            "replicas": 3,
            "type": "LoadBalancer",
            "paused": false,
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {
                "metadata": {"labels": {"app": "nginx"}},
                "spec": {
                    "containers": [{
                        "name": "nginx", "image": "nginx:1.27", "ports": [{"containerPort": 80}],
                        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
                        "envFrom": [{"configMapRef": {"name": "settings"}}],
                    }],
                    "volumes": [{"name": "tls", "secret": {"secretName": "certificate"}}],
                    "serviceAccountName": "nginx",
                },
            },
        },
        "status": {
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3, "numberReady": 3,
            "currentHealthy": 3, "desiredHealthy": 2, "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T23:00:00Z"},
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            ],
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
        },
    })
}

/// Returns objects of a kind in regular and unusual states, with their descriptions.
pub(crate) fn plain(of: (&str, &str)) -> Vec<(&'static str, Value)> {
    let with = |status: Value| {
        let mut object = settled(of);
        object["status"] = status;
        object
    };
    let mut fresh = settled(of);
    if let Some(members) = fresh.as_object_mut() {
        members.remove("status");
    }
    let lagging = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1, "availableReplicas": 1,
        "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1, "numberReady": 1,
        "currentHealthy": 1, "desiredHealthy": 2, "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
    });
    vec![
        ("with all replicas ready", settled(of)),
        ("with missing replicas", with(lagging)),
        (
            "whose status is about an older generation",
            with(json!({"observedGeneration": 1, "readyReplicas": 3})),
        ),
        ("whose status is empty", with(json!({}))),
        ("without a status", fresh),
    ]
}

/// Returns an object with only `apiVersion` and `kind`.
pub(crate) fn empty((api_version, kind): (&str, &str)) -> Value {
    json!({"apiVersion": api_version, "kind": kind})
}
