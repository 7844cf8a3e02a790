use bulkhead_api::{ClusterResourceBinding, ResourceBinding};
use bulkhead_core::overriding::named;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::testing::{cluster, object};

/// Returns a policy that sets the label `last` to its name, and `by-<name>`.
fn policy<P: DeserializeOwned>(namespace: Option<&str>, name: &str, selectors: Value) -> P {
    let labels = json!({"last": name, format!("by-{name}"): "yes"});
    let rules = json!([{"overriders": {"labelsOverrider": [{"operator": "add", "value": labels}]}}]);
    object(json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"resourceSelectors": selectors, "overrideRules": rules},
    }))
}

/// Returns a selector of Deployments with these fields added.
fn deployments(fields: Value) -> Value {
    let mut selector = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    for (name, value) in fields.as_object().unwrap() {
        selector[name] = value.clone();
    }
    selector
}

fn manifest(kind: &str, namespace: Option<&str>) -> Value {
    let metadata = json!({"name": "web", "namespace": namespace, "labels": {"app": "web"}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata})
}

fn stores(cluster_wide: Vec<ClusterOverridePolicy>, namespaced: Vec<OverridePolicy>) -> Arc<Stores> {
    let stores = Arc::new(Stores::default());
    stores
        .clusters
        .replace_all([written(cluster("m1", true, &json!([])), 1)]);
    stores.cluster_override_policies.replace_all(cluster_wide);
    stores.override_policies.replace_all(namespaced);
    stores
}

/// Returns the policies that were applied to a manifest, in order.
fn applied(stores: &Stores, manifest: Value) -> Vec<String> {
    let overridden = apply(stores, manifest, "m1").unwrap();
    let last = overridden.object.pointer("/metadata/labels/last").cloned();
    let expected = overridden.applied.last().map(|rule| json!(rule.name));
    assert_eq!(last, expected, "the last policy wins");
    let name = |rule: &overriding::Applied| named(&rule.namespace, &rule.name);
    overridden.applied.iter().map(name).collect()
}

#[test]
fn policies_are_applied_by_scope_then_specificity_then_name() {
    let by_name = || json!([deployments(json!({"name": "web"}))]);
    let by_label = || json!([deployments(json!({"labelSelector": {"matchLabels": {"app": "web"}}}))]);
    let by_kind = || json!([deployments(json!({}))]);
    let stores = stores(
        vec![
            policy(None, "a", by_name()),
            policy(None, "b", json!([])),
            policy(None, "c", by_label()),
        ],
        vec![
            policy(Some("shop"), "d", by_name()),
            policy(Some("shop"), "f", by_kind()),
            policy(Some("shop"), "e", json!([])),
            // The narrowest selector that matches counts.
            policy(
                Some("shop"),
                "g",
                json!([deployments(json!({})), deployments(json!({"name": "web"}))]),
            ),
            policy(Some("shop"), "h", by_label()),
        ],
    );
    let expected = [
        "ClusterOverridePolicy b",
        "ClusterOverridePolicy c",
        "ClusterOverridePolicy a",
        "OverridePolicy shop/e",
        "OverridePolicy shop/f",
        "OverridePolicy shop/h",
        "OverridePolicy shop/d",
        "OverridePolicy shop/g",
    ];
    assert_eq!(applied(&stores, manifest("Deployment", Some("shop"))), expected);
}

#[test]
fn policies_select_objects_of_their_scope() {
    let other = json!([
        deployments(json!({"name": "api"})),
        deployments(json!({"namespace": "other"}))
    ]);
    let stores = stores(
        vec![policy(None, "all", json!([])), policy(None, "other", other.clone())],
        vec![
            policy(Some("shop"), "all", json!([])),
            policy(Some("shop"), "other", other),
        ],
    );
    let check = |kind: &str, namespace: Option<&str>, expected: &[&str]| {
        assert_eq!(
            applied(&stores, manifest(kind, namespace)),
            expected,
            "{kind} {namespace:?}"
        );
    };
    check(
        "Deployment",
        Some("shop"),
        &["ClusterOverridePolicy all", "OverridePolicy shop/all"],
    );
    check(
        "Deployment",
        Some("other"),
        &["ClusterOverridePolicy all", "ClusterOverridePolicy other"],
    );
    check("StatefulSet", Some("other"), &["ClusterOverridePolicy all"]);
    check("ClusterThing", None, &["ClusterOverridePolicy all"]);
}

#[test]
fn labels_of_a_cluster_override_policy_count_for_override_policies() {
    let labelled = deployments(json!({"labelSelector": {"matchLabels": {"by-all": "yes"}}}));
    let stores = stores(
        vec![policy(None, "all", json!([])), policy(None, "late", json!([labelled]))],
        vec![policy(Some("shop"), "labelled", json!([labelled]))],
    );
    let expected = ["ClusterOverridePolicy all", "OverridePolicy shop/labelled"];
    assert_eq!(applied(&stores, manifest("Deployment", Some("shop"))), expected);
}

#[test]
fn an_unknown_cluster_is_an_error_only_if_a_policy_exists() {
    let given = manifest("Deployment", Some("shop"));
    let none = stores(Vec::new(), vec![policy(Some("other"), "all", json!([]))]);
    assert_eq!(apply(&none, given.clone(), "m2").unwrap().object, given);
    let some = stores(Vec::new(), vec![policy(Some("shop"), "all", json!([]))]);
    assert!(matches!(apply(&some, given, "m2"), Err(NotOverridden::UnknownCluster)));
}

