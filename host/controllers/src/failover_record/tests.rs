use std::sync::atomic::{AtomicBool, Ordering};

use bulkhead_api::{FailoverRecord, ResourceBinding};
use bulkhead_apiserver::ApiServer;
use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::{Decision, Subject};
use bulkhead_core::model::FailoverState;
use http::{Method, Request};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::Value;
use tokio::task::JoinSet;
use tower::{BoxError, Service as _, ServiceExt as _, service_fn};

use super::*;
use crate::components::Components;
use crate::decision_log::{DecisionLog, Record};
use crate::manager::Manager;
use crate::testing::{binding_of_web, components, hub_of_everything, member};

/// Control plane with the binding of `web`, which leaves m1 for m2, and the running controller.
struct Hub {
    server: ApiServer,
    bindings: Api<ResourceBinding>,
    records: Api<FailoverRecord>,
    /// True while writes of the controller do not reach the control plane.
    is_cut: Arc<AtomicBool>,
    components: Components,
    _running: JoinSet<()>,
}

impl Hub {
    async fn new() -> Self {
        let server = hub_of_everything(1);
        let bindings: Api<ResourceBinding> = Api::namespaced(server.client(), "default");
        let task = json!({
            "fromCluster": "m1", "reason": "TaintUntolerated", "producer": "TaintManager",
            "creationTimestamp": "1970-01-01T00:00:00Z",
        });
        let fields = json!({"clusters": [{"name": "m2", "replicas": 2}], "gracefulEvictionTasks": [task]});
        bindings
            .create(&PostParams::default(), &binding_of_web(&fields))
            .await
            .unwrap();
        Self::on(server).await
    }

    /// Starts the controller on a control plane, in a new process.
    async fn on(server: ApiServer) -> Self {
        let is_cut: Arc<AtomicBool> = Arc::default();
        let (components, _) = components(cuttable(&server, &is_cut), member().client());
        let mut running = JoinSet::new();
        let stores = &components.stores;
        let informed = Api::all(server.client());
        running.spawn(Arc::clone(&stores.bindings).run_informer(informed, Default::default()));
        let informed = Api::all(server.client());
        running.spawn(Arc::clone(&stores.cluster_bindings).run_informer(informed, Default::default()));
        let informed = Api::all(server.client());
        running.spawn(Arc::clone(&stores.failover_records).run_informer(informed, Default::default()));
        let informed = Api::all(server.client());
        running.spawn(Arc::clone(&stores.cluster_failover_records).run_informer(informed, Default::default()));
        running.spawn(run(components.failover_record()));
        // The informers list.
        tokio::time::sleep(Duration::from_millis(100)).await;
        Self {
            bindings: Api::namespaced(server.client(), "default"),
            records: Api::namespaced(server.client(), "default"),
            server,
            is_cut,
            components,
            _running: running,
        }
    }

    fn log(&self) -> DecisionLog {
        self.components.graceful_eviction().log
    }

    /// Decides about the copy of `web` on m1, and applies the decision.
    async fn decide(&self, decision: Decision, code: &str) {
        let log = self.log();
        let recorded = log.record(Record {
            controller: "graceful-eviction-controller",
            subject: Subject::new("ResourceBinding", "default", "web-deployment"),
            cluster: Some("m1".to_owned()),
            decision,
            attribution: Attribution::rule(code, "for a reason"),
            effect: String::new(),
            inputs: Vec::new(),
        });
        log.apply(&[recorded], async { Ok(()) }).await.unwrap();
    }

