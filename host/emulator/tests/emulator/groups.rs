//! Workloads with many replicas, most of which share the objects of a few groups.

use std::collections::BTreeMap;
use std::time::Duration;

use bulkhead_apiserver::Fidelity;
use bulkhead_core::decide::summary::{NodeResources, PodRequests, Totals};
use bulkhead_emulator::{Capacity, FailureMode, MemberCluster, MemberOptions, pods_in};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::*;

const TWO_BILLIONS: u32 = 2_000_000_000;

/// Returns the options of a cluster of three nodes with capacity for so many pods, which become ready after 2 s.
fn options(pods: u64) -> MemberOptions {
    let mut options = MemberOptions {
        capacity: Capacity {
            cpu: "1000000".to_owned(),
            memory: "1000Ti".to_owned(),
            pods,
        },
        ..member_options()
    };
    options.replica_ready.jitter = Duration::ZERO;
    options
}

async fn wait_ms(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

async fn patch_deployment(member: &MemberCluster, patch: Value) {
    let api: Api<Deployment> = Api::default_namespaced(member.server().client());
    let patch = Patch::Merge(patch);
    api.patch("web", &PatchParams::default(), &patch).await.unwrap();
}

async fn deploy(member: &MemberCluster, deployment: &Deployment) {
    let api: Api<Deployment> = Api::default_namespaced(member.server().client());
    api.create(&PostParams::default(), deployment).await.unwrap();
}

fn objects(member: &MemberCluster, kind: &str) -> Vec<Value> {
    let id = member.server().kind_id("v1", kind).unwrap();
    let objects = member.server().store().list(id, None);
    objects.iter().map(|object| object.content().to_value()).collect()
}

/// Returns the status of a workload in the namespace `default`.
fn status(member: &MemberCluster, kind: &str, name: &str) -> Value {
    let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    stored(member.server(), api_version, kind, "default", name)["status"].clone()
}

/// Returns the sums over nodes and pods, as the status of a Cluster shows them.
fn resources(member: &MemberCluster) -> Value {
    let mut totals = Totals::new(&[]);
    for node in &objects(member, "Node") {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        totals.add_node(name, &NodeResources::of(node));
    }
    for (node, requests) in objects(member, "Pod").iter().filter_map(PodRequests::of) {
        totals.add_pod(node, &requests);
    }
    let (_, summary) = totals.finish();
    json!(summary)
}

/// Returns the number of pods on each node, including pods without one.
fn pods_by_node(member: &MemberCluster) -> BTreeMap<String, u64> {
    let mut pods = BTreeMap::new();
    for pod in objects(member, "Pod") {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        *pods.entry(node).or_default() += pods_in(&pod);
    }
    pods
}

/// Runs the same changes in a cluster with an object for each pod and in one with groups, and compares all that is seen
/// of them at every 500 ms.
struct Twins {
    single: MemberCluster,
    grouped: MemberCluster,
}

impl Twins {
    fn new(pods: u64) -> Self {
        let with = |pod_objects_max| {
            running(MemberOptions {
                pod_objects_max,
                ..options(pods)
            })
        };
        Self {
            single: with(u64::MAX),
            grouped: with(3),
        }
    }

    async fn each(&self, change: impl AsyncFn(&MemberCluster)) {
        change(&self.single).await;
        change(&self.grouped).await;
    }

    /// Compares the status of a workload and the sums of the clusters for a time.
    async fn stay_alike(&self, kind: &str, name: &str, seconds: u64) {
        for half in 0..2 * seconds {
            wait_ms(500).await;
            let all = |member| (status(member, kind, name), resources(member));
            assert_eq!(
                all(&self.grouped),
                all(&self.single),
                "{kind} {name} after {half} half seconds"
            );
        }
    }

    fn have_nodes_alike(&self) {
        assert_eq!(pods_by_node(&self.grouped), pods_by_node(&self.single));
    }
}

fn containers(image: &str) -> Value {
    json!([
        {"name": "main", "image": image, "resources": {"requests": {"cpu": "1", "memory": "1.5Gi"}}},
        {"name": "proxy", "image": "proxy:1", "resources": {"limits": {"cpu": "250m", "example.com/gpu": "1"}}},
    ])
}

fn web(replicas: u32) -> Deployment {
    let mut web = json!(deployment("web", replicas, "1"));
    web["spec"]["template"]["spec"]["containers"] = containers("app:1");
    web["spec"]["template"]["spec"]["initContainers"] =
        json!([{"name": "first", "image": "first:1", "resources": {"requests": {"cpu": "3"}}}]);
    web["spec"]["template"]["spec"]["overhead"] = json!({"memory": "120Mi"});
    web["spec"]["minReadySeconds"] = json!(1);
    from(web)
}

#[tokio::test(start_paused = true)]
async fn groups_of_a_deployment_show_what_an_object_for_each_pod_shows() {
    let twins = Twins::new(60);
    twins.each(async |member| deploy(member, &web(20)).await).await;
    twins.stay_alike("Deployment", "web", 5).await;
    for change in [
        json!({"replicas": 34}),
        // A rollout with the default surge, then one while the cluster is nearly full, changed half-way.
        json!({"template": {"spec": {"containers": containers("app:2")}}}),
        json!({"replicas": 55}),
        json!({"template": {"spec": {"containers": containers("app:3")}}}),
        json!({"replicas": 41}),
        json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 7}},
            "template": {"spec": {"containers": containers("app:4")}}}),
        json!({"replicas": 2}),
        json!({"strategy": {"type": "Recreate", "rollingUpdate": null}, "replicas": 30}),
        json!({"template": {"spec": {"containers": containers("app:5")}}}),
        json!({"replicas": 90}),
        json!({"replicas": 0}),
    ] {
        twins
            .each(async |member| patch_deployment(member, json!({"spec": change})).await)
            .await;
        twins.stay_alike("Deployment", "web", 9).await;
    }
}

