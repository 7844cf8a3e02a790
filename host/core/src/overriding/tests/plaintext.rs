//! Cases of `plaintext`.

use super::*;

fn operation(operator: &str, path: &str, value: Value) -> Value {
    json!({"path": path, "operator": operator, "value": value})
}

fn one(operator: &str, path: &str, value: Value) -> Value {
    json!({"plaintext": [operation(operator, path, value)]})
}

#[test]
fn paths_are_added_replaced_and_removed() {
    let object = workload("Deployment");
    let replicas = "/spec/replicas";
    check(&object, one("replace", replicas, json!(5)), replicas, Some(json!(5)));
    check(&object, one("add", replicas, json!(5)), replicas, Some(json!(5)));
    check(&object, one("remove", replicas, Value::Null), replicas, None);
    check(
        &object,
        one("add", "/spec/paused", Value::Null),
        "/spec/paused",
        Some(Value::Null),
    );
    check(
        &object,
        one("remove", "/metadata/labels/a.b~1c", Value::Null),
        "/metadata/labels",
        Some(json!({"app": "web"})),
    );
}

#[test]
fn an_index_may_count_from_the_end() {
    let object = workload("Pod");
    let args = "/spec/containers/0/args";
    let check = |operator: &str, index: &str, expected: Value| {
        check(
            &object,
            one(operator, &format!("{args}/{index}"), json!("x")),
            args,
            Some(expected),
        );
    };
    check("add", "-", json!(["-g", "daemon off;", "-g", "x"]));
    check("add", "-1", json!(["-g", "daemon off;", "-g", "x"]));
    check("add", "-2", json!(["-g", "daemon off;", "x", "-g"]));
    check("add", "0", json!(["x", "-g", "daemon off;", "-g"]));
    check("replace", "-1", json!(["-g", "daemon off;", "x"]));
    check("remove", "-3", json!(["daemon off;", "-g"]));
    super::check(
        &object,
        one("remove", "/spec/containers/-2/args", Value::Null),
        args,
        None,
    );
    let error = format!("plaintext[0]: \"{args}/-4\": the list has 3 items");
    fails(&object, one("remove", &format!("{args}/-4"), Value::Null), &error);
}

#[test]
fn a_path_that_does_not_exist_is_an_error() {
    let object = workload("Deployment");
    let check = |operator: &str, path: &str| {
        let expected = format!("plaintext[0]: cannot {operator} {path:?}: the path does not exist");
        fails(&object, one(operator, path, json!(1)), &expected);
    };
    check("remove", "/spec/paused");
    check("replace", "/spec/paused");
    check("add", "/spec/strategy/type");
    check("add", "/spec/template/spec/containers/3");
    check("remove", "/spec/template/spec/containers/2");
    check("add", "/spec/replicas/0");
    let malformed = overridden(&object, one("add", "spec/replicas", json!(1))).unwrap_err();
    assert!(
        malformed.contains("plaintext[0]: \"spec/replicas\" is no JSON pointer"),
        "{malformed}"
    );
}

#[test]
fn a_failure_names_the_operation() {
    let operations = json!([
        operation("add", "/spec/a", json!(1)),
        operation("remove", "/spec/b", Value::Null)
    ]);
    let expected = "plaintext[1]: cannot remove \"/spec/b\": the path does not exist";
    fails(&workload("Deployment"), json!({"plaintext": operations}), expected);
    let many = vec![operation("add", "/spec/a", json!(1)); 10_001];
    fails(
        &workload("Deployment"),
        json!({"plaintext": many}),
        "plaintext has 10001 operations; the limit is 10000",
    );
}

#[test]
fn the_identity_of_the_object_stays() {
    let object = workload("Deployment");
    let check = |path: &str, value: Value, expected: &str| {
        fails(
            &object,
            one("replace", path, value),
            &format!("{expected}, which no override may do"),
        );
    };
    check("/kind", json!("Role"), "kind changes from \"Deployment\" to \"Role\"");
    check(
        "/metadata/name",
        json!("x"),
        "metadata.name changes from \"web\" to \"x\"",
    );
    check(
        "/metadata/namespace",
        json!("kube-system"),
        "metadata.namespace changes from \"shop\" to \"kube-system\"",
    );
    check(
        "/apiVersion",
        json!("x/v1"),
        "the API group changes from \"apps\" to \"x\"",
    );
    check("", json!({}), "the API group changes from \"apps\" to \"\"");
    let version = "/apiVersion";
    super::check(
        &object,
        one("replace", version, json!("apps/v2")),
        version,
        Some(json!("apps/v2")),
    );
}
