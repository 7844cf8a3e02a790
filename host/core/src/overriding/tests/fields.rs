//! Cases of `fieldOverrider`.

use super::*;

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"},
        "data": {
            "app.json": r#"{"db": {"host": "a", "port": 1}, "list": [1, 2]}"#,
            "app.yaml": "# settings\ndb:\n  host: a\n  mode: 0644\n  tls: yes\nlist:\n- 1\n- 2\ntext: |\n  a: b\n",
            "empty": "", "broken": "{", "many": "a: 1\n---\nb: 2\n",
        },
        "count": 3,
    })
}

fn overrider(path: &str, format: &str, operations: Value) -> Value {
    json!({"fieldOverrider": [{"fieldPath": path, format: operations}]})
}

#[test]
fn a_json_text_is_changed_by_operations() {
    let check = |operation: Value, expected: &str| {
        let overriders = overrider("/data/app.json", "json", json!([operation]));
        check(&config_map(), overriders, "/data/app.json", Some(json!(expected)));
    };
    check(
        json!({"subPath": "/db/host", "operator": "replace", "value": "b"}),
        r#"{"db":{"host":"b","port":1},"list":[1,2]}"#,
    );
    check(json!({"subPath": "/db", "operator": "remove"}), r#"{"list":[1,2]}"#);
    check(
        json!({"subPath": "/list/-", "operator": "add", "value": {"a": null}}),
        r#"{"db":{"host":"a","port":1},"list":[1,2,{"a":null}]}"#,
    );
    check(
        json!({"subPath": "", "operator": "replace", "value": {"a": 1}}),
        r#"{"a":1}"#,
    );
}

#[test]
fn a_yaml_text_is_changed_by_operations() {
    let operations = json!([
        {"subPath": "/db/host", "operator": "replace", "value": "b"},
        {"subPath": "/list/0", "operator": "remove"},
        {"subPath": "/db/user", "operator": "add", "value": "yes"},
    ]);
    let changed = overridden(&config_map(), overrider("/data/app.yaml", "yaml", operations)).unwrap();
    let text = changed["data"]["app.yaml"].as_str().unwrap();
    let read: Value = serde_saphyr::from_str(text).unwrap();
    let expected = json!({
        "db": {"host": "b", "mode": 420, "tls": true, "user": "yes"}, "list": [2], "text": "a: b\n",
    });
    assert_eq!(read, expected, "{text}");
    assert!(text.contains("tls: true\n") && text.ends_with('\n'), "{text}");
    assert!(text.contains("user: \"yes\"") || text.contains("user: 'yes'"), "{text}");
}

#[test]
fn a_repeated_key_of_yaml_has_its_last_value() {
    let mut object = config_map();
    object["data"]["app.yaml"] = json!("a: 1\na: 2\nb: 3\n");
    let overriders = overrider(
        "/data/app.yaml",
        "yaml",
        json!([{"subPath": "/b", "operator": "remove"}]),
    );
    check(&object, overriders, "/data/app.yaml", Some(json!("a: 2\n")));
}

#[test]
fn operations_on_one_text_see_the_results_of_earlier_ones() {
    let change = |path: &str, operator: &str, value: Value| {
        let operations = json!([{"subPath": path, "operator": operator, "value": value}]);
        json!({"fieldPath": "/data/app.json", "json": operations})
    };
    let overriders = json!({"fieldOverrider": [
        change("/new", "add", json!({})), change("/new/a", "add", json!(1)), change("/db", "remove", Value::Null),
    ]});
    let expected = json!(r#"{"list":[1,2],"new":{"a":1}}"#);
    check(&config_map(), overriders, "/data/app.json", Some(expected));
}

#[test]
fn texts_without_a_change_stay() {
    for overriders in [
        json!({"fieldOverrider": [{"fieldPath": "/data/app.json"}]}),
        json!({"fieldOverrider": [{"fieldPath": "/absent"}]}),
        overrider(
            "/data/empty",
            "json",
            json!([{"subPath": "/a", "operator": "add", "value": 1}]),
        ),
    ] {
        assert_eq!(overridden(&config_map(), overriders), Ok(config_map()));
    }
}

#[test]
fn a_field_overrider_that_cannot_be_applied_names_its_cause() {
    let remove =
        |path: &str| json!([{"subPath": "/db", "operator": "remove"}, {"subPath": path, "operator": "remove"}]);
    let fails = |path: &str, format: &str, sub_path: &str, expected: &str| {
        fails(
            &config_map(),
            overrider(path, format, remove(sub_path)),
            &format!("fieldOverrider[0]{expected}"),
        );
    };
    fails(
        "/data/absent",
        "json",
        "/a",
        ": fieldPath \"/data/absent\" does not exist",
    );
    fails("data", "yaml", "/a", ": fieldPath \"data\" does not exist");
    fails(
        "/count",
        "yaml",
        "/a",
        ": fieldPath \"/count\" is a number, not a string",
    );
    fails("", "json", "/a", ": fieldPath \"\" is an object, not a string");
    fails(
        "/data/app.json",
        "json",
        "/db",
        ".json[1]: cannot remove \"/db\": the path does not exist",
    );
    fails(
        "/data/app.yaml",
        "yaml",
        "/a/b",
        ".yaml[1]: cannot remove \"/a/b\": the path does not exist",
    );
    for (path, format, expected) in [
        ("/data/broken", "json", ": the text at \"/data/broken\" is no JSON: EOF"),
        ("/data/broken", "yaml", ": the text at \"/data/broken\" is no YAML: "),
        ("/data/many", "yaml", ": the text at \"/data/many\" is no YAML: "),
    ] {
        let error = overridden(&config_map(), overrider(path, format, remove("/a"))).unwrap_err();
        assert!(error.contains(&format!("fieldOverrider[0]{expected}")), "{error}");
    }
}
