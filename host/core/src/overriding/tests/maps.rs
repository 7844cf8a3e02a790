//! Cases of `labelsOverrider` and `annotationsOverrider`.

use super::*;

fn overrider(list: &str, operator: &str, value: Value) -> Value {
    json!({list: [{"operator": operator, "value": value}]})
}

#[test]
fn labels_are_added_replaced_and_removed_by_key() {
    let check = |operator: &str, value: Value, expected: Value| {
        let overriders = overrider("labelsOverrider", operator, value);
        check(&workload("Deployment"), overriders, "/metadata/labels", Some(expected));
    };
    check(
        "add",
        json!({"x/y": "1", "app": "shop"}),
        json!({"app": "shop", "a.b/c": "d", "x/y": "1"}),
    );
    check(
        "replace",
        json!({"a.b/c": "e", "x": "1"}),
        json!({"app": "web", "a.b/c": "e"}),
    );
    check("remove", json!({"a.b/c": "ignored", "x": ""}), json!({"app": "web"}));
}

#[test]
fn absent_annotations_are_made_only_by_add() {
    let check = |operator: &str, value: Value, expected: Option<Value>| {
        let overriders = overrider("annotationsOverrider", operator, value);
        let mut object = workload("Deployment");
        check(&object, overriders.clone(), "/metadata/annotations", expected.clone());
        object["metadata"]["annotations"] = Value::Null;
        let expected = expected.or(Some(Value::Null));
        super::check(&object, overriders, "/metadata/annotations", expected);
    };
    check("add", json!({"a": "b"}), Some(json!({"a": "b"})));
    check("add", json!({}), None);
    check("replace", json!({"a": "b"}), None);
    check("remove", json!({"a": ""}), None);
}

#[test]
fn labels_of_another_shape_are_an_error() {
    let mut object = workload("Deployment");
    object["metadata"]["labels"] = json!(["app"]);
    let overriders = overrider("labelsOverrider", "add", json!({"a": "b"}));
    fails(
        &object,
        overriders,
        "labelsOverrider[0]: metadata.labels is a list, not an object",
    );
}
