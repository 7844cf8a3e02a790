use serde_json::json;

use super::*;

/// Returns a pod template that is long enough for a digest.
fn template() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example.com/shop/{name}:1.2.3"), "args": ["--verbose", "--port=8080"],
            "resources": {"requests": {"cpu": "1"}}, "env": [{"name": "MODE", "value": "hunter2"}],
        })
    };
    json!({"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [container("web"), container("proxy")]}})
}

#[test]
fn an_object_keeps_what_decisions_read() {
    let metadata = json!({
        "name": "shop", "namespace": "default", "uid": "u", "generation": 3, "labels": {"app": "shop"},
        "annotations": {"resourcetemplate.karmada.io/generation": "2", "bulkhead.dev/decision": "7"},
    });
    let status = json!({
        "observedGeneration": 3, "replicas": 2, "phase": "Running",
        "conditions": [{"type": "Available", "status": "True", "message": "Deployment has minimum availability."}],
    });
    let spec = json!({
        "replicas": 2, "paused": false, "type": "LoadBalancer", "selector": {"matchLabels": {"app": "shop"}},
        "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "a", "operator": "Exists"}],
    });
    let whole = json!({"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": spec, "status": status});
    let mut value = whole.clone();
    assert_eq!(object(&mut value), 0);
    assert_eq!(value, whole);
}

#[test]
fn everything_else_becomes_a_digest_that_tells_two_versions_apart() {
    let digest = |template: Value| {
        let mut value = json!({"kind": "Deployment", "spec": {"replicas": 2, "template": template}});
        assert_eq!(object(&mut value), 1);
        assert_eq!(value["spec"]["replicas"], 2);
        let again = value.clone();
        assert_eq!(object(&mut value), 0, "a redacted object stays as it is");
        assert_eq!(value, again);
        value["spec"]["template"].as_str().unwrap().to_owned()
    };
    let (first, mut other) = (digest(template()), template());
    assert!(first.starts_with("(sha256 ") && first.ends_with(')'), "{first}");
    assert_eq!(first, digest(template()));
    other["spec"]["containers"][0]["image"] = json!("registry.example.com/shop/web:1.2.4");
    assert_ne!(first, digest(other));
    // Known secrets are not part of the digest, so their values cannot be guessed from it.
    let mut secret = template();
    secret["spec"]["containers"][0]["env"][0]["value"] = json!("another");
    assert_eq!(first, digest(secret));
    // A short value has no digest, because it could be guessed.
    let mut value = json!({"metadata": {"annotations": {"door": "1234"}}, "spec": {"auth": {"pin": 1234}}});
    assert_eq!(object(&mut value), 2);
    assert_eq!(
        value,
        json!({"metadata": {"annotations": {"door": REDACTED}}, "spec": {"auth": REDACTED}})
    );
}

#[test]
fn names_of_secrets_cover_values_of_every_type_and_references_to_secrets_stay() {
    let mut value = json!({
        "password": 1234, "passwords": ["a"], "credentials": {"pass": "a"}, "tokens": {"a": true}, "secretValue": "a",
        "secretRef": {"name": "a"}, "secretName": "a", "ready": true, "replicas": 3,
    });
    assert_eq!(kept(&mut value), 5);
    let expected = json!({
        "password": REDACTED, "passwords": REDACTED, "credentials": REDACTED, "tokens": REDACTED, "secretValue": REDACTED,
        "secretRef": {"name": "a"}, "secretName": "a", "ready": true, "replicas": 3,
    });
    assert_eq!(value, expected);
}
