use bulkhead_apiserver::{ApiServer, Fault, Verb};
use bulkhead_core::model::{RebalanceFailedReason, RebalanceResult};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::Value;

use super::*;
use crate::testing::{binding_of_web, components, hub_of_everything, member, object};

const BEFORE: &str = "1969-12-31T23:00:00Z";

fn rebalancer(hub: &ApiServer) -> Rebalancer {
    let (components, _events) = components(hub.client(), member().client());
    Rebalancer {
        deps: components.rebalancer(),
    }
}

async fn create(hub: &ApiServer, spec: Value) -> WorkloadRebalancer {
    let request = object(json!({"metadata": {"name": "r"}, "spec": spec}));
    all(hub).create(&PostParams::default(), &request).await.unwrap()
}

async fn bind_web(hub: &ApiServer, fields: Value) {
    let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
    bindings
        .create(&PostParams::default(), &binding_of_web(&fields))
        .await
        .unwrap();
}

fn all(hub: &ApiServer) -> Api<WorkloadRebalancer> {
    Api::all(hub.client())
}

fn web() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"})
}

/// Reconciles the newest version of the object `r`.
async fn reconcile(hub: &ApiServer, rebalancer: &Rebalancer) -> Result<Action, Error> {
    let newest = all(hub).get("r").await.unwrap();
    rebalancer.deps.bindings.stores.rebalancers.replace_all([newest]);
    rebalancer.reconcile(Key::new("", "r")).await
}

async fn triggered(hub: &ApiServer) -> Option<Time> {
    let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
    bindings
        .get("web-deployment")
        .await
        .unwrap()
        .spec
        .reschedule_triggered_at
}

#[tokio::test]
async fn a_binding_gets_the_request_once_and_a_workload_without_one_fails() {
    let hub = hub_of_everything(1);
    let rebalancer = rebalancer(&hub);
    bind_web(&hub, json!({"rescheduleTriggeredAt": BEFORE})).await;
    let missing = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "api"});
    let created = create(&hub, json!({"workloads": [web(), missing]})).await;
    let requested = time::from_meta(created.metadata.creation_timestamp.as_ref().unwrap());

    assert!(matches!(reconcile(&hub, &rebalancer).await, Ok(Action::Wait)));
    assert_eq!(triggered(&hub).await, Some(requested));
    let status = all(&hub).get("r").await.unwrap().status;
    let results: Vec<_> = status
        .observed_workloads
        .iter()
        .map(|item| (item.workload.name.as_str(), item.result, item.reason))
        .collect();
    let not_found = Some(RebalanceFailedReason::ReferencedBindingNotFound);
    let expected = [
        ("api", Some(RebalanceResult::Failed), not_found),
        ("web", Some(RebalanceResult::Successful), None),
    ];
    assert_eq!(results, expected);
    assert!(
        status.finish_time.is_some() && status.observed_generation == 1,
        "{status:?}"
    );

    let writes = hub.writes();
    reconcile(&hub, &rebalancer).await.unwrap();
    assert_eq!(hub.writes(), writes, "the result stands");
}

#[tokio::test]
async fn the_binding_of_an_object_of_another_group_gets_no_request() {
    let hub = hub_of_everything(1);
    let rebalancer = rebalancer(&hub);
    bind_web(&hub, json!({})).await;
    let other = json!({"apiVersion": "example.io/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    create(&hub, json!({"workloads": [other]})).await;
    reconcile(&hub, &rebalancer).await.unwrap();
    assert_eq!(triggered(&hub).await, None);
    let status = all(&hub).get("r").await.unwrap().status;
    assert_eq!(status.observed_workloads[0].result, Some(RebalanceResult::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_could_not_be_written_is_tried_again_and_the_others_are_reported() {
    let hub = hub_of_everything(1);
    let rebalancer = rebalancer(&hub);
    bind_web(&hub, json!({})).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view"});
    create(&hub, json!({"workloads": [web(), role], "ttlSecondsAfterFinished": 0})).await;
    hub.inject(Fault::Respond(503), |request| {
        request.plural == "resourcebindings" && request.verb == Verb::Patch
    });
    assert!(reconcile(&hub, &rebalancer).await.is_err());
    let status = all(&hub).get("r").await.unwrap().status;
    let results: Vec<_> = status.observed_workloads.iter().map(|item| item.result).collect();
    assert_eq!(results, [None, Some(RebalanceResult::Failed)]);
    assert_eq!(status.finish_time, None);

    reconcile(&hub, &rebalancer).await.unwrap();
    assert!(triggered(&hub).await.is_some());
    assert!(
        all(&hub).get_opt("r").await.unwrap().is_none(),
        "its time is over at its end"
    );
}

#[tokio::test]
async fn a_finished_object_is_deleted_after_its_time_and_not_before() {
    let hub = hub_of_everything(1);
    let rebalancer = rebalancer(&hub);
    bind_web(&hub, json!({})).await;
    create(&hub, json!({"workloads": [web()], "ttlSecondsAfterFinished": 60})).await;
    match reconcile(&hub, &rebalancer).await {
        // The time since its end has passed, less than a second unless the machine is overloaded.
        Ok(Action::After(left)) => assert!(
            left <= Duration::from_mins(1) && left > Duration::from_secs(30),
            "{left:?}"
        ),
        other => panic!("{other:?}"),
    }
    let ended = Patch::Merge(json!({"status": {"finishTime": BEFORE}}));
    all(&hub)
        .patch_status("r", &PatchParams::default(), &ended)
        .await
        .unwrap();
    reconcile(&hub, &rebalancer).await.unwrap();
    assert!(all(&hub).get_opt("r").await.unwrap().is_none());
}
