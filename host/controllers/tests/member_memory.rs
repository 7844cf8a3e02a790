//! Memory that the sums over a large member cluster take.
//!
//! A test binary of its own with one test in it, because it measures the memory of the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "member_memory/large_member.rs"]
mod large_member;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bulkhead_controllers::collect_member_resources;
use futures::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use peak_alloc::PeakAlloc;
use serde_json::Value;
use tower::service_fn;

use large_member::{PODS, models, objects};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Minimum size of the response; a smaller one would show nothing.
const SERVED_BYTES_MIN: usize = 80 << 20;
/// Limit of the additional memory.
const PEAK_BYTES_MAX: usize = 4 << 20;

/// Returns a list in frames, made as it is read: with `resourceVersion=0` kube-apiserver ignores `limit`.
fn list(item: fn(usize) -> Value, count: usize, served: Arc<AtomicUsize>) -> impl futures::Stream<Item = Frame<Bytes>> {
    stream::iter((0..=count).map(move |number| {
        let text = match number {
            0 => format!(
                r#"{{"kind":"List","metadata":{{"resourceVersion":"7"}},"items":[{}"#,
                item(number)
            ),
            _ if number == count => "]}".to_owned(),
            _ => format!(",{}", item(number)),
        };
        served.fetch_add(text.len(), Ordering::Relaxed);
        Frame::data(Bytes::from(text))
    }))
}

#[tokio::test]
async fn twenty_thousand_pods_of_a_member_are_summed_in_bounded_memory() {
    let (served, queries) = (
        Arc::<AtomicUsize>::default(),
        Arc::<std::sync::Mutex<Vec<String>>>::default(),
    );
    let (counted, asked) = (Arc::clone(&served), Arc::clone(&queries));
    let member = service_fn(move |request: Request<Body>| {
        asked.lock().unwrap().push(request.uri().to_string());
        let (item, count) = objects(request.uri().path());
        let frames = futures::StreamExt::map(list(item, count, Arc::clone(&counted)), Ok::<_, Infallible>);
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(frames))) }
    });
    let client = Client::new(member, "default");

    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let (nodes, resources) = collect_member_resources(&client, &models()).await.unwrap();
    let peak = MEMORY.peak_usage().saturating_sub(before);

    let served = served.load(Ordering::Relaxed);
    println!(
        "{PODS} pods in {} KiB of JSON took {} KiB of memory at most",
        served >> 10,
        peak >> 10
    );
    assert_eq!((nodes.total_num, nodes.ready_num), (400, 400));
    assert_eq!(resources.allocated["pods"], "20k");
    assert_eq!(resources.allocated["memory"], "20000Gi");
    assert_eq!(resources.allocatable_modelings[1]["count"], 400);
    assert!(served > SERVED_BYTES_MIN, "{served}");
    assert!(peak < PEAK_BYTES_MAX, "{peak}");
    // No quorum read: both lists come from the watch cache of the API server.
    let queries = queries.lock().unwrap();
    assert!(
        queries.len() == 2 && queries.iter().all(|query| query.contains("resourceVersion=0")),
        "{queries:?}"
    );
}
