use bulkhead_api::{Cluster, EvictionPause, ResourceBinding};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::Finished;
use bulkhead_core::decide::failback::{HOME, STABLE};
use bulkhead_core::decide::reasons::REASON_FAILBACK;
use bulkhead_core::journal::Decision;
use bulkhead_core::names::keys;
use bulkhead_runtime::controller::{AFTER_CONFLICT, Action};
use bulkhead_runtime::events;
use bulkhead_runtime::store::Change;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::evict::Judged;
use super::*;
use crate::components::Components;
use crate::flags::{FeatureGate, Flags};
use crate::testing::{binding_of_web, cluster, components, hub_of_works, member, not_ready, object, written_events};

/// Time long before the clock of the tests, which stands at 1970.
const LONG_AGO: &str = "1969-12-01T00:00:00Z";

/// Taint manager over stores that a test fills, and the control plane that it writes to.
struct Hub {
    components: Components,
    manager: Arc<TaintManager>,
    bindings: Api<ResourceBinding>,
    events: events::Writer,
}

impl Hub {
    fn new(clusters: Vec<Cluster>) -> Self {
        let server = hub_of_works(1);
        let (components, events) = components(server.client(), member().client());
        let flags = Flags {
            feature_gates: [(FeatureGate::Failover, true)].into(),
            enable_no_execute_taint_eviction: true,
            enable_failback: true,
            ..Flags::default()
        };
        let components = Components {
            flags: Arc::new(flags),
            ..components
        };
        components.stores.clusters.replace_all(clusters);
        components.stores.eviction_pauses.replace_all([]);
        let manager = Arc::new(TaintManager::new(components.taint_manager()));
        for known in components.stores.clusters.list() {
            manager.clusters.apply(&Change::Added(&known));
        }
        Self {
            components,
            manager,
            bindings: Api::namespaced(server.client(), "default"),
            events,
        }
    }

    /// Creates a binding in the control plane and in the store.
    async fn with(self, binding: ResourceBinding) -> Self {
        let created = self.bindings.create(&PostParams::default(), &binding).await.unwrap();
        self.components.stores.bindings.replace_all([created]);
        self
    }

    /// Makes a cluster ready, without taints.
    fn recover(&self, name: &str) {
        self.observe(cluster(name, true, &json!([])));
    }

    /// Makes a cluster not ready, with the taints for that.
    fn lose(&self, name: &str) {
        self.observe(cluster(name, false, &not_ready()));
    }

    fn observe(&self, cluster: Cluster) {
        self.manager.clusters.apply(&Change::Added(&Arc::new(cluster)));
    }

    /// Returns the evictions in the queue.
    fn queued(&self) -> Vec<Eviction> {
        self.manager
            .queue()
            .items()
            .map(|(eviction, _)| eviction.clone())
            .collect()
    }

    /// Returns the decisions of a sort that are recorded.
    fn recorded(&self, decision: Decision) -> usize {
        self.components
            .journal
            .records()
            .iter()
            .filter(|record| record.entry.decision == decision)
            .count()
    }

    /// Returns reason, subject and message of all events.
    async fn events(self) -> BTreeSet<String> {
        let Self {
            components,
            manager,
            events,
            ..
        } = self;
        let hub = components.hub.clone();
        drop((components, manager));
        let written = written_events(hub, events).await;
        let text = |event: Event| {
            let (about, text) = (event.involved_object, Option::unwrap_or_default);
            let (reason, message) = (text(event.reason), text(event.message));
            format!("{reason} {}/{}: {message}", text(about.kind), text(about.name))
        };
        written.into_iter().map(text).collect()
    }

    /// Returns the target clusters of the binding, and the clusters and reasons of its eviction tasks.
    async fn written(&self) -> (Vec<String>, Vec<(String, String)>) {
        let spec = self.bindings.get("web-deployment").await.unwrap().spec;
        let tasks = spec
            .graceful_eviction_tasks
            .iter()
            .map(|task| (task.from_cluster.clone(), task.reason.clone()));
        (
            spec.clusters.iter().map(|target| target.name.clone()).collect(),
            tasks.collect(),
        )
    }
}

fn on(name: &str) -> ResourceBinding {
    binding_of_web(&json!({"clusters": [{"name": name, "replicas": 2}]}))
}

fn eviction(from: &str, cause: Cause) -> Eviction {
    Eviction {
        cluster: from.to_owned(),
        binding: Key::new("default", "web-deployment"),
        cause,
    }
}

fn lost_and_healthy() -> Vec<Cluster> {
    vec![cluster("m1", false, &not_ready()), cluster("m2", true, &json!([]))]
}

