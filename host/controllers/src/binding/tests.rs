use bulkhead_api::ResourceBinding;
use bulkhead_core::model::TargetCluster;
use bulkhead_plugin::Layer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;

use super::*;
use crate::components::Components;
use crate::testing::{Renames, cluster, components, hub_of_everything, hub_of_works, member, object, written_events};

fn controller(components: &Components) -> BindingController {
    let (blocked, refused) = (Mutex::default(), Contested::default());
    BindingController {
        deps: components.binding(),
        blocked,
        refused,
    }
}

#[tokio::test]
async fn a_template_that_an_interpreter_revises_under_another_name_is_refused() {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    components.registry.replace(Layer::Builtins, vec![Renames::policy()]);
    let controller = controller(&components);
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    let binding: ResourceBinding = serde_json::from_value(json!({
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {"resource": resource, "replicas": 2},
    }))
    .unwrap();
    let metadata = json!({"name": "web", "namespace": "default"});
    let template = Arc::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}));
    let revised = controller
        .revised(&binding, &template, &TargetCluster::new("m1", 1))
        .await;
    let refused = revised.unwrap_err().to_string();
    assert!(
        refused.contains("another object: metadata.name is \"other\", not \"web\""),
        "{refused}"
    );
}

/// Control plane with a ConfigMap that is bound to `m1`.
struct Bound {
    components: Components,
    events: bulkhead_runtime::events::Writer,
    hub: Client,
    works: Api<Work>,
    key: Key,
}

impl Bound {
    async fn new() -> Self {
        let hub = hub_of_everything(1).client();
        let (components, events) = components(hub.clone(), member().client());
        let template: ConfigMap =
            object(json!({"metadata": {"name": "web", "namespace": "default"}, "data": {"a": "b"}}));
        let templates: Api<ConfigMap> = Api::namespaced(hub.clone(), "default");
        templates.create(&PostParams::default(), &template).await.unwrap();
        let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"});
        let labels = json!({names::keys::RESOURCE_BINDING_ID: "id"});
        let binding = object(json!({
            "metadata": {"name": "web-configmap", "namespace": "default", "labels": labels},
            "spec": {"resource": resource, "clusters": [{"name": "m1"}]},
        }));
        let bindings: Api<ResourceBinding> = Api::namespaced(hub.clone(), "default");
        let binding = bindings.create(&PostParams::default(), &binding).await.unwrap();
        let key = Key::of(&binding);
        components.stores.bindings.replace_all([binding]);
        components
            .stores
            .clusters
            .replace_all([cluster("m1", true, &json!([]))]);
        Self {
            works: Api::namespaced(hub.clone(), "karmada-es-m1"),
            components,
            events,
            hub,
            key,
        }
    }

    /// Replaces the policies: OverridePolicy `image` in `default`, and ClusterOverridePolicy `all`, with these rules.
    fn override_with(&self, namespaced: Option<Value>, cluster_wide: Option<Value>) {
        let spec = |rules: Value| json!({"overrideRules": rules});
        let namespaced = namespaced
            .map(|rules| object(json!({"metadata": {"name": "image", "namespace": "default"}, "spec": spec(rules)})));
        let cluster_wide = cluster_wide.map(|rules| object(json!({"metadata": {"name": "all"}, "spec": spec(rules)})));
        self.components.stores.override_policies.replace_all(namespaced);
        self.components
            .stores
            .cluster_override_policies
            .replace_all(cluster_wide);
    }

    /// Reconciles the binding, and returns the Work of `m1`, if there is one.
    async fn reconciled(&self) -> (Result<Action, Error>, Option<Work>) {
        let result = controller(&self.components)
            .reconcile::<ResourceBinding>(self.key.clone())
            .await;
        let listed = self.works.list(&ListParams::default()).await.unwrap();
        (result, listed.items.into_iter().next())
    }

    /// Returns reason, subject and message of all events about overrides.
    async fn events(self) -> Vec<String> {
        let Self {
            components,
            events,
            hub,
            ..
        } = self;
        drop(components);
        let written = written_events(hub, events).await;
        let messages = written.into_iter().map(|event| {
            let about = event.involved_object;
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!(
                "{reason} {}/{}: {message}",
                about.kind.unwrap_or_default(),
                about.name.unwrap_or_default()
            )
        });
        let mut messages: Vec<_> = messages.filter(|text| text.contains("OverridePolicy")).collect();
        messages.sort();
        messages
    }
}

fn add(key: &str, value: &str) -> Value {
    let operation = json!({"path": format!("/data/{key}"), "operator": "add", "value": value});
    json!([{"targetCluster": {"clusterNames": ["m1"]}, "overriders": {"plaintext": [operation]}}])
}

