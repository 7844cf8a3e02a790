use bulkhead_apiserver::{ApiServer, ReadyState};
use bulkhead_core::journal::Decision;
use bulkhead_runtime::events;
use http::Response;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tower::{BoxError, service_fn};

use super::*;
use crate::components::Components;
use crate::testing::{components, hub_of_works, member as member_server, object};

/// Returns a client of a member that answers these paths with these codes, and no other path at all.
fn member(answers: &'static [(&'static str, u16)]) -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        let Some((_, code)) = answers.iter().find(|(known, _)| *known == path) else {
            return std::future::pending::<Result<Response<Body>, BoxError>>().await;
        };
        Ok(Response::builder().status(*code).body(Body::empty())?)
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_health_of_a_member_is_that_of_its_first_endpoint() {
    let check = async |answers, expected| assert_eq!(probe(&member(answers)).await, expected, "{answers:?}");
    check(&[("/readyz", 200)], Probe::Ready).await;
    check(&[("/readyz", 202)], Probe::NotReady).await;
    check(&[("/readyz", 500)], Probe::Unreachable).await;
    check(&[("/readyz", 404), ("/healthz", 200)], Probe::Ready).await;
    check(&[("/readyz", 404), ("/healthz", 503)], Probe::Unreachable).await;
    check(&[("/readyz", 404)], Probe::Unreachable).await;
    check(&[("/healthz", 200)], Probe::Unreachable).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_answer_is_unreachable_after_the_time_limit() {
    let start = Instant::now();
    assert_eq!(probe(&member(&[])).await, Probe::Unreachable);
    assert_eq!(start.elapsed(), PROBE_TIME_MAX);
}

/// Control plane with the Push clusters `m1`, whose member is `member`, and `m2`.
struct Hub {
    member: ApiServer,
    components: Components,
    controller: ClusterStatusController,
    clusters: Api<Cluster>,
    /// Keeps the channel of the events open.
    #[expect(dead_code, reason = "held, not read")]
    events: events::Writer,
}

impl Hub {
    async fn new() -> Self {
        let member = member_server();
        Self::with_members(member.clone(), |components| components).await
    }

    async fn with_members(member: ApiServer, change: impl FnOnce(Components) -> Components) -> Self {
        let server = hub_of_works(1);
        let (base, events) = components(server.client(), member.client());
        let components = change(base);
        let clusters: Api<Cluster> = Api::all(server.client());
        let mut known = Vec::new();
        for name in ["m1", "m2"] {
            let cluster = object(json!({"metadata": {"name": name}, "spec": {"syncMode": "Push"}}));
            known.push(clusters.create(&PostParams::default(), &cluster).await.unwrap());
        }
        components.stores.clusters.replace_all(known);
        Self {
            controller: ClusterStatusController::new(components.cluster_status(), Arc::default()),
            member,
            components,
            clusters,
            events,
        }
    }

    async fn sync(&self) -> Result<(), Error> {
        let cluster = self.components.stores.cluster("m1").unwrap();
        self.controller.sync(&cluster).await
    }

    /// Probes `m1`, and returns status and reason of its Ready condition in the control plane.
    async fn ready(&self) -> (ConditionStatus, String) {
        self.sync().await.unwrap();
        let cluster = self.clusters.get("m1").await.unwrap();
        let ready = Condition::find(&cluster.status.conditions, "Ready").unwrap();
        (ready.status, ready.reason.clone())
    }

    /// Returns the recorded states of readiness.
    fn recorded(&self) -> Vec<String> {
        let records = self.components.journal.records();
        let changes = records
            .iter()
            .filter(|record| record.entry.decision == Decision::ReadyChanged);
        changes.map(|record| record.entry.effect.clone()).collect()
    }
}

const READY: (ConditionStatus, &str) = (ConditionStatus::True, "ClusterReady");
const LOST: (ConditionStatus, &str) = (ConditionStatus::False, "ClusterNotReachable");

fn condition((status, reason): (ConditionStatus, &str)) -> (ConditionStatus, String) {
    (status, reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_longer_than_the_threshold_is_not_ready() {
    let hub = Hub::new().await;
    assert_eq!(hub.ready().await, condition(READY));
    hub.member.set_ready(ReadyState::Failing(500));
    assert_eq!(hub.ready().await, condition(READY));
    tokio::time::advance(Duration::from_secs(29)).await;
    assert_eq!(hub.ready().await, condition(READY));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(hub.ready().await, condition(LOST));
    assert_eq!(hub.recorded(), ["True", "False"]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_shorter_than_the_threshold_stays_ready() {
    let hub = Hub::new().await;
    assert_eq!(hub.ready().await, condition(READY));
    for _ in 0..3 {
        hub.member.set_ready(ReadyState::Failing(500));
        assert_eq!(hub.ready().await, condition(READY));
        tokio::time::advance(Duration::from_secs(20)).await;
        hub.member.set_ready(ReadyState::Ready);
        assert_eq!(hub.ready().await, condition(READY));
        tokio::time::advance(Duration::from_secs(20)).await;
    }
    assert_eq!(hub.recorded(), ["True"]);
}

#[tokio::test(start_paused = true)]
async fn a_ready_member_is_described_in_the_status() {
    let hub = Hub::new().await;
    hub.sync().await.unwrap();
    let status = hub.clusters.get("m1").await.unwrap().status;
    assert!(!status.kubernetes_version.is_empty(), "{status:?}");
    let deployments = status
        .api_enablements
        .iter()
        .any(|enablement| enablement.group_version == "apps/v1");
    assert!(deployments, "{:?}", status.api_enablements);
    let complete = Condition::find(&status.conditions, "CompleteAPIEnablements").unwrap();
    assert_eq!(complete.status, ConditionStatus::True, "{complete:?}");
    assert!(status.node_summary.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_member_has_all_clusters_probed_at_once() {
    let hub = Hub::new().await;
    hub.sync().await.unwrap();
    assert_eq!(hub.controller.queue.depth(), 0);
    hub.member.set_ready(ReadyState::Failing(500));
    hub.sync().await.unwrap();
    let probed = [hub.controller.queue.next().await, hub.controller.queue.next().await];
    assert_eq!(probed.map(|key| key.name), ["m1", "m2"]);
    hub.sync().await.unwrap();
    assert_eq!(
        hub.controller.queue.depth(),
        0,
        "a member that stays lost has no extra probes"
    );
}

/// Members without a client, for this reason.
struct Unavailable(MemberError);

impl Members for Unavailable {
    fn client(&self, _: &str) -> Result<Client, MemberError> {
        Err(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_without_a_usable_credential_is_not_ready() {
    let with = |error: MemberError| {
        move |components| Components {
            members: Arc::new(Unavailable(error)),
            ..components
        }
    };
    let broken = with(MemberError::Broken("no caBundle".to_owned()));
    let hub = Hub::with_members(member_server(), broken).await;
    assert_eq!(
        hub.ready().await,
        condition((ConditionStatus::False, "StatusCollectionFailed"))
    );
    let unread = with(MemberError::NotYet("the Secret is not read yet".to_owned()));
    let hub = Hub::with_members(member_server(), unread).await;
    let error = hub.sync().await.unwrap_err();
    assert!(matches!(error, Error::NotYet(_)), "{error}");
    assert_eq!(hub.recorded(), [""; 0]);
}
