//! Nodes and pods of a member cluster → counts and sums in the Cluster status.

use bulkhead_core::decide::summary::summarize;
use bulkhead_core::model::{NodeSummary, ResourceSummary};
use http::Request;
use kube::Client;
use serde_json::Value;

/// Objects that are asked for at a time.
const LIST_PAGE: u32 = 500;

/// What a member cluster has, summed up; by the grades of `models` too. Absent when nodes or pods cannot be listed: what
/// was known before is better than half of it.
pub(crate) async fn collect(client: &Client, models: &[Value]) -> Option<(NodeSummary, ResourceSummary)> {
    let (nodes, pods) = (list(client, "/api/v1/nodes").await?, list(client, "/api/v1/pods").await?);
    Some(summarize(&nodes, &pods, models))
}

/// Every object of a collection, page by page.
async fn list(client: &Client, path: &str) -> Option<Vec<Value>> {
    let (mut items, mut token) = (Vec::new(), String::new());
    loop {
        let more = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let request = Request::get(format!("{path}?limit={LIST_PAGE}{more}")).body(Vec::new()).ok()?;
        let mut page: Value = client.request(request).await.ok()?;
        if let Some(Value::Array(found)) = page.get_mut("items").map(Value::take) {
            items.extend(found);
        }
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return Some(items),
        }
    }
}
