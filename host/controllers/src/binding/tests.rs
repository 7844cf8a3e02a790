use bulkhead_api::ResourceBinding;
use bulkhead_core::model::TargetCluster;
use bulkhead_plugin::Layer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;

use super::*;
use crate::components::Components;
use crate::testing::{Renames, components, hub_of_works, member, object};

fn controller(components: &Components, overrides: Option<Overrides>) -> BindingController {
    let (blocked, refused) = (Mutex::default(), Contested::default());
    BindingController {
        deps: components.binding(),
        blocked,
        refused,
        overrides,
    }
}

#[tokio::test]
async fn a_template_that_an_interpreter_revises_under_another_name_is_refused() {
    let (components, _events) = components(hub_of_works(1).client(), member().client());
    components.registry.replace(Layer::Builtins, vec![Renames::policy()]);
    let controller = controller(&components, None);
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

#[tokio::test]
async fn works_of_a_workload_that_an_override_policy_selects_are_left_alone() {
    let hub = hub_of_works(1).client();
    let (components, _events) = components(hub.clone(), member().client());
    let labels = json!({names::keys::RESOURCE_BINDING_ID: "id"});
    let template: ConfigMap = object(json!({"metadata": {"name": "web", "namespace": "default"}}));
    Api::namespaced(hub.clone(), "default")
        .create(&PostParams::default(), &template)
        .await
        .unwrap();
    let bindings: Api<ResourceBinding> = Api::namespaced(hub.clone(), "default");
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"});
    let binding = object(
        json!({"metadata": {"name": "web-configmap", "namespace": "default", "labels": labels},
            "spec": {"resource": resource}}),
    );
    let binding = bindings.create(&PostParams::default(), &binding).await.unwrap();
    let works: Api<Work> = Api::namespaced(hub, "karmada-es-m1");
    let work = object(
        json!({"metadata": {"name": "web", "namespace": "karmada-es-m1", "labels": labels},
            "spec": {"workload": {"manifests": []}}}),
    );
    let work = works.create(&PostParams::default(), &work).await.unwrap();
    let key = Key::of(&binding);
    components.stores.bindings.replace_all([binding]);
    components.stores.works.replace_all([work]);

    let left = controller(&components, Some(Overrides::of_everything()));
    left.reconcile::<ResourceBinding>(key.clone()).await.unwrap();
    assert!(
        works.get_opt("web").await.unwrap().is_some(),
        "the Work of a cluster that is no target stays"
    );
    controller(&components, None)
        .reconcile::<ResourceBinding>(key)
        .await
        .unwrap();
    assert!(works.get_opt("web").await.unwrap().is_none());
}