fn data(work: &Work) -> Value {
    work.spec.workload.manifests[0].value().unwrap()["data"].clone()
}

fn record(work: &Work, key: &str) -> Option<Value> {
    work.annotations()
        .get(key)
        .map(|text| serde_json::from_str(text).unwrap())
}

#[tokio::test]
async fn override_policies_change_the_manifest_of_a_work_and_are_recorded() {
    let bound = Bound::new().await;
    bound.override_with(Some(add("a", "image")), Some(add("a", "all")));
    let (result, work) = bound.reconciled().await;
    assert!(result.is_ok(), "{result:?}");
    let work = work.unwrap();
    assert_eq!(
        data(&work),
        json!({"a": "image"}),
        "the policy of the namespace is applied last"
    );
    let overriders = |value: &str| json!({"plaintext": [{"path": "/data/a", "operator": "add", "value": value}]});
    let shadow = |name: &str, value: &str| Some(json!([{"policyName": name, "overriders": overriders(value)}]));
    assert_eq!(record(&work, names::keys::APPLIED_OVERRIDES), shadow("image", "image"));
    assert_eq!(
        record(&work, names::keys::APPLIED_CLUSTER_OVERRIDES),
        shadow("all", "all")
    );
    let manifest = work.spec.workload.manifests[0].value().unwrap();
    let annotations = manifest["metadata"]["annotations"].as_object().unwrap();
    assert!(
        !annotations.contains_key(names::keys::APPLIED_OVERRIDES),
        "only the Work has the record"
    );

    // Nothing changed, so nothing is written or reported again.
    let version = work.resource_version();
    bound.components.stores.works.replace_all([work]);
    assert_eq!(bound.reconciled().await.1.unwrap().resource_version(), version);

    bound.override_with(
        None,
        Some(json!([{"targetCluster": {"clusterNames": ["m2"]}, "overriders": {}}])),
    );
    let (result, work) = bound.reconciled().await;
    let work = work.unwrap();
    assert!(result.is_ok() && data(&work) == json!({"a": "b"}), "{result:?}");
    for key in [names::keys::APPLIED_OVERRIDES, names::keys::APPLIED_CLUSTER_OVERRIDES] {
        assert_eq!(record(&work, key), None, "{key}");
    }
    let expected = [
        "ApplyOverridePolicySucceed ConfigMap/web: Apply cluster override policy(all) for cluster(m1) succeed.",
        "ApplyOverridePolicySucceed ConfigMap/web: Apply override policy(default/image) for cluster(m1) succeed.",
    ];
    assert_eq!(bound.events().await, expected);
}

#[tokio::test]
async fn a_work_whose_override_fails_is_not_written() {
    let bound = Bound::new().await;
    let remove = json!([{"overriders": {"plaintext": [{"path": "/data/z", "operator": "remove"}]}}]);
    bound.override_with(Some(remove.clone()), Some(add("a", "all")));
    let (result, work) = bound.reconciled().await;
    assert!(work.is_none(), "{work:?}");
    let cause = "rule 0: plaintext[0]: cannot remove \"/data/z\": the path does not exist";
    let expected = format!("cluster m1: cannot apply OverridePolicy default/image: {cause}");
    assert_eq!(result.unwrap_err().to_string(), expected);

    // A Work that exists stays as it is.
    bound.override_with(None, None);
    let work = bound.reconciled().await.1.unwrap();
    bound.components.stores.works.replace_all([work.clone()]);
    bound.override_with(Some(remove), Some(add("a", "all")));
    let (result, kept) = bound.reconciled().await;
    assert!(result.is_err());
    assert_eq!(kept.map(|work| work.resource_version()), Some(work.resource_version()));
    let failed =
        "ApplyOverridePolicyFailed ConfigMap/web: Apply override policy(default/image) for cluster(m1) failed: ";
    let mut events = bound.events().await;
    events.retain(|text| !text.starts_with("SyncWorkFailed"));
    assert_eq!(events, [format!("{failed}{cause}")]);
}

#[tokio::test]
async fn a_work_of_an_unknown_cluster_waits_only_for_overrides() {
    let bound = Bound::new().await;
    bound.components.stores.clusters.replace_all([]);
    bound.override_with(Some(add("a", "image")), None);
    let (result, work) = bound.reconciled().await;
    assert!(matches!(result, Err(Error::NotYet(_))) && work.is_none(), "{result:?}");
    bound.override_with(None, None);
    assert!(bound.reconciled().await.1.is_some());
}
