//! Nodes and pods of a large member cluster, whose API server answers page by page.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

/// Number of nodes.
pub(crate) const NODES: usize = 400;
/// Number of pods.
pub(crate) const PODS: usize = 20_000;
/// Size of the fields of a real pod that the sums do not read: volumes, probes, environment, owners of fields.
const FILLER_BYTES: usize = 4_000;

fn node(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("node-{number}")},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn pod(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("pod-{number}"), "namespace": "ns", "annotations": {"filler": "x".repeat(FILLER_BYTES)}},
        "spec": {
            "nodeName": format!("node-{}", number % NODES),
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Running"},
    })
}

/// Counts of what API servers served.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) bytes: AtomicUsize,
    pub(crate) pages: AtomicUsize,
    pub(crate) watches: AtomicUsize,
}

/// Returns a page of a list in frames, made as it is read.
fn page(path: &str, query: &str, served: Arc<Served>) -> BoxStream<'static, Bytes> {
    let (item, count): (fn(usize) -> Value, _) = match path {
        "/api/v1/nodes" => (node, NODES),
        _ => (pod, PODS),
    };
    let number = |name: &str| {
        let mut pairs = query.split('&');
        pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<usize>().ok())
    };
    let start = number("continue").unwrap_or(0);
    let end = count.min(start + number("limit").unwrap_or(count));
    let token = if end < count { end.to_string() } else { String::new() };
    served.pages.fetch_add(1, Ordering::Relaxed);
    let head = json!({"resourceVersion": "7", "continue": token});
    let text = move |at: usize| {
        if at == end {
            "]}".to_owned()
        } else if at == start {
            format!(r#"{{"kind":"List","metadata":{head},"items":[{}"#, item(at))
        } else {
            format!(",{}", item(at))
        }
    };
    let texts = stream::iter((start..=end).map(text));
    texts
        .map(move |text| {
            served.bytes.fetch_add(text.len(), Ordering::Relaxed);
            Bytes::from(text)
        })
        .boxed()
}

/// Returns the client of a member that has these nodes and pods, and that never changes.
pub(crate) fn member(served: &Arc<Served>) -> Client {
    let served = Arc::clone(served);
    let service = service_fn(move |request: Request<Body>| {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let body = if query.contains("watch=true") {
            served.watches.fetch_add(1, Ordering::Relaxed);
            stream::pending().boxed()
        } else {
            page(path, query, Arc::clone(&served))
        };
        let frames = body.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(frames))) }
    });
    Client::new(service, "default")
}

/// Returns the resource models of the member: two grades by CPU.
pub(crate) fn models() -> [Value; 2] {
    let grade =
        |grade: u64, least: &str| json!({"grade": grade, "ranges": [{"name": "cpu", "min": least, "max": "999"}]});
    [grade(0, "0"), grade(1, "32")]
}