#[tokio::test(start_paused = true)]
async fn a_scan_queues_what_the_taint_evicts_and_drops_it_when_the_taint_is_gone() {
    let hub = Hub::new(lost_and_healthy());
    let mut tolerant = on("m1");
    tolerant.metadata.name = Some("tolerant".to_owned());
    let placement = json!({"clusterTolerations": [{"operator": "Exists"}]}).to_string();
    tolerant.metadata.annotations = Some([(keys::APPLIED_PLACEMENT.to_owned(), placement)].into());
    let mut elsewhere = on("m2");
    elsewhere.metadata.name = Some("elsewhere".to_owned());
    hub.components
        .stores
        .bindings
        .replace_all([on("m1"), tolerant, elsewhere]);
    assert_eq!(hub.manager.scan("m1").await, Action::After(RESCAN));
    assert_eq!(hub.queued(), [eviction("m1", Cause::Taint)]);
    assert_eq!(hub.manager.scan("m2").await, Action::Wait);
    hub.recover("m1");
    assert_eq!(hub.manager.scan("m1").await, Action::Wait);
    assert!(hub.queued().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_fills_and_is_dropped_has_one_event_each_whatever_its_length() {
    let hub = Hub::new(lost_and_healthy());
    let mut other = on("m1");
    other.metadata.name = Some("other".to_owned());
    hub.components.stores.bindings.replace_all([on("m1"), other]);
    hub.manager.scan("m1").await;
    hub.manager.scan("m1").await;
    hub.recover("m1");
    hub.manager.scan("m1").await;
    hub.manager.scan("m1").await;
    let expected = [
        "EvictionsDropped Cluster/m1: The cluster has no taint that evicts any more: 2 workloads are removed from the \
         eviction queue.",
        "EvictionsQueued Cluster/m1: 2 workloads are queued for eviction from the cluster.",
    ];
    assert_eq!(hub.events().await, expected.map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_queue_whose_last_eviction_was_written_has_an_event() {
    let hub = Hub::new(lost_and_healthy());
    hub.components.stores.bindings.replace_all([on("m1")]);
    hub.manager.scan("m1").await;
    let waiting = || {
        let labels = crate::metrics::ClusterLabels {
            cluster_name: "m1".to_owned(),
        };
        hub.manager.deps.metrics.evict_total.get_or_create(&labels).get()
    };
    assert_eq!(waiting(), 1);
    let now = hub.manager.now();
    hub.manager.end(&eviction("m1", Cause::Taint), Finished::Done, now);
    assert_eq!(waiting(), 0);
    hub.components.stores.bindings.replace_all([on("m2")]);
    hub.manager.scan("m1").await;
    let expected = [
        "EvictionsCompleted Cluster/m1: No workload is queued for eviction from the cluster.",
        "EvictionsQueued Cluster/m1: 1 workload is queued for eviction from the cluster.",
    ];
    assert_eq!(hub.events().await, expected.map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_brake_that_stops_and_resumes_evictions_has_events_about_the_cluster() {
    let hub = Hub::new(vec![
        cluster("m1", false, &not_ready()),
        cluster("m2", false, &not_ready()),
    ]);
    hub.components.stores.bindings.replace_all([]);
    hub.manager.scan("m1").await;
    hub.manager.scan("m1").await;
    hub.recover("m2");
    hub.manager.scan("m1").await;
    let expected = [
        "EvictionsResumed Cluster/m1: 1 of 2 clusters are not ready: 0 evictions go on.",
        "EvictionsStopped Cluster/m1: 2 of 2 clusters are not ready: 0 evictions wait.",
    ];
    assert_eq!(hub.events().await, expected.map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_held_eviction_has_an_event_for_each_reason_and_one_when_it_is_not_needed() {
    let hub = Hub::new(lost_and_healthy());
    hub.components.stores.bindings.replace_all([on("m1")]);
    let held = eviction("m1", Cause::Taint);
    let reason = |code: &str, message: &str| Attribution::rule(code, message);
    let paused = || reason("EvictionPaused", "the EvictionPause all applies");
    hub.manager.note_wait(&held, paused(), None);
    hub.manager.note_wait(&held, paused(), None);
    hub.manager
        .note_wait(&held, reason("NoTargetCluster", "no other cluster"), None);
    hub.manager.announce_unneeded([&held]);
    hub.manager.announce_unneeded([&held]);
    let messages = [
        ("EvictionHeld", "is held: the EvictionPause all applies"),
        ("EvictionHeld", "is held: no other cluster"),
        ("EvictionUnneeded", "is not needed any more."),
    ];
    let expected = messages
        .iter()
        .map(|(reason, text)| format!("{reason} Deployment/web: Eviction from cluster m1 {text}"));
    assert_eq!(hub.events().await, expected.collect());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_before_its_status_is_ready_keeps_its_workloads() {
    let hub = Hub::new(lost_and_healthy()).with(on("m1")).await;
    let contacts = &hub.components.contacts;
    let evicts = || {
        let judged = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint));
        assert!(matches!(judged, Judged::Evict(_) | Judged::Later(_)));
        matches!(judged, Judged::Evict(_))
    };
    assert!(evicts(), "another process probes");
    contacts.expect_probes();
    assert!(evicts(), "there was no probe yet");
    contacts.probed("m1", false);
    assert!(evicts());
    contacts.probed("m1", true);
    assert!(!evicts());
}

#[tokio::test(start_paused = true)]
async fn nothing_leaves_a_cluster_whose_taints_are_being_removed() {
    let hub = Hub::new(lost_and_healthy()).with(on("m1")).await;
    let judged = || hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint));
    assert!(matches!(judged(), Judged::Evict(_)));
    hub.components.contacts.untainted("m1");
    assert!(matches!(judged(), Judged::Later(_)), "the store does not show it yet");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(
        matches!(judged(), Judged::Evict(_)),
        "the taint is there again, or still"
    );
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_tolerates_the_taint_without_end_is_recorded_once() {
    let hub = Hub::new(lost_and_healthy());
    let mut tolerant = on("m1");
    let placement = json!({"clusterTolerations": [{"operator": "Exists"}]}).to_string();
    tolerant.metadata.annotations = Some([(keys::APPLIED_PLACEMENT.to_owned(), placement)].into());
    hub.components.stores.bindings.replace_all([tolerant]);
    let scans = async |times: usize| {
        for _ in 0..times {
            hub.manager.scan("m1").await;
        }
        hub.recorded(Decision::EvictionsWait)
    };
    assert_eq!(scans(3).await, 1);
    hub.recover("m1");
    assert_eq!(scans(1).await, 1);
    hub.lose("m1");
    assert_eq!(scans(2).await, 2, "it is lost again");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_recorded_and_written_once() {
    let hub = Hub::new(lost_and_healthy()).with(on("m1")).await;
    let Judged::Evict(write) = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint)) else {
        panic!("the cluster is lost, and another one is ready")
    };
    write.await.unwrap();
    let task = ("m1".to_owned(), "TaintUntolerated".to_owned());
    assert_eq!(hub.written().await, (Vec::new(), vec![task]));
    assert_eq!(hub.recorded(Decision::Evicted), 1);
    // The store has the answer of the write.
    let judged = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint));
    assert!(matches!(judged, Judged::Unneeded), "the binding has left");
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_changed_since_it_was_read_is_not_evicted_from_its_old_state() {
    let hub = Hub::new(lost_and_healthy()).with(on("m1")).await;
    let Judged::Evict(write) = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint)) else {
        panic!("the cluster is lost, and another one is ready")
    };
    let moved = Patch::Merge(json!({"spec": {"clusters": [{"name": "m2", "replicas": 2}]}}));
    hub.bindings
        .patch("web-deployment", &PatchParams::default(), &moved)
        .await
        .unwrap();
    assert!(write.await.unwrap_err().is_conflict());
    assert_eq!(hub.written().await, (vec!["m2".to_owned()], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_is_being_written_does_not_hold_up_the_queue() {
    let hub = Hub::new(lost_and_healthy()).with(on("m1")).await;
    let lock = hub
        .components
        .stores
        .bindings
        .lock_object(&Key::new("default", "web-deployment"))
        .await;
    let judged = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint));
    assert!(matches!(judged, Judged::Later(after) if after == AFTER_CONFLICT));
    drop(lock);
    let judged = hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint));
    assert!(matches!(judged, Judged::Evict(_)));
}

#[tokio::test(start_paused = true)]
async fn a_paused_eviction_and_one_without_a_target_wait() {
    let check = |clusters: Vec<Cluster>, pauses: Vec<EvictionPause>, expected: &str| {
        let hub = Hub::new(clusters);
        hub.components.stores.bindings.replace_all([on("m1")]);
        hub.components.stores.eviction_pauses.replace_all(pauses);
        match hub.manager.judge::<ResourceBinding>(&eviction("m1", Cause::Taint)) {
            Judged::Wait { attribution, .. } => assert_eq!(attribution.reason.code, expected),
            _ => panic!("{expected} must hold the eviction"),
        }
    };
    let pause: EvictionPause = object(json!({"metadata": {"name": "all"}, "spec": {}}));
    check(lost_and_healthy(), vec![pause], "EvictionPaused");
    let all_lost = vec![cluster("m1", false, &not_ready()), cluster("m2", false, &not_ready())];
    check(all_lost, Vec::new(), "NoTargetCluster");
}

fn stable_since(name: &str, since: &str) -> Cluster {
    let mut stable = cluster(name, true, &json!([]));
    stable.metadata.annotations = Some([(STABLE.to_owned(), json!({"since": since}).to_string())].into());
    stable
}

/// Returns the binding of a workload whose home is `m1`, and which is on `m2` meanwhile.
fn away() -> ResourceBinding {
    let mut away = on("m2");
    let home = json!({"clusters": {"m1": 2}, "leftAt": LONG_AGO}).to_string();
    away.metadata
        .annotations
        .get_or_insert_default()
        .insert(HOME.to_owned(), home);
    away
}

impl Hub {
    /// Writes that the scheduler has processed the current generation of the binding.
    async fn scheduled(self) -> Self {
        let generation = self.bindings.get("web-deployment").await.unwrap().metadata.generation;
        let status = Patch::Merge(json!({"status": {"schedulerObservedGeneration": generation}}));
        let scheduled = self
            .bindings
            .patch_status("web-deployment", &PatchParams::default(), &status)
            .await
            .unwrap();
        self.components.stores.bindings.replace_all([scheduled]);
        self
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_returns_when_its_home_has_been_stable_for_the_window() {
    let clusters = |since: &str| vec![stable_since("m1", since), stable_since("m2", LONG_AGO)];
    let fresh = Hub::new(clusters("1969-12-31T23:59:00Z"))
        .with(away())
        .await
        .scheduled()
        .await;
    let judged = fresh
        .manager
        .judge_return::<ResourceBinding>(&eviction("m2", Cause::Failback));
    assert!(matches!(judged, Judged::Unneeded), "the window is ten minutes");
    let hub = Hub::new(clusters(LONG_AGO)).with(away()).await.scheduled().await;
    let Judged::Evict(write) = hub
        .manager
        .judge_return::<ResourceBinding>(&eviction("m2", Cause::Failback))
    else {
        panic!("the home is stable")
    };
    write.await.unwrap();
    let task = ("m2".to_owned(), REASON_FAILBACK.to_owned());
    assert_eq!(hub.written().await, (vec!["m1".to_owned()], vec![task]));
    let home = hub
        .bindings
        .get("web-deployment")
        .await
        .unwrap()
        .metadata
        .annotations
        .unwrap()[HOME]
        .clone();
    assert_eq!(serde_json::from_str::<Value>(&home).unwrap()["tries"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_scan_of_homes_queues_as_many_returns_as_may_be_under_way() {
    let hub = Hub::new(vec![stable_since("m1", LONG_AGO), stable_since("m2", LONG_AGO)]);
    let named = |name: &str| {
        let mut away = away();
        away.metadata.name = Some(name.to_owned());
        away
    };
    hub.components.stores.bindings.replace_all([named("a"), named("b")]);
    hub.components.stores.cluster_bindings.replace_all([]);
    hub.manager.scan_homes(hub.manager.failback.settings.unwrap()).await;
    // One at a time by default, in the order of names.
    let queued: Vec<_> = hub
        .queued()
        .into_iter()
        .map(|eviction| (eviction.binding.name, eviction.cluster))
        .collect();
    assert_eq!(queued, [("a".to_owned(), "m2".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn the_stability_of_a_cluster_is_written_when_it_changes() {
    let hub = Hub::new(Vec::new());
    let clusters: Api<Cluster> = Api::all(hub.components.hub.clone());
    let known = cluster("m1", true, &json!([]));
    clusters.create(&PostParams::default(), &known).await.unwrap();
    let status = Patch::Merge(json!({"status": known.status}));
    let ready = clusters
        .patch_status("m1", &PatchParams::default(), &status)
        .await
        .unwrap();
    hub.components.stores.clusters.replace_all([ready]);
    let key = Key::new("", "m1");
    hub.manager.keep_stability(&key).await.unwrap();
    let written = clusters.get("m1").await.unwrap();
    let text = &written.metadata.annotations.as_ref().unwrap()[STABLE];
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        json!({"since": "1970-01-01T00:00:00Z"})
    );
    hub.manager.keep_stability(&key).await.unwrap();
    assert_eq!(
        clusters.get("m1").await.unwrap().metadata.resource_version,
        written.metadata.resource_version
    );
}
