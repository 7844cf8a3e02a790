use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use bulkhead_controllers::eviction_trace::{TARGET, steps};
use clap::Parser;
use opentelemetry::trace::Status;
use opentelemetry::{Key, Value};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{Sampler, SpanData, SpanExporter};
use tracing::dispatcher::with_default;
use tracing::{Dispatch, debug, debug_span, error_span, info, trace};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

use self::captured::Captured;
use super::export::CountingSender;
use super::*;
use crate::logs::LogArguments;
use crate::logs::tests::captured;

/// Time limit for the export of the last spans, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Receiver in memory.
#[derive(Clone, Debug, Default)]
struct Received(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Received {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

fn settings() -> Settings {
    let variables = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned());
    Settings::read(&variables, &mut Vec::new()).unwrap()
}

/// Starts an exporter with any sender.
fn traces(sender: impl SpanExporter + 'static, settings: &Settings) -> Traces {
    let counts = Arc::<SpanCounts>::default();
    let sender = CountingSender {
        sender,
        counts: Arc::clone(&counts),
        last_error: Arc::default(),
    };
    let exporter = Arc::new(Exporter::of(sender, settings, counts));
    let assembler = Arc::new(Assembler::new(settings.sampler.clone(), Arc::clone(&exporter)));
    Traces { assembler, exporter }
}

/// Runs a process with an exporter to `received`, and waits until its spans are sent.
fn process(received: &Received, run: impl FnOnce()) {
    let traces = traces(received.clone(), &settings());
    with_default(&Dispatch::new(registry().with(traces.layer())), run);
    traces.exporter.end(PATIENCE);
}

/// Runs a reconcile.
fn reconcile(controller: &str, kind: &str, object: &str, run: impl FnOnce()) {
    error_span!(target: "bulkhead::reconcile", "reconcile", controller, kind, object).in_scope(run);
}

/// Applies a decision.
fn decide(id: &str, kind: &str, cluster: &str, run: impl FnOnce()) {
    let span = error_span!(target: "bulkhead::decision", "decision", id, kind);
    span.in_scope(|| {
        info!(target: "bulkhead::decision", cluster, reason = "Because", "{kind} ResourceBinding default/web: text");
        run();
    });
}

fn write(verb: &str, kind: &str, namespace: &str, name: &str) {
    debug!(target: "bulkhead::write", verb, kind, namespace, name, "written");
}

/// Marks a step of the eviction of `default/web` from `m1`.
fn mark(step: &str) {
    trace!(target: TARGET, step, kind = "ResourceBinding", object = "default/web", uid = "7d1f", cluster = "m1",
           created_ms = 5_000_i64, reason = "TaintUntolerated", producer = "TaintManager");
}

/// Emits what the taint manager emits for the eviction of `default/web` from `m1`.
fn evict() {
    reconcile("taint-manager", "ResourceBinding", "default/web", || {
        trace!(target: TARGET, step = steps::LEFT_QUEUE, cluster = "m1", waited_ms = 700, lost_ms = 1_000,
               taint = "k:NoExecute", tainted_ms = 2_000, decision = "a-1");
        decide("a-2", "Evicted", "m1", || {
            write("patch", "ResourceBinding", "default", "web");
        });
        mark(steps::BEGAN);
    });
}

impl Received {
    fn spans(&self) -> Vec<SpanData> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the only span with this name.
    #[track_caller]
    fn one(&self, name: &str) -> SpanData {
        let mut found: Vec<_> = self.spans().into_iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name}: {:#?}", self.names());
        found.remove(0)
    }

    fn names(&self) -> BTreeSet<String> {
        self.spans().iter().map(|span| span.name.to_string()).collect()
    }
}

/// Returns an attribute of a span as text.
fn attribute(span: &SpanData, name: &'static str) -> Option<String> {
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key == Key::from_static_str(name));
    found.map(|attribute| attribute.value.as_str().into_owned())
}

