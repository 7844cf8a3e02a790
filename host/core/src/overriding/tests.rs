//! Cases of every overrider, of the selection by cluster, and of the record.

mod fields;
mod images;
mod lists;
mod maps;
mod plaintext;

use serde_json::json;

use super::*;

/// Returns a cluster in region `eu` with the label `tier: gold`.
fn cluster(name: &str) -> Cluster {
    serde_json::from_value(json!({
        "name": name, "labels": {"tier": "gold"}, "spec": {"syncMode": "Push", "region": "eu"},
    }))
    .unwrap()
}

fn rules(rules: Value) -> Vec<OverrideRule> {
    serde_json::from_value(rules).unwrap_or_else(|error| panic!("{error}"))
}

fn policy<'a>(namespace: &'a str, name: &'a str, of: Value) -> Policy<'a> {
    Policy {
        namespace,
        name,
        rules: Cow::Owned(rules(of)),
    }
}

/// Applies overriders of one rule for all clusters.
fn overridden(object: &Value, overriders: Value) -> Result<Value, String> {
    let policies = [policy("shop", "p", json!([{"overriders": overriders}]))];
    let overridden = apply(object.clone(), &cluster("m1"), &policies);
    overridden
        .map(|overridden| overridden.object)
        .map_err(|failed| failed.to_string())
}

fn check(object: &Value, overriders: Value, pointer: &str, expected: Option<Value>) {
    let shown = overriders.to_string();
    let changed = overridden(object, overriders).unwrap_or_else(|error| panic!("{shown}: {error}"));
    assert_eq!(changed.pointer(pointer), expected.as_ref(), "{shown}");
}

fn fails(object: &Value, overriders: Value, expected: &str) {
    let shown = overriders.to_string();
    let error = overridden(object, overriders).expect_err(&shown);
    let start = "cannot apply OverridePolicy shop/p: rule 0: ";
    assert_eq!(error.strip_prefix(start), Some(expected), "{shown}");
}

