//! Behaviour of workloads in member clusters.

use std::time::Duration;

use bulkhead_apiserver::{Fidelity, LinkState, kinds};
use bulkhead_emulator::{Behaviour, Capacity, FailureMode, MemberCluster, MemberOptions};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::*;

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn create<K>(client: Client, object: Value)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &from(object)).await.unwrap();
}

async fn deploy(member: &MemberCluster, object: &Deployment) {
    let api: Api<Deployment> = Api::default_namespaced(member.server().client());
    api.create(&PostParams::default(), object).await.unwrap();
}

async fn patch_deployment(member: &MemberCluster, patch: Value) {
    let api: Api<Deployment> = Api::default_namespaced(member.server().client());
    api.patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// Returns the status of the Deployment `web`.
fn status(member: &MemberCluster) -> Value {
    stored(member.server(), "apps/v1", "Deployment", "default", "web")["status"].clone()
}

fn condition(status: &Value, type_: &str) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
    format!(
        "{} {}",
        condition["status"].as_str().unwrap(),
        condition["reason"].as_str().unwrap()
    )
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_ready_after_the_time_its_replicas_take() {
    let member = running(member_options());
    deploy(&member, &deployment("web", 3, "1")).await;
    wait(1).await;
    let early = status(&member);
    assert_eq!((&early["replicas"], &early["readyReplicas"]), (&json!(3), &Value::Null));
    assert_eq!(condition(&early, "Available"), "False MinimumReplicasUnavailable");
    assert_eq!(condition(&early, "Progressing"), "True ReplicaSetUpdated");
    wait(3).await;
    let late = status(&member);
    assert_eq!(late["readyReplicas"], 3);
    assert_eq!(late["availableReplicas"], 3);
    assert_eq!(late["updatedReplicas"], 3);
    assert_eq!(late["unavailableReplicas"], Value::Null);
    assert_eq!(late["observedGeneration"], 1);
    assert_eq!(condition(&late, "Available"), "True MinimumReplicasAvailable");
    assert_eq!(condition(&late, "Progressing"), "True NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_scales_and_replaces_its_pods_without_losing_availability() {
    let member = running(member_options());
    deploy(&member, &deployment("web", 2, "1")).await;
    wait(5).await;
    patch_deployment(&member, json!({"spec": {"replicas": 4}})).await;
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 4);

    let containers = json!([{"name": "main", "image": "app:2"}]);
    patch_deployment(
        &member,
        json!({"spec": {"template": {"spec": {"containers": containers}}}}),
    )
    .await;
    for _ in 0..30 {
        wait(1).await;
        assert!(status(&member)["availableReplicas"].as_u64().unwrap() >= 3);
    }
    let replaced = status(&member);
    assert_eq!(
        (&replaced["updatedReplicas"], &replaced["replicas"]),
        (&json!(4), &json!(4))
    );
    let pods: Api<Pod> = Api::default_namespaced(member.server().client());
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("app:2"));
    }

    patch_deployment(&member, json!({"spec": {"replicas": 0}})).await;
    wait(1).await;
    assert_eq!(status(&member)["replicas"], Value::Null);
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_fit_wait_until_there_is_room() {
    let member = running(MemberOptions {
        nodes: 2,
        capacity: Capacity {
            cpu: "4".to_owned(),
            memory: "8Gi".to_owned(),
            pods: 20,
        },
        ..member_options()
    });
    deploy(&member, &deployment("other", 2, "1500m")).await;
    wait(5).await;
    deploy(&member, &deployment("web", 2, "1")).await;
    wait(60).await;
    assert_eq!(status(&member)["readyReplicas"], Value::Null);
    let pods: Api<Pod> = Api::default_namespaced(member.server().client());
    let waiting = pods.list(&ListParams::default().labels("app=web")).await.unwrap();
    let waiting = waiting.items[0].status.clone().unwrap();
    assert_eq!(waiting.phase.as_deref(), Some("Pending"));
    assert_eq!(waiting.conditions.unwrap()[0].reason.as_deref(), Some("Unschedulable"));

    let deployments: Api<Deployment> = Api::default_namespaced(member.server().client());
    deployments.delete("other", &DeleteParams::default()).await.unwrap();
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_does_not_move_exceeds_its_deadline() {
    let member = running(MemberOptions {
        behaviour: Behaviour {
            unpullable_images: vec!["app:*".to_owned()],
            ..Behaviour::default()
        },
        ..member_options()
    });
    deploy(&member, &deployment("web", 1, "1")).await;
    wait(599).await;
    assert_eq!(condition(&status(&member), "Progressing"), "True ReplicaSetUpdated");
    wait(2).await;
    assert_eq!(
        condition(&status(&member), "Progressing"),
        "False ProgressDeadlineExceeded"
    );
    let pods: Api<Pod> = Api::default_namespaced(member.server().client());
    let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    let container = pod.status.unwrap().container_statuses.unwrap().remove(0);
    let waiting = container.state.unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("ImagePullBackOff"));

    member.set_unpullable_images(&[]);
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 1);
    assert_eq!(
        condition(&status(&member), "Progressing"),
        "True NewReplicaSetAvailable"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_come_and_go_at_run_time() {
    let member = running(member_options());
    deploy(&member, &deployment("web", 2, "1")).await;
    wait(5).await;
    member.set_failure(Some(FailureMode::NeverReady));
    wait(1).await;
    assert_eq!(status(&member)["readyReplicas"], Value::Null);
    assert_eq!(status(&member)["unavailableReplicas"], 2);
    member.set_failure(None);
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 2);

    let ready_for = Duration::from_secs(30);
    member.set_workload_failure("default", "web", Some(FailureMode::CrashLoop { ready_for }));
    wait(29).await;
    assert_eq!(status(&member)["readyReplicas"], 2);
    wait(2).await;
    assert_eq!(status(&member)["readyReplicas"], Value::Null);
    member.set_workload_failure("default", "web", None);
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_on_while_its_link_is_down() {
    let member = running(member_options());
    member.link().set(LinkState::Down);
    let through_link: Api<Deployment> = Api::default_namespaced(member.client());
    assert!(through_link.get("web").await.is_err());
    deploy(&member, &deployment("web", 2, "1")).await;
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_after_its_pods_ran() {
    let member = running(member_options());
    let template = pod_template("job", "1", "Never");
    let spec = json!({"completions": 3, "parallelism": 2, "template": template});
    create::<Job>(
        member.server().client(),
        json!({"metadata": {"name": "sum"}, "spec": spec}),
    )
    .await;
    let status = || stored(member.server(), "batch/v1", "Job", "default", "sum")["status"].clone();
    wait(5).await;
    assert_eq!((&status()["active"], &status()["ready"]), (&json!(2), &json!(2)));
    wait(30).await;
    assert_eq!(status()["succeeded"], 3);
    assert_eq!(condition(&status(), "Complete"), "True CompletionsReached");
    assert_eq!(status()["active"], Value::Null);

    member.set_workload_failure(
        "default",
        "bad",
        Some(FailureMode::CrashLoop {
            ready_for: Duration::from_secs(1),
        }),
    );
    let spec = json!({"backoffLimit": 2, "template": template});
    create::<Job>(
        member.server().client(),
        json!({"metadata": {"name": "bad"}, "spec": spec}),
    )
    .await;
    wait(60).await;
    let failed = stored(member.server(), "batch/v1", "Job", "default", "bad")["status"].clone();
    assert_eq!(failed["failed"], 3);
    assert_eq!(condition(&failed, "Failed"), "True BackoffLimitExceeded");
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_starts_and_replaces_its_pods_in_order() {
    let member = running(member_options());
    let spec = json!({
        "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": pod_template("db", "1", "Always"),
    });
    create::<StatefulSet>(
        member.server().client(),
        json!({"metadata": {"name": "db"}, "spec": spec}),
    )
    .await;
    let status = || stored(member.server(), "apps/v1", "StatefulSet", "default", "db")["status"].clone();
    wait(1).await;
    assert_eq!(status()["replicas"], 1);
    wait(10).await;
    assert_eq!(
        (&status()["readyReplicas"], &status()["currentReplicas"]),
        (&json!(3), &json!(3))
    );
    let before = status()["currentRevision"].clone();

    let api: Api<StatefulSet> = Api::default_namespaced(member.server().client());
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}});
    api.patch("db", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    wait(1).await;
    assert_eq!(status()["currentRevision"], before);
    assert_eq!(
        (&status()["readyReplicas"], &status()["updatedReplicas"]),
        (&json!(2), &json!(1))
    );
    wait(15).await;
    assert_eq!(status()["updatedReplicas"], 3);
    assert_ne!(status()["currentRevision"], before);
    assert_eq!(status()["currentRevision"], status()["updateRevision"]);
}

#[tokio::test(start_paused = true)]
async fn every_other_kind_gets_a_believable_status() {
    let member = running(member_options());
    let client = member.server().client();
    let spec = json!({"selector": {"matchLabels": {"app": "agent"}}, "template": pod_template("agent", "1", "Always")});
    create::<DaemonSet>(client.clone(), json!({"metadata": {"name": "agent"}, "spec": spec})).await;
    create::<Service>(
        client.clone(),
        json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer"}}),
    )
    .await;
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    create::<PersistentVolumeClaim>(client.clone(), json!({"metadata": {"name": "data"}, "spec": claim})).await;
    let bare = json!({"containers": [{"name": "main", "image": "app:1"}]});
    create::<Pod>(client.clone(), json!({"metadata": {"name": "bare"}, "spec": bare})).await;
    wait(5).await;

    let status =
        |api_version, kind, name| stored(member.server(), api_version, kind, "default", name)["status"].clone();
    assert_eq!(status("apps/v1", "DaemonSet", "agent")["numberReady"], 3);
    let ingress = status("v1", "Service", "lb")["loadBalancer"]["ingress"][0]["ip"].clone();
    assert!(ingress.as_str().unwrap().starts_with("198.18."), "{ingress}");
    assert_eq!(status("v1", "PersistentVolumeClaim", "data")["phase"], "Bound");
    assert_eq!(status("v1", "Pod", "bare")["phase"], "Running");
    let nodes: Api<Node> = Api::all(client);
    let nodes = nodes.list(&ListParams::default()).await.unwrap();
    assert_eq!(nodes.items.len(), 3);
    let allocatable = nodes.items[0].status.clone().unwrap().allocatable.unwrap();
    assert_eq!(allocatable["cpu"].0, "16000m");
}

#[tokio::test(start_paused = true)]
async fn several_transitions_at_one_instant_make_one_status_write() {
    let mut options = member_options();
    options.replica_ready.jitter = Duration::ZERO;
    let member = running(options);
    deploy(&member, &deployment("web", 20, "1")).await;
    wait(5).await;
    assert_eq!(status(&member)["readyReplicas"], 20);
    let kind = member.server().kind_id("apps/v1", "Deployment").unwrap();
    // Three changes: the creation, the status with pending pods, the status with ready pods.
    assert_eq!(member.server().store().history(kind).len(), 3);
}

/// Returns all events of a cluster with a varied workload.
async fn event_log() -> Vec<String> {
    let member = running(member_options());
    deploy(&member, &deployment("web", 5, "1")).await;
    deploy(&member, &deployment("api", 3, "4")).await;
    wait(3).await;
    member.set_failure(Some(FailureMode::NeverReady));
    patch_deployment(&member, json!({"spec": {"replicas": 8}})).await;
    wait(10).await;
    member.set_failure(None);
    wait(10).await;
    let server = member.server();
    let mut log: Vec<(u64, String)> = Vec::new();
    for kind in ["Pod", "Node", "Namespace"] {
        collect_history(&member, server.kind_id("v1", kind).unwrap(), &mut log);
    }
    collect_history(&member, server.kind_id("apps/v1", "Deployment").unwrap(), &mut log);
    log.sort();
    log.into_iter().map(|(_, line)| line).collect()
}

fn collect_history(member: &MemberCluster, kind: bulkhead_apiserver::KindId, log: &mut Vec<(u64, String)>) {
    for change in member.server().store().history(kind) {
        let line = format!("{:?} {}", change.change_type(), change.object.content().to_value());
        log.push((change.resource_version(), line));
    }
}

#[tokio::test(start_paused = true)]
async fn two_runs_with_one_seed_have_the_same_event_log() {
    let first = event_log().await;
    let second = event_log().await;
    assert!(first.len() > 50, "{}", first.len());
    assert_eq!(first, second);
}

/// Returns the ReplicaSets of the namespace `default` as `revision image replicas`, by revision.
async fn replica_sets(member: &MemberCluster) -> Vec<String> {
    let api: Api<ReplicaSet> = Api::default_namespaced(member.server().client());
    let shown = |set: ReplicaSet| {
        let set = json!(set);
        let revision = set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
            .as_str()
            .unwrap()
            .to_owned();
        let image = set["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned();
        format!("{revision} {image} {}", set["status"]["replicas"])
    };
    let mut sets: Vec<String> = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(shown)
        .collect();
    sets.sort();
    sets
}

#[tokio::test(start_paused = true)]
async fn a_deployment_for_people_keeps_a_replica_set_for_each_revision() {
    let member = running(MemberOptions {
        fidelity: Fidelity::People,
        ..member_options()
    });
    deploy(&member, &deployment("web", 2, "1")).await;
    wait(10).await;
    assert_eq!(replica_sets(&member).await, ["1 app:1 2"]);
    assert_eq!(status(&member)["availableReplicas"], 2);
    let image = |image: &str| {
        let containers = json!([{"name": "main", "image": image}]);
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    patch_deployment(&member, image("app:2")).await;
    wait(60).await;
    assert_eq!(replica_sets(&member).await, ["1 app:1 0", "2 app:2 2"]);
    let pods: Api<Pod> = Api::default_namespaced(member.server().client());
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        assert_eq!(pod.metadata.owner_references.unwrap()[0].kind, "ReplicaSet");
    }
    // As `kubectl rollout undo` does, the old template returns; its revision gets a new number.
    let sets: Api<ReplicaSet> = Api::default_namespaced(member.server().client());
    let mut old = sets
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|set| json!(set));
    let old = old.find(|set| set["status"]["replicas"] == 0).unwrap();
    let mut template = old["spec"]["template"].clone();
    template["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("pod-template-hash");
    patch_deployment(&member, json!({"spec": {"template": template}})).await;
    wait(60).await;
    assert_eq!(replica_sets(&member).await, ["2 app:2 0", "3 app:1 2"]);
    let stored = stored(member.server(), "apps/v1", "Deployment", "default", "web");
    assert_eq!(
        stored["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "3"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_for_people_starts_with_the_objects_of_every_cluster() {
    let account = kinds::default_account();
    let options = MemberOptions {
        fidelity: Fidelity::People,
        namespace_objects: vec![account],
        ..member_options()
    };
    let member = MemberCluster::new(options);
    let found = |kind: &str, name: &str| stored(member.server(), "v1", kind, "default", name);
    assert_eq!(found("Service", "kubernetes")["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(found("ServiceAccount", "default")["metadata"]["name"], "default");
    let definitions = member
        .server()
        .kind_id("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    assert!(definitions.is_some(), "definitions can be propagated");
}
