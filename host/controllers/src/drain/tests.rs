use bulkhead_api::ResourceBinding;
use bulkhead_apiserver::ApiServer;
use bulkhead_runtime::events;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::*;
use crate::components::Components;
use crate::testing::{binding_of_web, cluster, components, hub_of_everything, member, object};

/// Control plane with the drain `d` of the cluster `m1`.
struct Hub {
    server: ApiServer,
    components: Components,
    drains: Api<ClusterDrain>,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    /// `fields` are added to the spec of the drain.
    async fn new(fields: Value) -> Self {
        let server = hub_of_everything(1);
        let (components, events) = components(server.client(), member().client());
        let drains: Api<ClusterDrain> = Api::all(server.client());
        let mut drain = json!({"metadata": {"name": "d"}, "spec": {"clusterName": "m1"}});
        for (name, value) in fields.as_object().unwrap() {
            drain["spec"][name] = value.clone();
        }
        let created = drains.create(&PostParams::default(), &object(drain)).await.unwrap();
        components.stores.cluster_drains.replace_all([created]);
        Self {
            server,
            components,
            drains,
            events,
        }
    }

    async fn with_cluster(fields: Value) -> Self {
        let hub = Self::new(fields).await;
        hub.components
            .stores
            .clusters
            .replace_all([cluster("m1", true, &json!([]))]);
        hub
    }

    /// Replaces the bindings by one with these fields, or by none.
    fn bind(&self, fields: Option<&Value>) {
        let bindings: Vec<ResourceBinding> = fields.into_iter().map(binding_of_web).collect();
        self.components.stores.bindings.replace_all(bindings);
    }

    /// Reconciles the drain at this time. Returns the status in the control plane.
    async fn reconcile_at(&self, ms: i64) -> ClusterDrainStatus {
        let deps = Dependencies {
            clock: Clock::new(move || Time::from_millis(ms).timestamp()),
            ..self.components.drain()
        };
        let again = reconcile(deps, Key::new("", "d")).await.unwrap();
        assert_eq!(again, Action::After(REFRESH));
        self.drains.get("d").await.unwrap().status
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_the_last_binding_and_the_last_old_copy() {
    let hub = Hub::with_cluster(json!({})).await;
    hub.bind(Some(&json!({"clusters": [{"name": "m1", "replicas": 2}]})));
    let status = hub.reconcile_at(1_000).await;
    assert_eq!(status.phase, Some(DrainPhase::Draining));
    assert_eq!((status.bindings_left, status.copies_left), (1, 0));
    let (started, unfinished) = (Some(Time::from_millis(1_000)), None);
    assert_eq!((status.started_at, status.finished_at), (started, unfinished));

    let task = json!({"fromCluster": "m1", "reason": "ClusterDrained", "producer": "TaintManager"});
    let targets = json!([{"name": "m2", "replicas": 2}]);
    hub.bind(Some(&json!({"clusters": targets, "gracefulEvictionTasks": [task]})));
    let status = hub.reconcile_at(2_000).await;
    assert_eq!(status.phase, Some(DrainPhase::Draining));
    assert_eq!((status.bindings_left, status.copies_left), (0, 1));
    assert_eq!((status.started_at, status.finished_at), (started, unfinished));

    hub.bind(None);
    let status = hub.reconcile_at(3_000).await;
    assert_eq!(status.phase, Some(DrainPhase::Drained));
    assert_eq!(status.finished_at, Some(Time::from_millis(3_000)));

    let writes = hub.server.writes();
    let later = hub.reconcile_at(9_000).await;
    assert_eq!((later, hub.server.writes()), (status, writes), "the end stays");
}

#[tokio::test(start_paused = true)]
async fn a_drain_of_an_unknown_cluster_waits_for_it() {
    let hub = Hub::new(json!({})).await;
    let status = hub.reconcile_at(0).await;
    assert_eq!(status.phase, Some(DrainPhase::Pending));
    assert_eq!(status.message, "cluster m1 does not exist");
    assert_eq!((status.started_at, status.finished_at), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_drain_with_a_rate_of_zero_says_that_it_is_paused() {
    let hub = Hub::with_cluster(json!({"evictionsPerSecond": 0.0})).await;
    hub.bind(Some(&json!({"clusters": [{"name": "m1", "replicas": 2}]})));
    let status = hub.reconcile_at(0).await;
    assert_eq!(
        status.message,
        "1 bindings left; the drain is paused because evictionsPerSecond is 0"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_drain_needs_no_write() {
    let hub = Hub::with_cluster(json!({})).await;
    hub.components.stores.cluster_drains.replace_all([]);
    let writes = hub.server.writes();
    let again = reconcile(hub.components.drain(), Key::new("", "d")).await.unwrap();
    assert_eq!((again, hub.server.writes()), (Action::Wait, writes));
}
