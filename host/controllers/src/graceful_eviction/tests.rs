use bulkhead_api::{ResourceBinding, Work};
use bulkhead_core::names;
use bulkhead_plugin::Layer;
use bulkhead_plugins_builtin as builtin;
use bulkhead_runtime::events;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::*;
use crate::components::Components;
use crate::testing::{binding_of_web, cluster, components, hub_of_works, member, object};

/// Control plane with a workload that leaves m2 for m1.
struct Hub {
    components: Components,
    controller: GracefulEviction,
    bindings: Api<ResourceBinding>,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    /// `ready` is the number of available replicas on m1, of two.
    async fn new(ready: i32) -> Self {
        let (hub, member) = (hub_of_works(1).client(), member().client());
        // Before a release, the member is asked for the object.
        let web: Deployment = object(json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}}));
        let deployments: Api<Deployment> = Api::namespaced(member.clone(), "default");
        deployments.create(&PostParams::default(), &web).await.unwrap();
        let (components, events) = components(hub.clone(), member);
        components.registry.replace(Layer::Builtins, builtin::all());
        let clusters = ["m1", "m2"].map(|name| cluster(name, true, &json!([])));
        components.stores.clusters.replace_all(clusters);
        let task = json!({
            "fromCluster": "m2", "purgeMode": "Gracefully", "reason": "TaintUntolerated", "producer": "TaintManager",
            "creationTimestamp": "1970-01-01T00:00:00Z",
        });
        let targets = json!([{"name": "m1", "replicas": 2}]);
        let binding = binding_of_web(&json!({"clusters": targets, "gracefulEvictionTasks": [task]}));
        let bindings: Api<ResourceBinding> = Api::namespaced(hub, "default");
        let mut created = bindings.create(&PostParams::default(), &binding).await.unwrap();
        let health = if ready == 2 { "Healthy" } else { "Unhealthy" };
        created.status = object(json!({
            "schedulerObservedGeneration": created.metadata.generation,
            "conditions": [{"type": "Scheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
            "aggregatedStatus": [{
                "clusterName": "m1", "applied": true, "health": health,
                "status": {"replicas": 2, "availableReplicas": ready, "readyReplicas": ready},
            }],
        }));
        components.stores.bindings.replace_all([created]);
        // The report of a binding counts as long as its Work has it too.
        let identifier = json!({
            "ordinal": 0, "version": "v1", "group": "apps", "kind": "Deployment", "resource": "deployments",
            "namespace": "default", "name": "web",
        });
        let work: Work = object(json!({
            "metadata": {"name": names::work_name("Deployment", "web", "default"), "namespace": "karmada-es-m1"},
            "spec": {}, "status": {"manifestStatuses": [{"identifier": identifier, "health": health}]},
        }));
        components.stores.works.replace_all([work]);
        let controller = GracefulEviction {
            deps: components.graceful_eviction(),
            held: Mutex::default(),
        };
        Self {
            components,
            controller,
            bindings,
            events,
        }
    }

    async fn reconcile(&self) -> Action {
        let key = Key::new("default", "web-deployment");
        let reconciled = self.controller.reconcile::<ResourceBinding>(key).await;
        reconciled.unwrap()
    }

    /// Returns the clusters that the binding in the control plane leaves.
    async fn leaving(&self) -> Vec<String> {
        let spec = self.bindings.get("web-deployment").await.unwrap().spec;
        let tasks = spec.graceful_eviction_tasks.into_iter();
        tasks.map(|task| task.from_cluster).collect()
    }

    fn recorded(&self, decision: Decision) -> usize {
        let records = self.components.journal.records();
        records
            .iter()
            .filter(|record| record.entry.decision == decision)
            .count()
    }

    fn held(&self) -> usize {
        self.controller.held.lock().unwrap().len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_replacement_ends_the_task() {
    let hub = Hub::new(2).await;
    assert_eq!(hub.reconcile().await, Action::Wait);
    assert_eq!(hub.leaving().await, [""; 0]);
    assert_eq!((hub.recorded(Decision::Released), hub.recorded(Decision::Held)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_recorded_once_and_forgotten_with_its_binding() {
    let hub = Hub::new(1).await;
    for _ in 0..2 {
        assert!(matches!(hub.reconcile().await, Action::After(_)));
        assert_eq!(hub.leaving().await, ["m2"]);
        assert_eq!((hub.recorded(Decision::Released), hub.recorded(Decision::Held)), (0, 1));
    }
    assert_eq!(hub.held(), 1);
    hub.components.stores.bindings.replace_all([]);
    assert_eq!(hub.reconcile().await, Action::Wait);
    assert_eq!(hub.held(), 0);
}
