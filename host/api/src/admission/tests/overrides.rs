use serde_json::json;

use super::*;

/// Admits an override policy in namespace `shop`, or a ClusterOverridePolicy; returns its spec.
fn admitted(kind: &str, spec: &Value) -> Result<Value, String> {
    let request = Request {
        namespace: (kind == "OverridePolicy").then_some("shop"),
        ..create("policy.karmada.io", kind)
    };
    let object = json!({"metadata": {"name": "p", "namespace": request.namespace}, "spec": spec});
    run(&request, object, AdmissionOptions::default()).map(|mut object| object["spec"].take())
}

fn refused(spec: Value, expected: &str) {
    for kind in ["OverridePolicy", "ClusterOverridePolicy"] {
        let error = admitted(kind, &spec).expect_err(expected);
        assert!(error.starts_with(expected), "{spec}: {error}");
    }
}

fn rule(overriders: Value) -> Value {
    json!({"overrideRules": [{"overriders": {}}, {"overriders": overriders}]})
}

#[test]
fn selectors_of_an_override_policy_get_its_namespace() {
    let selector = |namespace: Option<&str>| {
        let mut selector = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        if let Some(namespace) = namespace {
            selector["namespace"] = json!(namespace);
        }
        json!({"resourceSelectors": [selector]})
    };
    let (open, own) = (selector(None), selector(Some("shop")));
    assert_eq!(admitted("OverridePolicy", &open), Ok(own.clone()));
    assert_eq!(admitted("OverridePolicy", &own), Ok(own.clone()));
    assert_eq!(admitted("ClusterOverridePolicy", &open), Ok(open));
    assert_eq!(admitted("ClusterOverridePolicy", &own), Ok(own));
    let other = selector(Some("other"));
    assert_eq!(admitted("ClusterOverridePolicy", &other), Ok(other.clone()));
    assert_eq!(
        admitted("OverridePolicy", &other),
        Err(
            "spec.resourceSelectors[0].namespace: Invalid value: \"other\": the resource selector must be in the \
             namespace of the policy"
                .to_owned()
        )
    );
}

#[test]
fn the_namespace_of_the_object_counts_if_the_request_has_none() {
    let object = json!({"metadata": {"name": "p", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}]}});
    let request = create("policy.karmada.io", "OverridePolicy");
    let admitted = run(&request, object, AdmissionOptions::default()).unwrap();
    assert_eq!(admitted["spec"]["resourceSelectors"][0]["namespace"], "shop");
}

#[test]
fn the_deprecated_fields_cannot_be_combined_with_rules() {
    let overriders = json!({"plaintext": [{"path": "/a", "operator": "remove"}]});
    let target = json!({"clusterNames": ["m1"]});
    for spec in [
        json!({"targetCluster": target, "overriders": overriders}),
        json!({"overriders": overriders}),
        json!({"overrideRules": [{"targetCluster": target, "overriders": overriders}]}),
        json!({}),
    ] {
        assert_eq!(admitted("OverridePolicy", &spec), Ok(spec));
    }
    for rules in [json!([]), json!([{"overriders": overriders}])] {
        let expected = "spec.targetCluster: Invalid value: {\"clusterNames\":[\"m1\"]}: overrideRules and";
        refused(json!({"overrideRules": rules, "targetCluster": target}), expected);
        let expected = "spec.overriders: Invalid value: ";
        refused(json!({"overrideRules": rules, "overriders": overriders}), expected);
        let field = json!({"fieldOverrider": [{"fieldPath": "/a"}]});
        refused(json!({"overrideRules": rules, "overriders": field}), expected);
    }
}

#[test]
fn fields_that_a_policy_does_not_have_are_dropped() {
    let spec = json!({"overrideRules": [{"overriders": {}, "targetClusters": {"clusterNames": ["m1"]}}], "other": 1});
    let kept = json!({"overrideRules": [{"overriders": {}}]});
    assert_eq!(admitted("ClusterOverridePolicy", &spec), Ok(kept));
}

#[test]
fn required_fields_and_operators_are_those_of_the_definition() {
    let at = |rest: &str| format!("spec.overrideRules[1].overriders.{rest}");
    let check = |overriders: Value, expected: &str| refused(rule(overriders), &at(expected));
    refused(
        json!({"overrideRules": [{}]}),
        "spec.overrideRules[0].overriders: Required value",
    );
    check(
        json!({"plaintext": [{"operator": "add"}]}),
        "plaintext[0].path: Required value",
    );
    check(
        json!({"plaintext": [{"path": "/a"}]}),
        "plaintext[0].operator: Required value",
    );
    check(
        json!({"plaintext": [{"path": "/a", "operator": "move"}]}),
        "plaintext[0].operator: Invalid value: unknown variant `move`",
    );
    check(
        json!({"imageOverrider": [{"operator": "add"}]}),
        "imageOverrider[0].component: Required value",
    );
    check(
        json!({"argsOverrider": [{"operator": "add", "value": ["a"]}]}),
        "argsOverrider[0].containerName: Required value",
    );
    check(
        json!({"argsOverrider": [{"containerName": "c", "operator": "replace"}]}),
        "argsOverrider[0].operator: Invalid value: unknown variant `replace`",
    );
    check(
        json!({"labelsOverrider": [{"operator": "add"}]}),
        "labelsOverrider[0].value: Required value",
    );
    check(
        json!({"fieldOverrider": [{"json": [{"subPath": "/a", "operator": "remove"}]}]}),
        "fieldOverrider[0].fieldPath: Required value",
    );
}

