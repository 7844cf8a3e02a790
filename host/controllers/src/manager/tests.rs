use std::time::Duration;

use bulkhead_api::work::APPLIED;
use bulkhead_api::{Cluster, Plugin, PluginTrust, Work};
use bulkhead_apiserver::Fault;
use bulkhead_core::model::Health;
use bulkhead_core::names::keys;
use bulkhead_plugin::{CombinedCatalog, Loading, Objects, Plugins, TrustObjects};
use bulkhead_runtime::kinds::ObjectKind;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::plugins::PluginObjects;
use crate::testing::{components, hub_of_everything, member};

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn status_of(condition: &str) -> Patch<Value> {
    let at = "2026-01-01T00:00:00Z";
    let condition =
        json!({"type": condition, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at});
    Patch::Merge(json!({"status": {"conditions": [condition]}}))
}

/// An agent starts with a health plugin that does not load, while the list of plugins is late.
#[tokio::test(start_paused = true)]
async fn an_agent_reports_no_health_before_its_plugins_are_known_and_unknown_while_one_does_not_load() {
    let (hub, member) = (hub_of_everything(1), member().client());
    let (client, in_default) = (hub.client(), Api::<ConfigMap>::namespaced(member.clone(), "default"));
    let cluster: Cluster = from(json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Pull"}}));
    let clusters = Api::<Cluster>::all(client.clone());
    clusters.create(&PostParams::default(), &cluster).await.unwrap();
    clusters
        .patch_status("m1", &PatchParams::default(), &status_of("Ready"))
        .await
        .unwrap();
    let annotations = json!({keys::WORK_NAMESPACE: "karmada-es-m1", keys::WORK_NAME: "settings"});
    let metadata = json!({
        "name": "settings", "namespace": "default", "annotations": annotations,
        "labels": {keys::MANAGED: "true", keys::WORK_ID: "id"},
    });
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    in_default
        .create(&PostParams::default(), &from(object.clone()))
        .await
        .unwrap();
    let works = Api::<Work>::namespaced(client.clone(), "karmada-es-m1");
    let work = json!({
        "metadata": {"name": "settings", "labels": {keys::WORK_ID: "id"}},
        "spec": {"workload": {"manifests": [object]}},
    });
    works.create(&PostParams::default(), &from(work)).await.unwrap();
    works
        .patch_status("settings", &PatchParams::default(), &status_of(APPLIED))
        .await
        .unwrap();
    let plugin: Plugin =
        from(json!({"metadata": {"name": "health"}, "spec": {"lua": "function InterpretHealth( broken"}}));
    Api::<Plugin>::all(client.clone())
        .create(&PostParams::default(), &plugin)
        .await
        .unwrap();
    let late = Duration::from_mins(1);
    hub.inject_for(late, Fault::HoldUntil(Instant::now() + late), |request| {
        request.plural == "plugins"
    });

    let (base, _events) = components(client, member.clone());
    let objects = Arc::<Objects>::default();
    let catalog = CombinedCatalog::new(None, Arc::clone(&objects));
    let plugins = Plugins::new(Arc::clone(&base.registry), Box::new(catalog), Loading::default());
    let plugins = Arc::new(PluginObjects::new(Arc::new(plugins), objects, Arc::default(), |_| {}));
    let components = Components {
        scope: Scope::Agent("m1".to_owned()),
        plugins: Some(plugins),
        ..base
    };
    let kind = ObjectKind::new("v1", "ConfigMap");
    components
        .member_objects
        .ensure("m1", &kind, &components.kinds, || Ok(member.clone()))
        .await
        .unwrap();
    let manager = Manager::watch(components);
    assert!(manager.start_controller("workStatus"));
    let reported = async || works.get("settings").await.unwrap().status.manifest_statuses;
    tokio::time::sleep(late / 2).await;
    assert!(reported().await.is_empty(), "the health rules are not known yet");
    tokio::time::sleep(late * 2).await;
    assert_eq!(
        reported().await.first().and_then(|status| status.health),
        Some(Health::Unknown)
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_only_interprets_watches_no_bindings_or_works() {
    let (base, _events) = components(hub_of_everything(1).client(), member().client());
    let components = Components {
        scope: Scope::Interpreter,
        ..base
    };
    let stores = Arc::clone(&components.stores);
    let _manager = Manager::watch(components);
    stores.customizations.wait_for_cache_sync().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!stores.works.has_synced() && !stores.bindings.has_synced() && !stores.clusters.has_synced());
    assert_eq!(stores.informers(&Scope::Interpreter).len(), 3);
}

/// A process starts while the list of PluginTrust objects is late.
#[tokio::test(start_paused = true)]
async fn a_start_waits_for_trust_that_an_image_needs_and_for_no_other() {
    for is_needed in [false, true] {
        let hub = hub_of_everything(1);
        let trusts = Api::<PluginTrust>::all(hub.client());
        let late = Duration::from_mins(1);
        hub.inject_for(late, Fault::HoldUntil(Instant::now() + late), |request| {
            request.plural == "plugintrusts"
        });
        let (base, _events) = components(hub.client(), member().client());
        let (objects, trust) = (Arc::<Objects>::default(), Arc::<TrustObjects>::default());
        if is_needed {
            // A plugin is an image.
            trust.expect();
        }
        let catalog = CombinedCatalog::new(None, Arc::clone(&objects));
        let plugins = Plugins::new(Arc::clone(&base.registry), Box::new(catalog), Loading::default());
        let plugins = Arc::new(PluginObjects::new(
            Arc::new(plugins),
            objects,
            Arc::clone(&trust),
            |_| {},
        ));
        let components = Components {
            plugins: Some(Arc::clone(&plugins)),
            ..base
        };
        let _manager = Manager::watch(components);
        tokio::time::sleep(late / 2).await;
        assert_eq!(plugins.has_synced(), !is_needed);
        assert_eq!(trust.listed(), None);
        tokio::time::sleep(late * 2).await;
        assert!(plugins.has_synced());
        assert_eq!(trust.listed(), Some(Vec::new()));
        let object: PluginTrust = from(json!({"metadata": {"name": "platform"}, "spec": {"rules": []}}));
        trusts.create(&PostParams::default(), &object).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(trust.listed().map(|objects| objects.len()), Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_without_the_kind_has_no_trust() {
    // A server of Kubernetes' own kinds.
    let (base, _events) = components(member().client(), member().client());
    let (objects, trust) = (Arc::<Objects>::default(), Arc::<TrustObjects>::default());
    trust.expect();
    let catalog = CombinedCatalog::new(None, Arc::clone(&objects));
    let plugins = Plugins::new(Arc::clone(&base.registry), Box::new(catalog), Loading::default());
    let plugins = Arc::new(PluginObjects::new(
        Arc::new(plugins),
        objects,
        Arc::clone(&trust),
        |_| {},
    ));
    let components = Components {
        plugins: Some(Arc::clone(&plugins)),
        ..base
    };
    let _manager = Manager::watch(components);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(plugins.has_synced());
    assert_eq!(trust.listed(), Some(Vec::new()));
}
