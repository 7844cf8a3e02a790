use std::time::Duration;

use bulkhead_apiserver::{ApiServer, Fault, Link, LinkState};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::testing::{member, object};

fn node(name: &str) -> Node {
    object(json!({
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
}

fn pod(name: &str, node: &str, cpu: &str) -> Pod {
    object(json!({
        "metadata": {"name": name},
        "spec": {
            "nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
    }))
}

/// Member with one node, the API of its pods, and what is known about it.
struct Member {
    server: ApiServer,
    nodes: Api<Node>,
    pods: Api<Pod>,
    resources: MemberResources,
}

impl Member {
    async fn new() -> Self {
        let server = member();
        let client = server.client();
        let nodes: Api<Node> = Api::all(client.clone());
        nodes.create(&PostParams::default(), &node("a")).await.unwrap();
        Self {
            pods: Api::default_namespaced(client),
            nodes,
            server,
            resources: MemberResources::default(),
        }
    }

    async fn create(&self, pod: &Pod) {
        self.pods.create(&PostParams::default(), pod).await.unwrap();
        delivered().await;
    }

    /// Returns the numbers of nodes and pods, and the CPU that pods requested, through a client.
    async fn seen_by(&self, client: &Client) -> Option<(i32, String, String)> {
        let (nodes, resources) = self.resources.sums("m1", client, &[]).await?;
        let allocated = |name: &str| resources.allocated.get(name).cloned().unwrap_or_default();
        Some((nodes.total_num, allocated("pods"), allocated("cpu")))
    }

    async fn seen(&self) -> Option<(i32, String, String)> {
        self.seen_by(&self.server.client()).await
    }

    /// Returns the number of lists so far.
    fn lists(&self) -> u64 {
        let requests = self.server.requests();
        requests
            .iter()
            .filter(|(name, _)| name.contains("list"))
            .map(|(_, count)| count)
            .sum()
    }
}

/// Lets the informers deliver changes.
async fn delivered() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn sums(nodes: i32, pods: &str, cpu: &str) -> (i32, String, String) {
    (nodes, pods.to_owned(), cpu.to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_sums_follow_nodes_and_pods_without_another_list() {
    let member = Member::new().await;
    member.create(&pod("1", "a", "500m")).await;
    assert_eq!(member.seen().await, Some(sums(1, "1", "500m")));
    let lists = member.lists();
    assert!(lists >= 2, "{lists}");
    member.create(&pod("2", "a", "250m")).await;
    member.create(&pod("pending", "", "1")).await;
    assert_eq!(member.seen().await, Some(sums(1, "2", "750m")));
    let finished = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    member
        .pods
        .patch_status("1", &PatchParams::default(), &finished)
        .await
        .unwrap();
    delivered().await;
    assert_eq!(member.seen().await, Some(sums(1, "1", "250m")));
    member.pods.delete("2", &DeleteParams::default()).await.unwrap();
    member.nodes.create(&PostParams::default(), &node("b")).await.unwrap();
    delivered().await;
    assert_eq!(member.seen().await, Some(sums(2, "", "")));
    assert_eq!(member.lists(), lists);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_returns_is_listed_at_once_and_has_the_previous_sums_meanwhile() {
    let member = Member::new().await;
    let link = Link::new();
    let client = member.server.client_through(link.clone());
    member.create(&pod("1", "a", "1")).await;
    assert_eq!(member.seen_by(&client).await, Some(sums(1, "1", "1")));
    link.set(LinkState::Down);
    delivered().await;
    member.create(&pod("2", "a", "1")).await;
    assert_eq!(member.seen_by(&client).await, None);
    tokio::time::sleep(Duration::from_mins(10)).await;
    link.set(LinkState::Up);
    assert_eq!(member.seen_by(&client).await, Some(sums(1, "2", "2")));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_has_no_sums_until_it_can() {
    let member = Member::new().await;
    let pods = |request: &bulkhead_apiserver::ResourceRequest| request.plural == "pods";
    member
        .server
        .inject_for(Duration::from_secs(5), Fault::Respond(403), pods);
    assert_eq!(member.seen().await, None);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(member.seen().await, Some(sums(1, "", "")));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_can_be_listed_and_not_watched_is_listed_for_each_sum() {
    let member = Member::new().await;
    let watches = |request: &bulkhead_apiserver::ResourceRequest| request.verb == bulkhead_apiserver::Verb::Watch;
    let lasts = Duration::from_hours(1);
    member.server.inject_for(lasts, Fault::Respond(403), watches);
    assert_eq!(member.seen().await, Some(sums(1, "", "")));
    for (name, expected) in [("1", sums(1, "1", "1")), ("2", sums(1, "2", "2"))] {
        member.create(&pod(name, "a", "1")).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(member.seen().await, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_member_is_no_longer_watched() {
    let member = Member::new().await;
    assert_eq!(member.seen().await, Some(sums(1, "", "")));
    member.resources.forget("m1");
    delivered().await;
    let lists = member.lists();
    assert_eq!(member.seen().await, Some(sums(1, "", "")));
    assert_eq!(member.lists(), lists + 2);
}

#[tokio::test(start_paused = true)]
async fn sums_of_a_member_that_is_forgotten_meanwhile_are_not_waited_for() {
    let member = Member::new().await;
    let link = Link::new();
    link.set(LinkState::Slow(Duration::from_hours(1)));
    let client = member.server.client_through(link);
    let forgotten = async {
        delivered().await;
        member.resources.forget("m1");
    };
    let (seen, ()) = tokio::join!(member.seen_by(&client), forgotten);
    assert_eq!(seen, None);
    assert_eq!(member.seen().await, Some(sums(1, "", "")), "the new client is used");
}

#[test]
fn equal_requests_of_pods_are_in_memory_once() {
    let mut pods = Pods::default();
    let read = |name: &str, cpu: &str| -> Excerpt<pods::PodExcerpt> {
        let mut pod = serde_json::to_value(pod(name, "a", cpu)).unwrap();
        pod["metadata"]["namespace"] = "ns".into();
        object(pod)
    };
    for (name, cpu) in [("1", "1"), ("2", "1"), ("3", "2"), ("3", "2")] {
        pods.insert(read(name, cpu));
    }
    assert_eq!(pods.shared(), (1, 2));
    pods.insert(read("3", "1"));
    assert_eq!(pods.shared(), (1, 1));
    for name in ["1", "2", "3", "unknown"] {
        pods.remove(&read(name, "1"));
    }
    assert_eq!(pods.shared(), (0, 0));
}
