//! Malformed bindings and Works, which Bulkhead never writes.

use serde_json::json;

use super::*;

fn admit_binding(spec: Value, annotations: Value) -> Result<Value, String> {
    let mut whole = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}});
    merge(&mut whole, spec);
    let object = json!({"metadata": {"name": "b", "namespace": "default", "annotations": annotations}, "spec": whole});
    let mut actual = Ok(Value::Null);
    for kind in ["ResourceBinding", "ClusterResourceBinding"] {
        actual = run(
            &create("work.karmada.io", kind),
            object.clone(),
            AdmissionOptions::default(),
        );
    }
    actual
}

#[test]
fn malformed_bindings_are_refused_with_the_field() {
    let check = |spec: Value, expected: &str| {
        let actual = admit_binding(spec, json!({})).err().unwrap_or_default();
        assert!(
            if expected.is_empty() {
                actual.is_empty()
            } else {
                actual.starts_with(expected)
            },
            "{actual}\n{expected}"
        );
    };
    let task = |patch: Value| {
        let mut task = json!({"fromCluster": "m1", "reason": "TaintUntolerated", "producer": "TaintManager"});
        merge(&mut task, patch);
        json!({"gracefulEvictionTasks": [task]})
    };
    let at = |field: &str, rest: &str| format!("spec.gracefulEvictionTasks[0].{field}: {rest}");
    check(task(json!({})), "");
    check(
        task(json!({"purgeMode": "Graciously", "gracePeriodSeconds": 30, "suppressDeletion": false})),
        "",
    );
    check(task(json!({"fromCluster": null})), "spec.gracefulEvictionTasks[0]");
    check(task(json!({"fromCluster": ""})), &at("fromCluster", "Required value"));
    check(task(json!({"reason": ""})), &at("reason", "Required value"));
    check(task(json!({"producer": ""})), &at("producer", "Required value"));
    check(
        task(json!({"reason": "not one word"})),
        &at("reason", "Invalid value: \"not one word\""),
    );
    check(
        task(json!({"reason": "A".repeat(33)})),
        &at("reason", "Invalid value: "),
    );
    check(
        task(json!({"message": "m".repeat(1025)})),
        &at("message", "Invalid value: "),
    );
    check(
        task(json!({"purgeMode": "Eventually"})),
        &at("purgeMode", "Unsupported value: \"Eventually\""),
    );
    check(
        task(json!({"gracePeriodSeconds": -1})),
        &at("gracePeriodSeconds", "Invalid value: -1"),
    );
    check(task(json!({"replicas": -1})), &at("replicas", "Invalid value: -1"));
    check(json!({"clusters": [{"name": "m1", "replicas": 0}]}), "");
    check(
        json!({"clusters": [{"name": ""}]}),
        "spec.clusters[0].name: Required value",
    );
    check(
        json!({"clusters": [{"name": "m1", "replicas": -2}]}),
        "spec.clusters[0].replicas: Invalid value: -2",
    );
    check(json!({"replicas": -2}), "spec.replicas: Invalid value: -2");
    let field = "metadata.annotations[resourcebinding.karmada.io/dependencies]: Invalid value";
    let actual = admit_binding(json!({}), json!({"resourcebinding.karmada.io/dependencies": "{"})).unwrap_err();
    assert!(actual.starts_with(field), "{actual}");
    assert!(admit_binding(json!({}), json!({"resourcebinding.karmada.io/dependencies": "[]"})).is_ok());
}

#[test]
fn a_work_has_to_say_what_it_is_about() {
    let check = |manifest: Value, expected: &str| {
        let object = json!({"metadata": {"name": "w"}, "spec": {"workload": {"manifests": [manifest]}}});
        let actual = run(&create("work.karmada.io", "Work"), object, AdmissionOptions::default()).err();
        assert_eq!(actual.unwrap_or_default(), expected);
    };
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}),
        "",
    );
    let field = |name: &str| format!("spec.workload.manifests[0].{name}: Required value");
    check(
        json!({"kind": "ConfigMap", "metadata": {"name": "c"}}),
        &field("apiVersion"),
    );
    check(json!({"apiVersion": "v1", "metadata": {"name": "c"}}), &field("kind"));
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
        &field("metadata.name"),
    );
    check(json!("text"), &field("apiVersion"));
}
