//! Traces of `bulkhead run --embedded`, as a receiver of OTLP gets them.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::{FAILOVER, Program, folder, has_kubectl, metric, root};
use crate::bulkhead;

/// Receiver of OTLP over HTTP on a loopback address.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    connections: Arc<AtomicUsize>,
    /// Serves until the receiver is dropped.
    _runtime: Runtime,
}

impl Receiver {
    /// Starts a receiver, which answers each request or none.
    fn start(answers: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (received, connections) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicUsize>::default());
        let (keep, count) = (Arc::clone(&received), Arc::clone(&connections));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let keep = Arc::clone(&keep);
                let receive = service_fn(move |request: Request<Incoming>| {
                    let keep = Arc::clone(&keep);
                    async move {
                        assert_eq!(request.uri().path(), "/v1/traces");
                        assert_eq!(request.headers()["content-type"], "application/x-protobuf");
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        keep.lock()
                            .unwrap()
                            .push(ExportTraceServiceRequest::decode(body).unwrap());
                        if !answers {
                            std::future::pending::<()>().await;
                        }
                        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), receive));
            }
        });
        Self {
            address,
            received,
            connections,
            _runtime: runtime,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let scopes = received
            .iter()
            .flat_map(|request| &request.resource_spans)
            .flat_map(|of| &of.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the spans of the trace that begins with the eviction of a binding.
    fn eviction_of(&self, binding: &str) -> Vec<Span> {
        let spans = self.spans();
        let is_first = |span: &&Span| {
            span.name == "eviction" && text(span, "bulkhead.eviction.binding").as_deref() == Some(binding)
        };
        let Some(trace) = spans.iter().find(is_first).map(|span| span.trace_id.clone()) else {
            return Vec::new();
        };
        spans.into_iter().filter(|span| span.trace_id == trace).collect()
    }
}

/// Returns an attribute of a span as text.
fn text(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

fn names(spans: &[Span]) -> BTreeSet<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// Starts a control plane that exports to a receiver, places the example on both members, and loses `member1`.
fn lose_a_member(folder: &Path, receiver: &Receiver, arguments: &[&str]) -> Program {
    let url = receiver.url();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let mut embedded = Program::start_with(folder, &[FAILOVER, arguments].concat(), &variables);
    embedded.apply_example(&["taint-policy.yaml", "policy.yaml", "nginx.yaml"]);
    embedded.until("both copies are healthy", |embedded| {
        binding(embedded, "{.status.aggregatedStatus[*].health}").trim() == "Healthy Healthy"
    });
    embedded.kubectl_output(&[
        "annotate",
        "cluster",
        "member1",
        "simulation.bulkhead.dev/state=unreachable",
    ]);
    embedded.until("all replicas are on member2", |embedded| {
        binding(embedded, "{range .spec.clusters[*]}{.name}={.replicas} {end}").trim() == "member2=3"
    });
    embedded
}

/// Returns a field of the binding of the example.
fn binding(embedded: &Program, path: &str) -> String {
    let path = format!("jsonpath={path}");
    let output = embedded.kubectl(&["get", "resourcebinding", "nginx-deployment", "-o", &path]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that each part of a trace has its parent in it, and that the placement and the removal are written.
#[track_caller]
fn check_parents_and_writes(parts: &[Span]) {
    let ids: BTreeSet<_> = parts.iter().map(|span| &span.span_id).collect();
    let orphans: Vec<_> = parts
        .iter()
        .filter(|span| !span.parent_span_id.is_empty() && !ids.contains(&span.parent_span_id))
        .collect();
    assert!(orphans.is_empty(), "{orphans:#?}");
    let writes: Vec<_> = parts
        .iter()
        .flat_map(|span| &span.events)
        .map(|event| event.name.as_str())
        .collect();
    for write in [
        "written replace Work karmada-es-member2/",
        "written delete Work karmada-es-member1/",
    ] {
        assert!(
            writes.iter().any(|name| name.starts_with(write)),
            "{write}: {writes:#?}"
        );
    }
}

/// Checks the call of the plugin.
#[track_caller]
fn check_call(parts: &[Span]) {
    let asked = parts
        .iter()
        .find(|span| text(span, "bulkhead.call.policy").as_deref() == Some("ask"))
        .unwrap();
    let field = |name: &str| text(asked, &format!("bulkhead.call.{name}")).unwrap_or_default();
    assert_eq!(
        (field("engine"), field("verdict")),
        ("lua".to_owned(), "Abstain".to_owned())
    );
    assert!(field("digest").len() >= 12, "{asked:#?}");
    for resource in ["steps", "memory_bytes"] {
        assert!(field(resource).parse::<u64>().unwrap() > 0, "{resource}: {asked:#?}");
    }
}

/// Checks that the loss has a trace of its own, which the eviction links.
#[track_caller]
fn check_loss(parts: &[Span], all: &[Span]) {
    let taint = parts.iter().find(|span| span.name == "taint").unwrap();
    let tainted = all
        .iter()
        .find(|span| (&span.trace_id, &span.span_id) == (&taint.links[0].trace_id, &taint.links[0].span_id));
    let tainted = tainted.unwrap();
    assert_eq!(tainted.name, "decision Tainted");
    assert_eq!(
        text(tainted, "bulkhead.decision.id"),
        text(taint, "bulkhead.decision.id")
    );
}

#[test]
fn a_receiver_gets_one_trace_of_an_eviction_from_the_lost_cluster_to_the_release() {
    if !has_kubectl("a_receiver_gets_one_trace_of_an_eviction_from_the_lost_cluster_to_the_release") {
        return;
    }
    let (folder, receiver) = (folder("traces"), Receiver::start(true));
    let (plugins, journal) = (folder.join("plugins"), folder.join("journal"));
    std::fs::create_dir_all(&plugins).unwrap();
    let check = "function EvictionCheck(binding, task, observed, now) return { verdict = \"abstain\" } end";
    std::fs::write(plugins.join("ask.lua"), check).unwrap();
    let (plugins, journal) = (plugins.display().to_string(), journal.display().to_string());
    let arguments = ["--plugin-directory", &plugins, "--journal", &journal];
    let mut embedded = lose_a_member(&folder, &receiver, &arguments);
    let parts = || receiver.eviction_of("default/nginx-deployment");
    let expected = [
        "eviction",
        "cluster lost",
        "taint",
        "eviction queue",
        "reconcile taint-manager",
        "decision Evicted",
        "decision Scheduled",
        "reconcile binding-controller",
        "reconcile graceful-eviction-controller",
        "call eviction-check",
        "decision Released",
        "graceful eviction",
        "decision Withdrawn",
    ];
    embedded.until("the trace is complete", |_| {
        let parts = parts();
        expected.iter().all(|name| names(&parts).contains(name))
    });
    let parts = parts();
    let first = parts.iter().find(|span| span.name == "eviction").unwrap();
    assert!(first.parent_span_id.is_empty(), "{first:#?}");
    assert_eq!(text(first, "bulkhead.eviction.cluster").as_deref(), Some("member1"));
    let starts: Vec<_> = [
        "cluster lost",
        "eviction queue",
        "decision Evicted",
        "decision Released",
    ]
    .map(|name| {
        parts
            .iter()
            .find(|span| span.name == name)
            .unwrap()
            .start_time_unix_nano
    })
    .into();
    assert!(starts.is_sorted(), "{starts:?}");
    check_parents_and_writes(&parts);
    check_call(&parts);
    check_loss(&parts, &receiver.spans());
    // The decisions of the trace are those of the journal.
    let evicted = parts.iter().find(|span| span.name == "decision Evicted").unwrap();
    let id = text(evicted, "bulkhead.decision.id").unwrap();
    let explained = bulkhead()
        .args(["explain", &id, "--journal", &journal])
        .output()
        .unwrap();
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains("nginx-deployment"), "{id}: {explained}");
    assert!(metric(&embedded, "bulkhead_trace_spans_total{result=\"exported\"}").unwrap() > 10.0);
    assert_eq!(
        metric(&embedded, "bulkhead_trace_spans_total{result=\"dropped\"}"),
        Some(0.0)
    );
    let resource = {
        let received = receiver.received.lock().unwrap();
        received[0].resource_spans[0].resource.clone().unwrap()
    };
    let keys: BTreeSet<_> = resource
        .attributes
        .iter()
        .map(|attribute| attribute.key.as_str())
        .collect();
    assert!(
        keys.is_superset(&["service.name", "deployment.environment.name"].into()),
        "{keys:?}"
    );
    assert_eq!(embedded.stop(), Some(0));
}

#[test]
fn a_receiver_that_hangs_delays_no_failover_and_is_logged() {
    if !has_kubectl("a_receiver_that_hangs_delays_no_failover_and_is_logged") {
        return;
    }
    let (folder, receiver) = (folder("traces-hang"), Receiver::start(false));
    let mut embedded = lose_a_member(&folder, &receiver, &[]);
    embedded.until("the old copy is released", |embedded| {
        binding(embedded, "{.spec.gracefulEvictionTasks[*].fromCluster}").is_empty()
    });
    embedded.until("lost spans are counted", |embedded| {
        metric(embedded, "bulkhead_trace_spans_total{result=\"failed\"}").is_some_and(|failed| failed > 0.0)
    });
    let log = embedded.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("cannot export traces: "))
        .count();
    assert!((1..4).contains(&lines), "{lines} lines: {log}");
    assert_eq!(embedded.stop(), Some(0));
}

#[test]
fn a_simulation_and_a_disabled_sdk_connect_to_no_receiver() {
    let receiver = Receiver::start(true);
    let scenario = root().join("examples/nginx-duplicated/scenario.yaml");
    let simulated = bulkhead()
        .arg("simulate")
        .arg(scenario)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url())
        .env("OTEL_BSP_SCHEDULE_DELAY", "1")
        .output()
        .unwrap();
    assert!(
        simulated.status.success(),
        "{}",
        String::from_utf8_lossy(&simulated.stderr)
    );
    if has_kubectl("a_simulation_and_a_disabled_sdk_connect_to_no_receiver") {
        let url = receiver.url();
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ];
        let embedded = Program::start_with(&folder("traces-off"), &["--members", "1"], &variables);
        embedded.kubectl_output(&["wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s"]);
        assert!(!embedded.log().contains("traces exported"), "{}", embedded.log());
        assert_eq!(embedded.stop(), Some(0));
    }
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 0);
}
