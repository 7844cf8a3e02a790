use bulkhead_apiserver::{ApiServer, Fault, ResourceRequest, Verb};
use bulkhead_runtime::events;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::watcher;
use serde_json::Value;

use super::*;
use crate::components::Components;
use crate::testing::{components, hub_of_works, member};

/// Control plane with the binding `web`, which three bindings are attached to.
struct Hub {
    server: ApiServer,
    components: Components,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

fn binding(name: &str, metadata: Value, required_by: Value) -> ResourceBinding {
    let mut binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": metadata,
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": name}, "requiredBy": required_by},
    });
    binding["metadata"]["name"] = json!(name);
    serde_json::from_value(binding).unwrap()
}

impl Hub {
    async fn new() -> Self {
        let server = hub_of_works(1);
        let (components, events) = components(server.client(), member().client());
        let hub = Self {
            server,
            components,
            events,
        };
        let web = binding("web", json!({"finalizers": [keys::DEPENDENCIES_FINALIZER]}), json!([]));
        hub.bindings().create(&PostParams::default(), &web).await.unwrap();
        let labels = json!({(names::depended_by_label("default", "web")): "id"});
        for name in ["a", "b", "c"] {
            let dependants = json!([{"namespace": "default", "name": "web"}]);
            let attached = binding(name, json!({"labels": labels}), dependants);
            hub.bindings().create(&PostParams::default(), &attached).await.unwrap();
        }
        let (store, all) = (
            Arc::clone(&hub.components.stores.bindings),
            Api::all(hub.server.client()),
        );
        tokio::spawn(store.run_informer(all, watcher::Config::default()));
        hub.components.stores.bindings.wait_for_cache_sync().await;
        hub
    }

    fn bindings(&self) -> Api<ResourceBinding> {
        Api::namespaced(self.server.client(), "default")
    }

    fn fail_the_deletion_of(&self, name: &'static str) {
        let is_it =
            move |request: &ResourceRequest| request.verb == Verb::Delete && request.name.as_deref() == Some(name);
        self.server.inject(Fault::Respond(500), is_it);
    }

    /// Returns the names of the bindings, and the finalizers of `web`.
    async fn left(&self) -> (Vec<String>, Vec<String>) {
        // The informer delivers the changes.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let all = self.bindings().list(&ListParams::default()).await.unwrap().items;
        let web = all.iter().find(|binding| binding.name_any() == "web").unwrap();
        (
            all.iter().map(ResourceExt::name_any).collect(),
            web.finalizers().to_vec(),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_cannot_be_detached_keeps_no_other_attached() {
    let hub = Hub::new().await;
    let web = || hub.components.stores.bindings.get(&Key::new("default", "web")).unwrap();
    hub.fail_the_deletion_of("a");
    let failed = sync(&hub.components.dependencies(), &web(), &[]).await.unwrap_err();
    assert!(
        failed.to_string().contains("deleting ResourceBinding default/a"),
        "{failed}"
    );
    assert_eq!(hub.left().await.0, ["a", "web"]);
    assert_eq!(sync(&hub.components.dependencies(), &web(), &[]).await.unwrap(), 1);
    assert_eq!(hub.left().await.0, ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_released_once_every_dependency_is_detached() {
    let hub = Hub::new().await;
    let web = || hub.components.stores.bindings.get(&Key::new("default", "web")).unwrap();
    hub.fail_the_deletion_of("b");
    release(&hub.components.dependencies(), &web()).await.unwrap_err();
    let finalizers = vec![keys::DEPENDENCIES_FINALIZER.to_owned()];
    assert_eq!(hub.left().await, (vec!["b".to_owned(), "web".to_owned()], finalizers));
    release(&hub.components.dependencies(), &web()).await.unwrap();
    assert_eq!(hub.left().await, (vec!["web".to_owned()], Vec::new()));
}