#[test]
fn the_parts_of_an_eviction_are_one_trace_from_the_loss_to_the_release_and_across_a_restart() {
    let received = Received::default();
    process(&received, || {
        reconcile("cluster-taint-controller", "Cluster", "m1", || {
            decide("a-1", "Tainted", "m1", || ());
        });
        evict();
        reconcile("scheduler", "ResourceBinding", "default/web", || {
            decide("a-3", "Scheduled", "m2", || ());
        });
        reconcile("binding-controller", "ResourceBinding", "default/web", || {
            decide("a-4", "Dispatched", "m2", || {
                write("create", "Work", "karmada-es-m2", "web");
            });
        });
        reconcile("execution-controller", "Work", "karmada-es-m2/web", || {
            write("update status", "Work", "karmada-es-m2", "web");
        });
    });
    process(&received, || {
        reconcile("graceful-eviction-controller", "ResourceBinding", "default/web", || {
            mark(steps::UNDER_WAY);
            decide("b-1", "Released", "m1", || {
                write("patch", "ResourceBinding", "default", "web");
            });
            mark(steps::RELEASED);
        });
        reconcile("binding-controller", "ResourceBinding", "default/web", || {
            decide("b-2", "Withdrawn", "m1", || {
                write("delete", "Work", "karmada-es-m1", "web");
            });
        });
    });
    let root = received.one("eviction");
    let trace = root.span_context.trace_id();
    let parts: BTreeSet<_> = received
        .spans()
        .iter()
        .filter(|span| span.span_context.trace_id() == trace)
        .map(|span| span.name.to_string())
        .collect();
    let expected = [
        "cluster lost",
        "decision Dispatched",
        "decision Evicted",
        "decision Released",
        "decision Scheduled",
        "decision Withdrawn",
        "eviction",
        "eviction queue",
        "graceful eviction",
        "reconcile binding-controller",
        "reconcile execution-controller",
        "reconcile graceful-eviction-controller",
        "reconcile scheduler",
        "reconcile taint-manager",
        "taint",
    ];
    assert_eq!(parts, expected.map(str::to_owned).into());
    // All times before the write come from objects.
    let millis = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert_eq!(millis(root.start_time), 1_000);
    let taint = received.one("taint");
    assert_eq!((millis(taint.start_time), millis(taint.end_time)), (1_000, 2_000));
    assert_eq!(attribute(&taint, "bulkhead.decision.id").as_deref(), Some("a-1"));
    assert_eq!(
        taint.links.links[0].span_context,
        received.one("decision Tainted").span_context
    );
    assert_eq!(
        attribute(&received.one("graceful eviction"), "bulkhead.eviction.outcome").as_deref(),
        Some("released")
    );
    let taint_manager = received.one("reconcile taint-manager");
    assert_eq!(taint_manager.parent_span_id, root.span_context.span_id());
    let evicted = received.one("decision Evicted");
    assert_eq!(evicted.parent_span_id, taint_manager.span_context.span_id());
    assert_eq!(attribute(&evicted, "bulkhead.decision.id").as_deref(), Some("a-2"));
    assert_eq!(attribute(&evicted, "bulkhead.decision.cluster").as_deref(), Some("m1"));
    let dispatched = received.one("decision Dispatched");
    let events: Vec<_> = dispatched.events.iter().map(|event| event.name.to_string()).collect();
    assert!(
        events.contains(&"written create Work karmada-es-m2/web".to_owned()),
        "{events:?}"
    );
}