/// Bindings, and the queue that subscriptions fill.
struct Queue {
    stores: Arc<Stores>,
    queue: Arc<WorkQueue<Key>>,
    _subscriptions: Subscriptions,
}

impl Queue {
    fn new() -> Self {
        let stores = stores(Vec::new(), Vec::new());
        let binding = |namespace: Option<&str>, kind: &str, name: &str| {
            let resource = json!({"apiVersion": "apps/v1", "kind": kind, "name": name,
                "namespace": namespace.unwrap_or_default()});
            json!({"metadata": {"name": name, "namespace": namespace},
                "spec": {"resource": resource, "clusters": [{"name": if name == "api" { "m2" } else { "m1" }}]}})
        };
        stores.bindings.replace_all([
            object::<ResourceBinding>(binding(Some("shop"), "Deployment", "web")),
            object(binding(Some("shop"), "Deployment", "api")),
            object(binding(Some("other"), "StatefulSet", "db")),
        ]);
        let cluster_wide = object::<ClusterResourceBinding>(binding(None, "ClusterThing", "thing"));
        stores.cluster_bindings.replace_all([cluster_wide]);
        let queue = Arc::default();
        let subscriptions = subscribe(&stores, &queue);
        Self {
            stores,
            queue,
            _subscriptions: subscriptions,
        }
    }

    /// Returns the names of the bindings in the queue, sorted, and empties it.
    async fn take(&self) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..self.queue.depth() {
            let key = self.queue.next().await;
            self.queue.done(&key, false);
            names.push(key.name);
        }
        names.sort();
        names
    }
}

/// Returns an object as the API server has it after `writes` writes.
fn written<K: Resource>(mut object: K, writes: u32) -> K {
    object.meta_mut().resource_version = Some(writes.to_string());
    object
}

#[tokio::test]
async fn a_change_of_a_policy_enqueues_the_bindings_that_it_selects_or_selected() {
    let test = Queue::new();
    let named = |name: &str| json!([deployments(json!({"name": name}))]);
    let cluster_wide = |writes: u32, generation: i64, selectors: Value| {
        let mut policy: ClusterOverridePolicy = policy(None, "p", selectors);
        policy.metadata.generation = Some(generation);
        let policies = &test.stores.cluster_override_policies;
        policies.replace_all([written(policy, writes)]);
    };
    cluster_wide(1, 1, named("web"));
    assert_eq!(test.take().await, ["web"]);
    cluster_wide(2, 2, named("api"));
    assert_eq!(
        test.take().await,
        ["api", "web"],
        "the rule of the old selector is gone"
    );
    cluster_wide(3, 2, named("api"));
    assert_eq!(test.take().await, [""; 0], "the spec is the same");
    cluster_wide(4, 3, json!([]));
    assert_eq!(test.take().await, ["api", "db", "thing", "web"]);
    test.stores.cluster_override_policies.replace_all([]);
    assert_eq!(test.take().await, ["api", "db", "thing", "web"]);
    // Labels are not compared, because another policy may change them.
    cluster_wide(
        5,
        1,
        json!([deployments(json!({"labelSelector": {"matchLabels": {"a": "b"}}}))]),
    );
    assert_eq!(test.take().await, ["api", "web"]);
}

#[tokio::test]
async fn an_override_policy_enqueues_bindings_of_its_namespace() {
    let test = Queue::new();
    let namespaced = |namespace: &str, selectors: Value| {
        test.stores
            .override_policies
            .replace_all([policy(Some(namespace), "p", selectors)]);
    };
    namespaced("shop", json!([]));
    assert_eq!(test.take().await, ["api", "web"]);
    test.stores.override_policies.replace_all([]);
    assert_eq!(test.take().await, ["api", "web"]);
    namespaced("other", json!([deployments(json!({}))]));
    assert_eq!(test.take().await, [""; 0]);
}

#[tokio::test]
async fn a_change_of_a_cluster_enqueues_its_bindings_if_a_rule_selects_by_it() {
    let test = Queue::new();
    let is = |writes: u32, tier: Option<&str>, is_ready: bool| {
        let mut changed = cluster("m1", is_ready, &json!([]));
        if let Some(tier) = tier {
            changed.labels_mut().insert("tier".to_owned(), tier.to_owned());
        }
        test.stores.clusters.replace_all([written(changed, writes)]);
    };
    is(2, Some("gold"), true);
    assert_eq!(test.take().await, [""; 0], "there is no policy");
    let with_target = |target: Value| {
        object::<OverridePolicy>(json!({
            "metadata": {"name": "p", "namespace": "none"},
            "spec": {"overrideRules": [{"targetCluster": target, "overriders": {}}]},
        }))
    };
    let by_name = with_target(json!({"clusterNames": ["m1"]}));
    test.stores.override_policies.replace_all([written(by_name, 1)]);
    is(3, Some("silver"), true);
    assert_eq!(test.take().await, [""; 0], "no rule compares labels");
    let by_label = with_target(json!({"labelSelector": {"matchLabels": {"tier": "gold"}}}));
    test.stores.override_policies.replace_all([written(by_label, 2)]);
    is(4, Some("gold"), true);
    assert_eq!(test.take().await, ["db", "thing", "web"]);
    is(5, None, true);
    assert_eq!(test.take().await, ["db", "thing", "web"]);
    is(6, None, false);
    assert_eq!(test.take().await, [""; 0], "a status is no property");
}