/// Returns an object of a kind with a pod template of two containers.
fn workload(kind: &str) -> Value {
    let pod = json!({
        "initContainers": [{"name": "init", "image": "busybox:1"}],
        "containers": [
            {"name": "web", "image": "nginx:1.25", "command": ["nginx"], "args": ["-g", "daemon off;", "-g"]},
            {"name": "log", "image": "registry.example:5000/tools/log"},
        ],
    });
    let spec = match kind {
        "Pod" => pod,
        _ => json!({"replicas": 2, "template": {"spec": pod}}),
    };
    let metadata = json!({"name": "web", "namespace": "shop", "labels": {"app": "web", "a.b/c": "d"}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

#[test]
fn the_overriders_of_a_rule_are_applied_in_karmadas_order() {
    // Each overrider needs, or overwrites, the result of the one before.
    let overriders = json!({
        "plaintext": [
            {"path": "/metadata/annotations/c", "operator": "replace", "value": "plain"},
            {"path": "/spec/template/spec/containers/0/args/0", "operator": "replace", "value": "plain"},
        ],
        "fieldOverrider": [{"fieldPath": "/metadata/annotations/doc",
            "json": [{"subPath": "/a", "operator": "add", "value": 1}]}],
        "annotationsOverrider": [{"operator": "add", "value": {"doc": "{}", "c": "d"}}],
        "labelsOverrider": [{"operator": "add", "value": {"a": "b"}}, {"operator": "replace", "value": {"a": "c"}}],
        "argsOverrider": [{"containerName": "log", "operator": "add", "value": ["a"]},
            {"containerName": "web", "operator": "remove", "value": ["daemon off;"]}],
        "imageOverrider": [{"component": "Registry", "operator": "add", "value": "a.example"},
            {"component": "Registry", "operator": "add", "value": ":1"}],
    });
    let mut object = workload("Deployment");
    object["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .pop();
    let changed = overridden(&object, overriders).unwrap();
    assert_eq!(
        changed["metadata"]["annotations"],
        json!({"doc": "{\"a\":1}", "c": "plain"})
    );
    assert_eq!(changed["metadata"]["labels"]["a"], json!("c"));
    let container = &changed["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["plain", "-g"]));
    assert_eq!(container["image"], json!("a.example:1/nginx:1.25"));
}

#[test]
fn rules_apply_to_the_clusters_that_they_select() {
    let label = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {"to": value}}]});
    let by_region = json!({"fieldSelector": {"matchExpressions": [
        {"key": "region", "operator": "In", "values": ["eu"]}]}, "exclude": ["m3"]});
    let by_label = json!({"labelSelector": {"matchLabels": {"tier": "silver"}}});
    let of = json!([
        {"targetCluster": by_region, "overriders": label("region")},
        {"targetCluster": by_label, "overriders": label("label")},
        {"targetCluster": {"clusterNames": ["m2"]}, "overriders": label("name")},
    ]);
    for (name, expected, count) in [
        ("m1", json!("region"), 1),
        ("m2", json!("name"), 2),
        ("m3", Value::Null, 0),
    ] {
        let policies = [policy("shop", "p", of.clone())];
        let overridden = apply(workload("Deployment"), &cluster(name), &policies).unwrap();
        let label = overridden
            .object
            .pointer("/metadata/labels/to")
            .cloned()
            .unwrap_or_default();
        assert_eq!((label, overridden.applied.len()), (expected, count), "{name}");
    }
    // An empty selector selects every cluster.
    let policies = [policy(
        "shop",
        "p",
        json!([{"targetCluster": {}, "overriders": label("all")}]),
    )];
    assert_eq!(
        apply(workload("Job"), &cluster("m3"), &policies).unwrap().applied.len(),
        1
    );
}

#[test]
fn policies_apply_in_the_given_order_and_the_last_wins() {
    let tag = |tag: &str| {
        json!([{"overriders": {"imageOverrider": [
        {"component": "Tag", "operator": "replace", "value": tag}]}}])
    };
    let policies = [
        policy("", "b", tag("1")),
        policy("shop", "c", tag("2")),
        policy("shop", "a", tag("3")),
    ];
    let overridden = apply(workload("Pod"), &cluster("m1"), &policies).unwrap();
    assert_eq!(overridden.object["spec"]["containers"][0]["image"], json!("nginx:3"));
    let names: Vec<_> = overridden.applied.iter().map(|applied| applied.name.as_str()).collect();
    assert_eq!(names, ["b", "c", "a"]);
    let none = apply(workload("Pod"), &cluster("m1"), &[]).unwrap();
    assert_eq!(
        none,
        Overridden {
            object: workload("Pod"),
            applied: Vec::new()
        }
    );
}

#[test]
fn an_error_names_policy_and_rule() {
    let ok = json!({"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]});
    let broken = json!({"plaintext": [{"path": "/spec/x", "operator": "remove"}]});
    let policies = [policy("", "all", json!([{"overriders": ok}, {"overriders": broken}]))];
    let failed = apply(workload("Pod"), &cluster("m1"), &policies).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "cannot apply ClusterOverridePolicy all: rule 1: plaintext[0]: cannot remove \"/spec/x\": the path does not exist"
    );
    // A rule for another cluster is not applied, so it cannot fail.
    let elsewhere = json!([{"targetCluster": {"clusterNames": ["m2"]}, "overriders": broken}]);
    assert!(apply(workload("Pod"), &cluster("m1"), &[policy("", "all", elsewhere)]).is_ok());
}

#[test]
fn the_record_has_karmadas_shape() {
    let of = |name: &str, overriders: Value| Applied {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        overriders: serde_json::from_value(overriders).unwrap(),
    };
    assert_eq!(record(&[]), None);
    let label = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {"a": value}}]});
    let remove = json!({"plaintext": [{"path": "/a", "operator": "remove"}], "fieldOverrider": [{"fieldPath": "/b",
        "yaml": [{"subPath": "/c", "operator": "remove"}]}]});
    let applied = [of("b", label("1")), of("a", label("2")), of("b", remove)];
    let expected = json!([
        {"policyName": "a", "overriders": label("2")},
        {"policyName": "b", "overriders": label("1")},
        {"policyName": "b", "overriders": {
            "plaintext": [{"path": "/a", "operator": "remove", "value": null}],
            "fieldOverrider": [{"fieldPath": "/b", "yaml": [{"subPath": "/c", "operator": "remove", "value": null}]}],
        }},
    ]);
    let written: Value = serde_json::from_str(&record(&applied).unwrap()).unwrap();
    assert_eq!(written, expected);
}

/// Texts that Karmada 1.19 writes, and texts in the order of its structs: a take-over must not rewrite a Work.
#[test]
fn the_record_is_karmadas_text_to_the_byte() {
    for expected in [
        r#"[{"policyName":"over","overriders":{"imageOverrider":[{"component":"Registry","operator":"replace","value":"registry.example"}]}}]"#,
        concat!(
            r#"[{"policyName":"all","overriders":{"plaintext":[{"path":"/a","operator":"add","value":{"b":1,"c":[true]}},"#,
            r#"{"path":"/d","operator":"remove","value":null}],"#,
            r#""imageOverrider":[{"predicate":{"path":"/i"},"component":"Tag","operator":"remove"}],"#,
            r#""commandOverrider":[{"containerName":"web","operator":"add","value":["sh","-c","a \u0026\u0026 b \u003e c"]}],"#,
            r#""argsOverrider":[{"containerName":"web","operator":"remove","value":["-v"]}],"#,
            r#""labelsOverrider":[{"operator":"add","value":{"tier":"gold"}}],"#,
            r#""annotationsOverrider":[{"operator":"replace","value":{"owner":"\u003cshop\u003e"}}],"#,
            r#""fieldOverrider":[{"fieldPath":"/data/f","yaml":[{"subPath":"/x","operator":"replace","value":"y"}]},"#,
            r#"{"fieldPath":"/data/g","json":[{"subPath":"/z","operator":"remove","value":null}]}]}}]"#,
        ),
    ] {
        let items: Value = serde_json::from_str(expected).unwrap();
        let applied = Applied {
            namespace: "shop".to_owned(),
            name: items[0]["policyName"].as_str().unwrap().to_owned(),
            overriders: serde_json::from_value(items[0]["overriders"].clone()).unwrap(),
        };
        assert_eq!(record(&[applied]).as_deref(), Some(expected));
    }
}