#[test]
fn a_call_has_the_policy_the_resources_and_the_verdict_and_a_fault_is_an_error() {
    let received = Received::default();
    let call = |policy: &str, fault: Option<&str>| {
        let span = debug_span!(target: "bulkhead::plugin", "call", kind = "eviction-check", policy, engine = "lua",
            digest = "c0de", steps = 250_u64, memory_bytes = 4096_u64, verdict = tracing::field::Empty, fault);
        span.record("verdict", "Hold");
        span.in_scope(|| ());
    };
    process(&received, || {
        reconcile("graceful-eviction-controller", "ResourceBinding", "default/web", || {
            call("good", None);
            call("bad", Some("PluginTrapped"));
            decide("a-1", "Held", "m1", || ());
        });
    });
    let calls: Vec<_> = received
        .spans()
        .into_iter()
        .filter(|span| span.name == "call eviction-check")
        .collect();
    let expected = [
        ("bulkhead.call.engine", "lua"),
        ("bulkhead.call.digest", "c0de"),
        ("bulkhead.call.steps", "250"),
        ("bulkhead.call.memory_bytes", "4096"),
        ("bulkhead.call.verdict", "Hold"),
    ];
    for (name, value) in expected {
        assert_eq!(attribute(&calls[0], name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(
        calls[0]
            .attributes
            .iter()
            .find(|one| one.key.as_str() == "bulkhead.call.steps")
            .map(|one| &one.value),
        Some(&Value::I64(250))
    );
    assert_eq!(
        (&calls[0].status, &calls[1].status),
        (&Status::Unset, &Status::error("PluginTrapped"))
    );
    let parent = received
        .one("reconcile graceful-eviction-controller")
        .span_context
        .span_id();
    assert!(calls.iter().all(|call| call.parent_span_id == parent));
}

#[test]
fn a_reconcile_that_decides_nothing_is_not_exported() {
    let received = Received::default();
    process(&received, || {
        reconcile("binding-status-controller", "ResourceBinding", "default/web", || {
            write("update status", "ResourceBinding", "default", "web");
        });
        evict();
        reconcile("scheduler", "ResourceBinding", "default/web", || ());
    });
    let names = received.names();
    assert!(names.contains("eviction"), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.contains("status-controller") || name.contains("scheduler")),
        "{names:?}"
    );
}

#[test]
fn a_trace_that_is_not_sampled_is_not_exported() {
    let (received, mut settings) = (Received::default(), settings());
    settings.sampler = Sampler::AlwaysOff;
    let traces = traces(received.clone(), &settings);
    with_default(&Dispatch::new(registry().with(traces.layer())), evict);
    traces.exporter.end(PATIENCE);
    assert_eq!(received.names(), BTreeSet::new());
}

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    log: LogArguments,
}

#[test]
fn traces_add_no_line_to_the_log_and_its_filter_removes_no_span() {
    for (filter, expected) in [("warn", 0), ("warn,bulkhead=info", 1)] {
        let (received, captured) = (Received::default(), Captured::default());
        let program = Program::try_parse_from(["program", "--log-filter", filter]).unwrap_or_else(|error| error.exit());
        let traces = traces(received.clone(), &settings());
        let dispatch = program.log.dispatch_to(captured.clone(), false, Some(&traces));
        with_default(&dispatch, evict);
        traces.exporter.end(PATIENCE);
        assert_eq!(captured.lines().len(), expected, "{filter}: {:#?}", captured.lines());
        assert!(
            received.names().contains("decision Evicted"),
            "{filter}: {:?}",
            received.names()
        );
    }
}

/// Receiver that answers nothing until it is released.
#[derive(Debug)]
struct Hanging(Mutex<Receiver<()>>);

impl SpanExporter for Hanging {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        let _ = self.0.lock().unwrap().recv();
        Err(OTelSdkError::InternalFailure("no answer".to_owned()))
    }
}

#[test]
fn a_receiver_that_hangs_delays_no_decision_and_lost_spans_are_counted() {
    let mut settings = settings();
    (settings.queue_max, settings.batch_max) = (100, 10);
    let (release, released) = channel::<()>();
    let traces = traces(Hanging(Mutex::new(released)), &settings);
    let decisions = 1_000;
    // The export hangs until the end of the test, so this returns only if nothing waits for it.
    with_default(&Dispatch::new(registry().with(traces.layer())), || {
        for number in 0..decisions {
            decide(&format!("a-{number}"), "Scheduled", "m1", || ());
        }
    });
    let count = |result: &str| {
        let counts = traces.counts().results();
        counts.into_iter().find(|(name, _)| *name == result).unwrap().1
    };
    let dropped = count("dropped");
    assert!(dropped >= decisions - 110, "{dropped} of {decisions} dropped");
    assert_eq!((count("exported"), count("failed")), (0, 0));
    drop(release);
    traces.exporter.end(PATIENCE);
    assert_eq!(count("failed") + count("dropped"), decisions);
}