#[test]
fn labels_and_annotations_are_checked() {
    let of = |list: &str, key: &str, value: &str| rule(json!({list: [{"operator": "add", "value": {key: value}}]}));
    let check = |list: &str, key: &str, value: &str, expected: &str| {
        let expected = format!("spec.overrideRules[1].overriders.{list}[0].value: {expected}");
        refused(of(list, key, value), &expected);
    };
    check(
        "labelsOverrider",
        "a~b",
        "c",
        "Invalid value: \"a~b\": name part must consist of",
    );
    check(
        "labelsOverrider",
        "A.b/c",
        "d",
        "Invalid value: \"A.b/c\": prefix part a lowercase RFC 1123",
    );
    check(
        "labelsOverrider",
        "a",
        "b c",
        "Invalid value: \"b c\": a valid label must be",
    );
    check(
        "annotationsOverrider",
        "a~b",
        "c",
        "Invalid value: \"a~b\": name part must consist of",
    );
    let long = "x".repeat(256 * 1024);
    check(
        "annotationsOverrider",
        "a",
        &long,
        "Too long: may not be more than 262144 bytes",
    );
    for spec in [
        of("annotationsOverrider", "A.b/c", "any value, of any length"),
        of("annotationsOverrider", "a", &long[1..]),
        of("labelsOverrider", "a.b/c", ""),
    ] {
        assert_eq!(admitted("ClusterOverridePolicy", &spec), Ok(spec));
    }
}

#[test]
fn paths_and_values_are_checked() {
    let check = |overriders: Value, expected: &str| {
        refused(
            rule(overriders),
            &format!("spec.overrideRules[1].overriders.{expected}"),
        );
    };
    let image = |path: &str| {
        let predicate = json!({"path": path});
        json!({"imageOverrider": [{"predicate": predicate, "component": "Tag", "operator": "remove"}]})
    };
    check(
        image("spec/image"),
        "imageOverrider[0].predicate.path: Invalid value: \"spec/image\": a JSON pointer must",
    );
    let field = |path: &str, change: Value| {
        let mut overrider = json!({"fieldPath": path});
        merge(&mut overrider, change);
        json!({"fieldOverrider": [overrider]})
    };
    let remove = json!({"subPath": "/a", "operator": "remove"});
    check(
        field("/data", json!({})),
        "fieldOverrider[0]: Required value: one of json and yaml must be set",
    );
    check(
        field("/data", json!({"json": [remove], "yaml": [remove]})),
        "fieldOverrider[0]: Invalid value: {",
    );
    check(
        field("data", json!({"json": [remove]})),
        "fieldOverrider[0].fieldPath: Invalid value: \"data\": a JSON",
    );
    for list in ["json", "yaml"] {
        let check = |operation: Value, expected: &str| {
            let overriders = field("/data", json!({list: [remove, operation]}));
            check(overriders, &format!("fieldOverrider[0].{list}[1].{expected}"));
        };
        check(
            json!({"subPath": "a", "operator": "remove"}),
            "subPath: Invalid value: \"a\": a JSON pointer must",
        );
        let required = "value: Invalid value: null: a value is required for add and replace";
        check(json!({"subPath": "/a", "operator": "add"}), required);
        check(json!({"subPath": "/a", "operator": "replace", "value": null}), required);
        let remove = json!({"subPath": "/a", "operator": "remove", "value": 0});
        check(remove, "value: Invalid value: 0: a value is not allowed for remove");
    }
    // Paths of `plaintext` are not validated, as in Karmada.
    let spec = rule(json!({"plaintext": [{"path": "a", "operator": "add", "value": 1}]}));
    assert_eq!(
        admitted("OverridePolicy", &json!({"overrideRules": spec["overrideRules"]})),
        Ok(spec)
    );
}

#[test]
fn the_fields_of_a_target_are_checked() {
    let target = json!({"fieldSelector": {"matchExpressions": [{"key": "city", "operator": "In", "values": ["x"]}]}});
    let detail = "fieldSelector: Invalid value: ";
    refused(
        json!({"targetCluster": target}),
        &format!("spec.targetCluster.{detail}"),
    );
    let rules = json!([{"targetCluster": target, "overriders": {}}]);
    refused(
        json!({"overrideRules": rules}),
        &format!("spec.overrideRules[0].targetCluster.{detail}"),
    );
}