#[tokio::test(start_paused = true)]
async fn groups_fail_and_recover_as_single_pods_do() {
    let twins = Twins::new(60);
    twins.each(async |member| deploy(member, &web(20)).await).await;
    twins.stay_alike("Deployment", "web", 5).await;
    let ready_for = Duration::from_secs(4);
    for failure in [
        Some(FailureMode::CrashLoop { ready_for }),
        None,
        Some(FailureMode::NeverReady),
        Some(FailureMode::ImagePull),
        None,
    ] {
        twins
            .each(async |member| member.set_workload_failure("default", "web", failure))
            .await;
        twins.stay_alike("Deployment", "web", 3).await;
        let replicas = if failure.is_some() { 40 } else { 25 };
        twins
            .each(async |member| patch_deployment(member, json!({"spec": {"replicas": replicas}})).await)
            .await;
        twins.stay_alike("Deployment", "web", 6).await;
    }
}

#[tokio::test(start_paused = true)]
async fn workloads_share_a_full_cluster_alike_with_and_without_groups() {
    let twins = Twins::new(30);
    twins
        .each(async |member| deploy(member, &deployment("other", 12, "1")).await)
        .await;
    wait_ms(10).await;
    twins.each(async |member| deploy(member, &web(40)).await).await;
    twins.stay_alike("Deployment", "web", 5).await;
    assert_eq!(status(&twins.grouped, "Deployment", "web")["readyReplicas"], 18);
    twins.have_nodes_alike();
    twins
        .each(async |member| {
            let api: Api<Deployment> = Api::default_namespaced(member.server().client());
            api.delete("other", &DeleteParams::default()).await.unwrap();
        })
        .await;
    twins.stay_alike("Deployment", "web", 5).await;
    assert_eq!(status(&twins.grouped, "Deployment", "web")["readyReplicas"], 30);
    twins.have_nodes_alike();
}

async fn stateful_set(member: &MemberCluster, management: &str) {
    let api: Api<StatefulSet> = Api::default_namespaced(member.server().client());
    let spec = json!({
        "replicas": 12, "serviceName": "db", "podManagementPolicy": management,
        "selector": {"matchLabels": {"app": "db"}}, "template": pod_template("db", "1", "Always"),
    });
    let set = from(json!({"metadata": {"name": "db"}, "spec": spec}));
    api.create(&PostParams::default(), &set).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn groups_of_a_stateful_set_show_what_an_object_for_each_pod_shows() {
    for management in ["OrderedReady", "Parallel"] {
        let twins = Twins::new(60);
        twins.each(async |member| stateful_set(member, management).await).await;
        twins.stay_alike("StatefulSet", "db", 30).await;
        let image = |image: &str| json!({"spec": {"containers": [{"name": "main", "image": image}]}});
        for change in [
            json!({"replicas": 16}),
            json!({"template": image("app:2")}),
            json!({"replicas": 14}),
            json!({"updateStrategy": {"rollingUpdate": {"partition": 9}}, "template": image("app:3")}),
            json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}}),
            json!({"replicas": 5}),
            json!({"replicas": 0}),
        ] {
            let patch = Patch::Merge(json!({"spec": change}));
            twins
                .each(async |member| {
                    let api: Api<StatefulSet> = Api::default_namespaced(member.server().client());
                    api.patch("db", &PatchParams::default(), &patch).await.unwrap();
                })
                .await;
            twins.stay_alike("StatefulSet", "db", 40).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn groups_of_a_job_show_what_an_object_for_each_pod_shows() {
    let twins = Twins::new(60);
    twins
        .each(async |member| {
            let api: Api<Job> = Api::default_namespaced(member.server().client());
            let spec = json!({"completions": 50, "parallelism": 12, "template": pod_template("sum", "1", "Never")});
            let job = from(json!({"metadata": {"name": "sum"}, "spec": spec}));
            api.create(&PostParams::default(), &job).await.unwrap();
        })
        .await;
    twins.stay_alike("Job", "sum", 70).await;
    assert_eq!(status(&twins.grouped, "Job", "sum")["succeeded"], 50);
}

/// Returns the number of changes in a cluster that starts and replaces a workload, and of pod objects at the end.
async fn cost_of(replicas: u32) -> (u64, usize) {
    let member = running(options(100_000));
    let mut deployment = json!(web(replicas));
    deployment["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": "10%"}});
    deploy(&member, &from(deployment)).await;
    wait_ms(10_000).await;
    let image = json!({"spec": {"template": {"spec": {"containers": containers("app:2")}}}});
    patch_deployment(&member, image).await;
    wait_ms(60_000).await;
    assert_eq!(status(&member, "Deployment", "web")["updatedReplicas"], replicas);
    assert_eq!(status(&member, "Deployment", "web")["readyReplicas"], replicas);
    (
        member.server().store().resource_version(),
        objects(&member, "Pod").len(),
    )
}

