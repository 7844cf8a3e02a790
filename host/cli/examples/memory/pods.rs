//! Sums over the nodes and pods of large members, whose API servers answer page by page.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use bulkhead_controllers::collect_member_resources;
use bytes::Bytes;
use futures::Stream;
use futures::future::join_all;
use futures::stream;
use http::{Request, Response, Uri};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use crate::large_member::{NODES, PODS, models, objects};
use crate::peak::{Peak, THIS};

/// Members whose pods are summed at the same time: as many as the controller admits.
const MEMBERS: usize = 8;

/// Bytes and pages that were served.
#[derive(Default)]
struct Served {
    bytes: AtomicUsize,
    pages: AtomicUsize,
}

/// Returns a page of a list, made as it is read.
fn page(uri: &Uri, served: Arc<Served>) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<> {
    let (item, count) = objects(uri.path());
    let number = |name: &str| {
        let mut pairs = uri.query().unwrap_or_default().split('&');
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
    stream::iter((start..=end).map(move |at| {
        let text = text(at);
        served.bytes.fetch_add(text.len(), Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(text)))
    }))
}

/// Returns the client of a member.
fn member(served: &Arc<Served>) -> Client {
    let served = Arc::clone(served);
    let service = service_fn(move |request: Request<Body>| {
        let page = page(request.uri(), Arc::clone(&served));
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(page))) }
    });
    Client::new(service, "default")
}

/// Sums up all members. Returns the description of the measurement, and the peak in KiB.
pub(crate) async fn sum() -> anyhow::Result<(String, u64)> {
    let models = models();
    let served = Arc::<Served>::default();
    let members: Vec<_> = (0..MEMBERS).map(|_| member(&served)).collect();
    let peak = Peak::start(THIS)?;
    let sums = join_all(members.iter().map(|member| collect_member_resources(member, &models))).await;
    let peak_kib = peak.kib()?;
    for sum in sums {
        let (nodes, resources) = sum.context("a member cannot be summed")?;
        if nodes.total_num as usize != NODES || resources.allocated["pods"] != "20k" {
            bail!("the sums are wrong: {nodes:?} {resources:?}");
        }
    }
    let (pages, bytes) = (
        served.pages.load(Ordering::Relaxed),
        served.bytes.load(Ordering::Relaxed),
    );
    let subject = format!(
        "sum {MEMBERS} members with {PODS} pods each, {pages} pages and {} MiB of JSON",
        bytes >> 20
    );
    Ok((subject, peak_kib))
}
