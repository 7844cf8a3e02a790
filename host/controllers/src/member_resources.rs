//! Nodes and pods of a member cluster → counts and sums in the Cluster status.

use bulkhead_core::decide::summary::{NodeOffer, PodDemand, summarize};
use bulkhead_core::model::{NodeSummary, ResourceSummary};
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What a member cluster has.
pub(crate) struct MemberResources {
    /// Counts of nodes.
    pub(crate) nodes: NodeSummary,
    /// Sums of resources.
    pub(crate) summary: ResourceSummary,
}

/// Only what is summed up is kept of a list, which may be long.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    items: Vec<T>,
}

/// Absent when nodes or pods cannot be listed: what was known before is better than half of it.
pub(crate) async fn collect(client: &Client) -> Option<MemberResources> {
    let nodes: Vec<NodeOffer> = list(client, "/api/v1/nodes").await?;
    let pods: Vec<PodDemand> = list(client, "/api/v1/pods").await?;
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let ready_num = count(nodes.iter().filter(|node| node.is_ready()).count());
    let summary = summarize(&nodes, &pods);
    Some(MemberResources { nodes: NodeSummary { total_num: count(nodes.len()), ready_num }, summary })
}

/// From the API server's cache: a sum that is a second old is good enough, a quorum read of every pod is dear.
async fn list<T: DeserializeOwned>(client: &Client, path: &str) -> Option<Vec<T>> {
    let request = Request::get(format!("{path}?resourceVersion=0")).body(Vec::new()).ok()?;
    client.request::<List<T>>(request).await.ok().map(|list| list.items)
}