#[tokio::test(start_paused = true)]
async fn work_and_objects_do_not_grow_with_the_replicas() {
    let (changes, pods) = cost_of(1_000).await;
    let (more_changes, more_pods) = cost_of(90_000).await;
    assert_eq!(
        (pods, more_pods),
        (103, 103),
        "a hundred single pods and a group on each node"
    );
    assert!(
        10 * more_changes <= 11 * changes,
        "{more_changes} changes for 90,000 replicas, {changes} for 1,000"
    );
}

#[tokio::test(start_paused = true)]
async fn billions_of_replicas_are_counted_exactly() {
    let member = running(options(330));
    deploy(&member, &web(TWO_BILLIONS)).await;
    wait_ms(5_000).await;
    let status = status(&member, "Deployment", "web");
    assert_eq!(
        [
            &status["replicas"],
            &status["readyReplicas"],
            &status["unavailableReplicas"]
        ],
        [&json!(TWO_BILLIONS), &json!(330), &json!(TWO_BILLIONS - 330)]
    );
    let resources = resources(&member);
    assert_eq!(resources["allocated"]["pods"], "330");
    assert_eq!(resources["allocating"]["pods"], "1999999670");
    // The init container raises the sum of the first pod from 1.25 to 3 CPUs.
    assert_eq!(resources["allocated"]["cpu"], "414250m");
    assert_eq!(resources["allocating"]["example.com/gpu"], "1999999670");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_many_replicas_stays_available_and_leaves_few_objects() {
    let mut options = options(200_000);
    options.replica_ready.jitter = Duration::from_secs(1);
    options.fidelity = Fidelity::People;
    let member = running(options);
    deploy(&member, &web(100_000)).await;
    wait_ms(10_000).await;
    assert_eq!(status(&member, "Deployment", "web")["availableReplicas"], 100_000);
    let image = json!({"spec": {"template": {"spec": {"containers": containers("app:2")}}}});
    patch_deployment(&member, image).await;
    for _ in 0..80 {
        wait_ms(1_000).await;
        let status = status(&member, "Deployment", "web");
        assert!(status["availableReplicas"].as_u64().unwrap() >= 75_000, "{status}");
        assert!(status["replicas"].as_u64().unwrap() <= 125_000, "{status}");
    }
    let status = status(&member, "Deployment", "web");
    assert_eq!(
        [
            &status["replicas"],
            &status["updatedReplicas"],
            &status["availableReplicas"]
        ],
        [&json!(100_000); 3]
    );
    assert!(objects(&member, "Pod").len() <= 103);
    let kind = member.server().kind_id("apps/v1", "ReplicaSet").unwrap();
    let sets = member.server().store().list(kind, None);
    let replicas: Vec<_> = sets
        .iter()
        .map(|set| set.content()["status"]["replicas"].clone())
        .collect();
    assert!(replicas.contains(&json!(100_000)), "{replicas:?}");
}

#[tokio::test(start_paused = true)]
async fn a_template_with_the_annotation_of_a_group_makes_single_pods() {
    let member = running(options(60));
    let mut web = json!(web(4));
    web["spec"]["template"]["metadata"]["annotations"] = json!({"simulation.bulkhead.dev/pods": "7", "kept": "yes"});
    deploy(&member, &from(web)).await;
    wait_ms(5_000).await;
    assert_eq!(status(&member, "Deployment", "web")["replicas"], 4);
    for pod in objects(&member, "Pod") {
        assert_eq!(pod["metadata"]["annotations"], json!({"kept": "yes"}));
    }
}
