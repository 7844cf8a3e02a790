use bulkhead_api::Cluster;
use bulkhead_apiserver::ApiServer;
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{BindingSpec, Condition, ConditionStatus, GracefulEvictionTask, TargetCluster};
use bulkhead_core::names::keys;
use bulkhead_plugin::Layer;
use bulkhead_plugins_builtin as builtin;
use bulkhead_runtime::events;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::*;
use crate::components::Components;
use crate::testing::{binding_of_web, cluster, components, hub_of_works, member, object};

/// Scheduler over stores that a test fills, and the control plane that it writes to.
struct Hub {
    server: ApiServer,
    components: Components,
    scheduler: Arc<Scheduler>,
    bindings: Api<ResourceBinding>,
    #[expect(dead_code, reason = "held, not read")]
    subscriptions: (Subscription<Cluster>, Subscription<ResourceBinding>),
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    /// `fields` are those of the spec of the binding, which was not scheduled yet.
    async fn new(clusters: Vec<Cluster>, fields: Value) -> Self {
        let server = hub_of_works(1);
        let (components, events) = components(server.client(), member().client());
        components.registry.replace(Layer::Builtins, builtin::all());
        let deps = components.scheduler();
        let cache = Arc::new(SchedulerCache::default());
        let subscriptions = cache.subscribe(&deps);
        components.stores.clusters.replace_all(clusters);
        let bindings: Api<ResourceBinding> = Api::namespaced(server.client(), "default");
        let mut binding = binding_of_web(&fields);
        binding.metadata.annotations = None;
        binding
            .labels_mut()
            .insert(keys::PROPAGATION_POLICY_ID.to_owned(), "p".to_owned());
        let created = bindings.create(&PostParams::default(), &binding).await.unwrap();
        components.stores.bindings.replace_all([created]);
        let scheduler = Arc::new(Scheduler {
            budget: Arc::clone(&deps.scheduler_budget),
            deps,
            cache,
            unwritten: Arc::default(),
        });
        Self {
            server,
            components,
            scheduler,
            bindings,
            subscriptions,
            events,
        }
    }

    async fn schedule(&self) -> Result<Requeue, Error> {
        self.scheduler.schedule_key(&key()).await
    }

    /// Returns the binding in the control plane.
    async fn binding(&self) -> ResourceBinding {
        self.bindings.get("web-deployment").await.unwrap()
    }

    fn recorded(&self, decision: Decision) -> usize {
        let records = self.components.journal.records();
        let of_sort = records.iter().filter(|record| record.entry.decision == decision);
        of_sort.count()
    }
}

fn key() -> Key {
    Key::new("default", "web-deployment")
}

/// Returns a cluster that serves Deployments, with these taints.
fn serving(name: &str, taints: &Value) -> Cluster {
    let mut serving = cluster(name, *taints == json!([]), taints);
    serving.status.api_enablements = object(json!([
        {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]},
    ]));
    serving
}

fn ready_and_lost() -> Vec<Cluster> {
    let lost = json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}]);
    vec![serving("m1", &json!([])), serving("m2", &lost)]
}

fn targets(spec: &BindingSpec) -> Vec<String> {
    let text = |target: &TargetCluster| format!("{}:{}", target.name, target.replicas);
    spec.clusters.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_placed_on_the_ready_cluster_and_written_once() {
    let hub = Hub::new(ready_and_lost(), json!({})).await;
    assert!(matches!(hub.schedule().await, Ok(Requeue::Forget)));
    let placed = hub.binding().await;
    assert_eq!(targets(&placed.spec), ["m1:2"]);
    assert!(placed.annotations().contains_key(keys::APPLIED_PLACEMENT));
    let scheduled = Condition::find(&placed.status.conditions, "Scheduled").unwrap();
    assert_eq!(
        (scheduled.status, scheduled.reason.as_str()),
        (ConditionStatus::True, "Success")
    );
    assert_eq!(hub.recorded(Decision::Scheduled), 1);

    let writes = hub.server.writes();
    assert!(matches!(hub.schedule().await, Ok(Requeue::Forget)));
    assert_eq!(hub.server.writes(), writes, "the result stands");
    assert_eq!(hub.recorded(Decision::Scheduled), 1);
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_no_cluster_takes_waits_with_the_reason_in_its_status() {
    let hub = Hub::new(ready_and_lost().split_off(1), json!({})).await;
    let requeue = hub.schedule().await.unwrap();
    assert_eq!(requeue, Requeue::Forget, "a change of a cluster enqueues it again");
    let waiting = hub.binding().await;
    assert_eq!(targets(&waiting.spec), [""; 0]);
    let scheduled = Condition::find(&waiting.status.conditions, "Scheduled").unwrap();
    assert_eq!(scheduled.status, ConditionStatus::False);
    assert!(scheduled.message.contains("taint"), "{}", scheduled.message);
    assert_eq!(
        (hub.recorded(Decision::NotScheduled), hub.recorded(Decision::Scheduled)),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_placement_of_a_binding_that_changed_meanwhile_is_refused() {
    let hub = Hub::new(ready_and_lost(), json!({})).await;
    let mut changed = hub.binding().await;
    changed.spec.replicas = 5;
    hub.bindings
        .replace("web-deployment", &PostParams::default(), &changed)
        .await
        .unwrap();
    let error = hub.schedule().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(targets(&hub.binding().await.spec), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_and_the_placement_of_the_running_scheduler_are_one_write() {
    let placed = json!({"clusters": [{"name": "m2", "replicas": 2}]});
    let hub = Hub::new(ready_and_lost(), placed).await;
    hub.components.scheduler.started(&hub.scheduler);
    let binding = hub.components.stores.bindings.get(&key()).unwrap();
    let mut spec = binding.spec.clone();
    spec.clusters.clear();
    let task = json!({"fromCluster": "m2", "replicas": 2, "reason": "TaintUntolerated", "producer": "TaintManager"});
    spec.graceful_eviction_tasks
        .push(serde_json::from_value::<GracefulEvictionTask>(task).unwrap());
    let deps = &hub.scheduler.deps;
    let evictions = Evictions {
        bindings: deps.bindings.clone(),
        log: deps.log.clone(),
        clock: deps.clock.clone(),
        scheduler: Arc::clone(&deps.scheduler),
    };
    let eviction = Eviction {
        spec: Some(&spec),
        annotations: Vec::new(),
        records: Vec::new(),
        precondition: Precondition::Unchanged,
        operation: "evicting".to_owned(),
    };
    let generation = binding.metadata.generation.unwrap();
    evictions.write(&*binding, eviction, |_| {}).await.unwrap();
    let evicted = hub.binding().await;
    assert_eq!(targets(&evicted.spec), ["m1:2"]);
    let tasks = evicted.spec.graceful_eviction_tasks.iter();
    assert_eq!(tasks.map(|task| task.from_cluster.as_str()).collect::<Vec<_>>(), ["m2"]);
    assert_eq!(
        evicted.metadata.generation,
        Some(generation + 1),
        "one write of the spec"
    );
    assert_eq!(hub.recorded(Decision::Scheduled), 1);
}
