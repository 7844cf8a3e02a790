//! Nodes and pods of a member cluster → counts and sums in the Cluster status.

use bulkhead_core::decide::summary::{NODE_FIELDS, POD_FIELDS, Totals};
use bulkhead_core::model::{NodeSummary, ResourceSummary};
use bulkhead_runtime::list_stream::{self, Fields};
use kube::Client;
use serde_json::Value;

/// Sums up the nodes and pods of a member cluster, also by the grades of `models`. Returns `None` if nodes or pods
/// cannot be listed: the previous sums are better than half of the new ones.
///
/// Each object is dropped after it is added, so that memory does not grow with the number of pods.
pub async fn collect(client: &Client, models: &[Value]) -> Option<(NodeSummary, ResourceSummary)> {
    let mut totals = Totals::new(models);
    let (of_nodes, of_pods) = (Fields::of(NODE_FIELDS), Fields::of(POD_FIELDS));
    list_stream::for_each(client, "/api/v1/nodes", &of_nodes, |node| totals.add_node(node)).await?;
    list_stream::for_each(client, "/api/v1/pods", &of_pods, |pod| totals.add_pod(pod)).await?;
    Some(totals.finish())
}
