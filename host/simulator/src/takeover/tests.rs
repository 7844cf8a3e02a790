use std::collections::BTreeMap;

use bulkhead_apiserver::Content;
use serde_json::{Value, json};

use super::changes::{ObjectId, compare};
use super::{Change, Effect};

type Objects = BTreeMap<ObjectId, Content>;

fn objects(all: &[Value]) -> Objects {
    let one = |object: &Value| (ObjectId::of(object), Content::from(object.clone()));
    all.iter().map(one).collect()
}

/// Compares two versions of one object.
fn changes(before: &Value, after: &Value) -> Vec<Change> {
    compare(
        &objects(std::slice::from_ref(before)),
        &objects(std::slice::from_ref(after)),
    )
}

/// Returns effect and paths of each change.
fn effects(changes: &[Change]) -> Vec<(Effect, Vec<&str>)> {
    let all = changes.iter().map(|change| {
        let paths = change.fields.iter().map(|field| field.path.as_str());
        (change.effect, paths.collect())
    });
    all.collect()
}

fn work(manifest: &Value, annotation: &str) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "name": "web", "namespace": "karmada-es-m1", "annotations": {"a/b": annotation},
            "managedFields": [
                {"manager": "first", "time": "2026-08-01T10:00:00Z", "fieldsV1": {"f:spec": {"f:workload": {"f:manifests": {}}}}},
                {"manager": "last", "time": "2026-08-01T11:00:00Z", "fieldsV1": {"f:spec": {"f:workload": {"f:manifests": {}}}}},
                {"manager": "other", "time": "2026-08-01T12:00:00Z", "fieldsV1": {"f:status": {}}},
            ],
        },
        "spec": {"workload": {"manifests": [manifest]}},
    })
}

fn deployment(image: &str, label: &str) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": label}},
        "spec": {"template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"image": image}]},
        }},
    })
}

#[test]
fn a_manifest_is_rewritten_only_beyond_its_own_labels_and_annotations() {
    let before = work(&deployment("nginx:1", "web"), "x");
    let found = changes(&before, &work(&deployment("nginx:2", "web"), "x"));
    assert_eq!(
        effects(&found),
        [(Effect::Rewritten, vec!["spec.template.spec.containers[0].image"])]
    );
    assert_eq!(
        (found[0].manifest.as_str(), found[0].object.as_str()),
        ("Deployment default/web", "karmada-es-m1/web")
    );
    assert_eq!(found[0].writers, ["last"]);
    assert_eq!(
        (&found[0].fields[0].before, &found[0].fields[0].after),
        (&Some(json!("nginx:1")), &Some(json!("nginx:2")))
    );
    let labels = changes(&before, &work(&deployment("nginx:1", "shop"), "y"));
    assert_eq!(
        effects(&labels),
        [(
            Effect::Bookkeeping,
            vec!["metadata.annotations[\"a/b\"]", "metadata.labels.app"]
        )]
    );
    let mut of_pods = deployment("nginx:1", "web");
    of_pods["spec"]["template"]["metadata"]["labels"]["app"] = json!("shop");
    let of_pods = changes(&before, &work(&of_pods, "x"));
    assert_eq!(
        effects(&of_pods),
        [(Effect::Rewritten, vec!["spec.template.metadata.labels.app"])],
        "labels of pods restart them"
    );
    assert!(changes(&before, &before).is_empty());
}

#[test]
fn contents_of_secrets_are_not_shown() {
    let secret = |data: &str| json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": data}});
    let found = changes(&work(&secret("b2xk"), "x"), &work(&secret("bmV3"), "x"));
    assert_eq!(effects(&found), [(Effect::Rewritten, vec!["data.key"])]);
    let text = format!("{found:?}");
    assert!(!text.contains("b2xk") && !text.contains("bmV3"), "{text}");
}

#[test]
fn evictions_their_ends_and_placements_of_a_binding_are_distinct() {
    let binding = |clusters: &[(&str, i64)], tasks: &[&str], version: &str| {
        let clusters: Vec<_> = clusters
            .iter()
            .map(|(name, replicas)| json!({"name": name, "replicas": replicas}))
            .collect();
        let tasks: Vec<_> = tasks
            .iter()
            .map(|name| json!({"fromCluster": name, "reason": "TaintUntolerated"}))
            .collect();
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "b", "namespace": "default", "resourceVersion": version},
            "spec": {
                "resource": {"kind": "Deployment", "resourceVersion": version},
                "clusters": clusters, "gracefulEvictionTasks": tasks,
            },
        })
    };
    let check = |before: &Value, after: &Value, expected: &[(Effect, Vec<&str>)]| {
        assert_eq!(effects(&changes(before, after)), expected);
    };
    let two = binding(&[("m1", 2), ("m2", 1)], &[], "1");
    check(
        &two,
        &binding(&[("m2", 1)], &["m1"], "2"),
        &[(Effect::Evicted, vec!["spec.gracefulEvictionTasks[m1]"])],
    );
    check(
        &two,
        &binding(&[("m2", 3)], &["m1"], "2"),
        &[
            (Effect::Evicted, vec!["spec.gracefulEvictionTasks[m1]"]),
            (Effect::Placed, vec!["spec.clusters[m2]"]),
        ],
    );
    check(
        &binding(&[("m2", 1)], &["m1"], "2"),
        &binding(&[("m2", 1)], &[], "3"),
        &[(Effect::Ended, vec!["spec.gracefulEvictionTasks[m1]"])],
    );
    check(
        &two,
        &binding(&[("m1", 2)], &[], "2"),
        &[(Effect::Placed, vec!["spec.clusters[m2]"])],
    );
    check(&two, &binding(&[("m2", 1), ("m1", 2)], &[], "2"), &[]);
}

#[test]
fn taints_are_compared_by_key_and_effect() {
    let cluster = |taints: Value, finalizer: &str| {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "m1", "finalizers": [finalizer]},
            "spec": {"syncMode": "Push", "taints": taints},
        })
    };
    let taint = |key: &str, at: &str| json!({"key": key, "effect": "NoExecute", "timeAdded": at});
    let found = changes(
        &cluster(json!([taint("a", "1"), taint("b", "1")]), "x"),
        &cluster(json!([taint("c", "1"), taint("b", "2")]), "x"),
    );
    assert_eq!(
        effects(&found),
        [
            (
                Effect::Tainted,
                vec!["spec.taints[a:NoExecute]", "spec.taints[c:NoExecute]"]
            ),
            (Effect::Bookkeeping, vec!["spec.taints[b:NoExecute]"]),
        ]
    );
}

#[test]
fn objects_that_come_and_go_are_changes_and_so_is_the_begin_of_a_deletion() {
    let object = work(&deployment("a", "web"), "x");
    let one = objects(std::slice::from_ref(&object));
    let mut leaving = object.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-08-01T12:00:00Z");
    let effect = |before: &Objects, after: &Objects| {
        let changes = compare(before, after).into_iter();
        changes.map(|change| change.effect).collect::<Vec<_>>()
    };
    assert_eq!(effect(&one, &BTreeMap::new()), [Effect::Deleted]);
    assert_eq!(effect(&BTreeMap::new(), &one), [Effect::Created]);
    assert_eq!(effect(&one, &objects(&[leaving.clone()])), [Effect::Deleted]);
    let leaving = objects(&[leaving]);
    assert!(effect(&leaving, &leaving.clone()).is_empty());
}