    async fn end_task(&self) {
        let patch = Patch::Merge(json!({"spec": {"gracefulEvictionTasks": null}}));
        self.bindings
            .patch("web-deployment", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    async fn record(&self) -> Option<FailoverRecord> {
        self.records.get_opt("web-deployment").await.unwrap()
    }

    /// Returns states and reasons of the steps.
    async fn steps(&self) -> Vec<(FailoverState, String)> {
        let record = self.record().await.unwrap();
        let steps = record.status.steps.into_iter();
        steps.map(|step| (step.state, step.reason)).collect()
    }

    fn writes(&self) -> u64 {
        let writes = self.server.writes();
        let of_records = writes
            .iter()
            .filter(|(write, _)| write.resource.starts_with("failoverrecords"));
        of_records.map(|(_, count)| *count).sum()
    }
}

/// Returns a client whose writes do not reach the server while `is_cut` is true.
fn cuttable(server: &ApiServer, is_cut: &Arc<AtomicBool>) -> Client {
    let (service, is_cut) = (server.service(), Arc::clone(is_cut));
    let cutting = service_fn(move |request: Request<Body>| {
        let fails = is_cut.load(Ordering::Relaxed) && request.method() != Method::GET;
        let mut service = service.clone();
        async move {
            if fails {
                return Err(BoxError::from("no connection"));
            }
            Ok(service.ready().await?.call(request).await?)
        }
    });
    Client::new(cutting, "default")
}

fn step(state: FailoverState, reason: &str) -> (FailoverState, String) {
    (state, reason.to_owned())
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_eviction_and_its_hold_are_one_write_and_the_release_is_another() {
    let hub = Hub::new().await;
    hub.decide(Decision::Evicted, "TaintUntolerated").await;
    hub.decide(Decision::Held, "NotApplied").await;
    pass(3).await;
    let record = hub.record().await.unwrap();
    let owner = record.owner_references().first().unwrap();
    let binding = hub.bindings.get("web-deployment").await.unwrap();
    assert_eq!(
        (&*owner.kind, &*owner.name, Some(&owner.uid)),
        ("ResourceBinding", "web-deployment", binding.metadata.uid.as_ref())
    );
    assert_eq!(
        hub.steps().await,
        [
            step(FailoverState::Evicted, "TaintUntolerated"),
            step(FailoverState::Held, "NotApplied")
        ]
    );
    assert_eq!(
        (record.status.steps[0].to.clone(), hub.writes()),
        (vec!["m2".to_owned()], 1)
    );
    // A reason that changes is written with the next step.
    for code in ["NotHealthy", "NotAvailable", "NotHealthy"] {
        hub.decide(Decision::Held, code).await;
        pass(15).await;
    }
    assert_eq!(hub.writes(), 1);
    hub.decide(Decision::Released, "ReplacementHealthy").await;
    hub.end_task().await;
    pass(15).await;
    assert_eq!(
        hub.steps().await[1..],
        [
            step(FailoverState::Held, "NotHealthy"),
            step(FailoverState::Released, "ReplacementHealthy")
        ]
    );
    assert_eq!(hub.writes(), 2);
    pass(600).await;
    assert_eq!(hub.writes(), 2, "nothing happened since");
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_hold_that_lasts_is_written_within_a_minute() {
    let hub = Hub::new().await;
    hub.decide(Decision::Held, "NotApplied").await;
    pass(3).await;
    hub.decide(Decision::Held, "NotHealthy").await;
    pass(62).await;
    assert_eq!(hub.steps().await[1..], [step(FailoverState::Held, "NotHealthy")]);
    assert_eq!(hub.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_repeated_with_all_that_happened_since() {
    let hub = Hub::new().await;
    hub.is_cut.store(true, Ordering::Relaxed);
    hub.decide(Decision::Evicted, "TaintUntolerated").await;
    hub.decide(Decision::Held, "NotApplied").await;
    pass(30).await;
    assert!(hub.record().await.is_none());
    hub.decide(Decision::Released, "ReplacementHealthy").await;
    hub.end_task().await;
    pass(30).await;
    hub.is_cut.store(false, Ordering::Relaxed);
    pass(61).await;
    assert_eq!(
        hub.steps().await,
        [
            step(FailoverState::Evicted, "TaintUntolerated"),
            step(FailoverState::Held, "NotApplied"),
            step(FailoverState::Released, "ReplacementHealthy"),
        ]
    );
    assert_eq!(hub.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_was_not_applied_is_no_step() {
    let hub = Hub::new().await;
    let log = hub.log();
    let released = log.record(Record {
        controller: "graceful-eviction-controller",
        subject: Subject::new("ResourceBinding", "default", "web-deployment"),
        cluster: Some("m1".to_owned()),
        decision: Decision::Released,
        attribution: Attribution::rule("ReplacementHealthy", ""),
        effect: String::new(),
        inputs: Vec::new(),
    });
    let lost = async { Err::<(), _>(Error::Undecided("lost the race".to_owned())) };
    log.apply(&[released], lost).await.unwrap_err();
    pass(15).await;
    assert_eq!(hub.steps().await, [step(FailoverState::Evicted, "TaintUntolerated")]);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_completes_the_record_of_its_predecessor() {
    let hub = Hub::new().await;
    hub.decide(Decision::Held, "NotApplied").await;
    pass(5).await;
    let server = hub.server.clone();
    drop(hub);
    let ended: Api<ResourceBinding> = Api::namespaced(server.client(), "default");
    let patch = Patch::Merge(json!({"spec": {"gracefulEvictionTasks": null}}));
    ended
        .patch("web-deployment", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let next = Hub::on(server).await;
    pass(5).await;
    assert_eq!(
        next.steps().await,
        [
            step(FailoverState::Evicted, "TaintUntolerated"),
            step(FailoverState::Held, "NotApplied"),
            step(FailoverState::Released, failover_record::REASON_TASK_GONE),
        ]
    );
    assert_eq!(next.record().await.unwrap().status.evicted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_another_process_changed_meanwhile_loses_no_step() {
    let hub = Hub::new().await;
    pass(5).await;
    let read = hub.record().await.unwrap();
    // Another process adds its hold, while this one decides from the older record.
    let mut theirs: Value = json!(read.status);
    theirs["steps"] = json!([
        theirs["steps"][0],
        {"time": "1970-01-01T00:00:01Z", "state": "Held", "from": "m1", "reason": "DeletionSuppressed"},
    ]);
    let patch = Patch::Merge(json!({"status": theirs}));
    let params = PatchParams::default();
    hub.records.patch("web-deployment", &params, &patch).await.unwrap();
    let controller = FailoverRecords::new(hub.components.failover_record());
    let binding = hub.bindings.get("web-deployment").await.unwrap();
    let written = controller.write(&binding, Some(&read), Default::default()).await;
    assert!(written.unwrap_err().is_conflict());
    hub.decide(Decision::Released, "ReplacementHealthy").await;
    hub.end_task().await;
    pass(15).await;
    assert_eq!(
        hub.steps().await[1..],
        [
            step(FailoverState::Held, "DeletionSuppressed"),
            step(FailoverState::Released, "ReplacementHealthy")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_goes_with_its_binding_and_the_next_binding_starts_a_new_one() {
    let hub = Hub::new().await;
    pass(5).await;
    let first = hub.record().await.unwrap();
    let binding = hub.bindings.get("web-deployment").await.unwrap();
    let again = |tasks| {
        let mut again = binding_of_web(&json!({}));
        again.spec = binding.spec.clone();
        again.spec.graceful_eviction_tasks = tasks;
        again
    };
    let (delete, create) = (DeleteParams::default(), PostParams::default());
    hub.bindings.delete("web-deployment", &delete).await.unwrap();
    pass(5).await;
    assert!(hub.record().await.is_none());
    let leaving = again(binding.spec.graceful_eviction_tasks.clone());
    hub.bindings.create(&create, &leaving).await.unwrap();
    pass(15).await;
    let second = hub.record().await.unwrap();
    assert_ne!(first.metadata.owner_references, second.metadata.owner_references);
    assert_eq!(second.status.evicted, 1);
    // A binding that takes its place at once and leaves no cluster.
    hub.bindings.delete("web-deployment", &delete).await.unwrap();
    hub.bindings.create(&create, &again(Vec::new())).await.unwrap();
    pass(15).await;
    assert!(hub.record().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn no_record_is_written_when_the_flag_is_off() {
    let server = hub_of_everything(1);
    let (mut components, _) = components(server.client(), member().client());
    components.flags = Arc::new(Flags {
        failover_records: false,
        ..Flags::default()
    });
    let manager = Manager::watch(components.clone());
    assert!(manager.start_controller("failoverRecord"));
    pass(5).await;
    assert!(!components.stores.failover_records.has_informer());
    let all: Api<FailoverRecord> = Api::all(server.client());
    assert_eq!(all.list(&ListParams::default()).await.unwrap().items.len(), 0);
}
