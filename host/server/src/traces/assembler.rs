//! Spans of OpenTelemetry from the recorded spans of a reconcile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bulkhead_controllers::eviction_trace;
use opentelemetry::trace::{Event, Link, SpanContext, SpanId, SpanKind, Status, TraceId};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{
    IdGenerator as _, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample as _, SpanData, SpanEvents, SpanLinks,
};
use tokio::time::Instant;

use super::evictions::{Begun, Ended, Eviction, Evictions, Subject, time};
use super::export::Exporter;
use super::ids;
use super::recorded::{Line, Recorded};
use super::tree::Tree;

/// Maker of spans. It knows the evictions under way.
pub(super) struct Assembler {
    evictions: Mutex<Evictions>,
    sampler: Sampler,
    scope: InstrumentationScope,
    exporter: Arc<Exporter>,
}

impl Assembler {
    /// Creates an assembler that passes spans to an exporter.
    pub(super) fn new(sampler: Sampler, exporter: Arc<Exporter>) -> Self {
        let scope = InstrumentationScope::builder("bulkhead").with_version(env!("CARGO_PKG_VERSION"));
        Self {
            evictions: Mutex::default(),
            sampler,
            scope: scope.build(),
            exporter,
        }
    }

    /// Learns from an event in a reconcile.
    pub(super) fn learn(&self, subject: &mut Subject, line: &Line) {
        if line.target == eviction_trace::TARGET || line.target == "bulkhead::write" {
            self.evictions().learn(subject, line, Instant::now());
        }
    }

    /// Exports the spans of a reconcile that made a decision, and those of one that wrote or failed during an
    /// eviction. Others, such as a check that changed nothing, are left out.
    pub(super) fn finish(&self, tree: &Tree) {
        let Some(root) = tree.root() else { return };
        let evictions = self.evictions().of(&tree.subject, Instant::now());
        let decides = tree.decisions().next().is_some();
        let acts = || {
            let mut lines = tree.spans.iter().flat_map(|span| &span.lines);
            lines.any(|line| line.is_problem || line.fields.message() == "written")
        };
        let is_part = !evictions.is_empty();
        let is_exported = decides || (is_part && acts());
        if !is_exported {
            return;
        }
        self.exporter
            .count_dropped(tree.opened.saturating_sub(tree.spans.len()));
        self.export_steps(&tree.subject);
        let around = evictions.first().map(|eviction| eviction.id.context());
        let trace = around.as_ref().map_or_else(|| trace_of(tree), SpanContext::trace_id);
        if !self.samples(trace) {
            return;
        }
        let numbers = span_ids(tree);
        let id_of = |number: usize| numbers.get(&number).copied().unwrap_or(SpanId::INVALID);
        for span in &tree.spans {
            let parent = match span.parent {
                Some(parent) => id_of(parent),
                None => around.as_ref().map_or(SpanId::INVALID, SpanContext::span_id),
            };
            let mut data = self.span(ids::context(trace, id_of(span.number)), parent, name_of(span));
            (data.start_time, data.end_time) = (span.start, span.end);
            (data.attributes, data.status) = (attributes_of(span), status_of(span));
            let lines = span.lines.iter().filter(|line| line.target != eviction_trace::TARGET);
            data.events = SpanEvents::default();
            data.events.events.extend(lines.map(event_of));
            if span.number == root.number {
                let others = evictions.iter().skip(1);
                data.links = linked(others.map(|eviction| eviction.id.context()));
            }
            self.exporter.submit(data);
        }
    }

    /// Exports the parts of evictions that are no reconciles.
    fn export_steps(&self, subject: &Subject) {
        for begun in &subject.begun {
            if self.samples(begun.eviction.id.context().trace_id()) {
                self.export_start(begun);
            }
        }
        for Ended { eviction, at, outcome } in &subject.ended {
            let context = eviction.id.context();
            if self.samples(context.trace_id()) {
                let start = time(eviction.id.created_ms).unwrap_or(*at);
                let mut data = self.step(eviction, "graceful eviction", (start, *at));
                data.attributes
                    .push(KeyValue::new("bulkhead.eviction.outcome", *outcome));
                self.exporter.submit(data);
            }
        }
    }

    /// Exports the first span of a trace, from the loss of the cluster to the write of the task, and what happened
    /// until then.
    fn export_start(&self, begun: &Begun) {
        let Begun {
            eviction,
            at,
            departure,
        } = begun;
        let mut start = *at;
        if let Some(departure) = departure {
            if let Some(lost) = departure.lost {
                start = start.min(lost);
                self.exporter.submit(self.step(eviction, "cluster lost", (lost, *at)));
            }
            if let (Some(tainted), Some(taint)) = (departure.tainted, &departure.taint) {
                start = start.min(tainted);
                let since = departure.lost.unwrap_or(tainted).min(tainted);
                let mut data = self.step(eviction, "taint", (since, tainted));
                data.attributes
                    .push(KeyValue::new("bulkhead.eviction.taint", taint.clone()));
                if let Some(decision) = &departure.decision {
                    data.attributes
                        .push(KeyValue::new("bulkhead.decision.id", decision.clone()));
                    data.links = linked([ids::of_lone_decision(decision)].into_iter());
                }
                self.exporter.submit(data);
            }
            start = start.min(departure.queued);
            self.exporter
                .submit(self.step(eviction, "eviction queue", (departure.queued, departure.at)));
        }
        let mut first = self.step(eviction, "eviction", (start, *at));
        (first.span_context, first.parent_span_id) = (eviction.id.context(), SpanId::INVALID);
        self.exporter.submit(first);
    }

    /// Returns a span of an eviction that is no reconcile.
    fn step(&self, eviction: &Eviction, name: &'static str, (start, end): (SystemTime, SystemTime)) -> SpanData {
        let context = eviction.id.context();
        let id = ids::context(context.trace_id(), RandomIdGenerator::default().new_span_id());
        let mut data = self.span(id, context.span_id(), name.to_owned());
        (data.start_time, data.end_time) = (start, end.max(start));
        let about = |name: &'static str, value: &str| KeyValue::new(name, value.to_owned());
        data.attributes = vec![
            about("bulkhead.eviction.kind", &eviction.kind),
            about("bulkhead.eviction.binding", &eviction.binding),
            about("bulkhead.eviction.uid", &eviction.id.uid),
            about("bulkhead.eviction.cluster", &eviction.id.cluster),
            about("bulkhead.eviction.reason", &eviction.reason),
            about("bulkhead.eviction.producer", &eviction.producer),
        ];
        data
    }

    fn span(&self, span_context: SpanContext, parent_span_id: SpanId, name: String) -> SpanData {
        SpanData {
            span_context,
            parent_span_id,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }

    /// Decides by the id alone, so that all processes keep or drop the same traces.
    fn samples(&self, trace: TraceId) -> bool {
        let sampled = self
            .sampler
            .should_sample(None, trace, "eviction", &SpanKind::Internal, &[], &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }

    fn evictions(&self) -> MutexGuard<'_, Evictions> {
        self.evictions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id of the trace of a reconcile outside of evictions: that of its last decision, whose id its objects get.
fn trace_of(tree: &Tree) -> TraceId {
    let ids = tree
        .decisions()
        .filter_map(|span| Some((span.number, span.fields.text("id")?)));
    ids.max().map_or_else(
        || RandomIdGenerator::default().new_trace_id(),
        |(_, id)| ids::of_lone_decision(id).trace_id(),
    )
}

/// Returns the ids of the spans of a tree, by their numbers.
fn span_ids(tree: &Tree) -> HashMap<usize, SpanId> {
    let random = RandomIdGenerator::default();
    let id = |span: &Recorded| match (span.name, span.fields.text("id")) {
        ("decision", Some(id)) => ids::of_decision(id),
        _ => random.new_span_id(),
    };
    tree.spans.iter().map(|span| (span.number, id(span))).collect()
}

/// Returns the name of a span: its kind, and the controller, the kind of call or the kind of decision.
fn name_of(span: &Recorded) -> String {
    let detail = span
        .fields
        .text(if span.name == "reconcile" { "controller" } else { "kind" });
    detail.map_or_else(|| span.name.to_owned(), |detail| format!("{} {detail}", span.name))
}

/// Returns the attributes of a span. A decision has those of its log line too.
fn attributes_of(span: &Recorded) -> Vec<KeyValue> {
    let named = |(name, value): (&'static str, Value)| KeyValue::new(format!("bulkhead.{}.{name}", span.name), value);
    let lines = span.lines.iter().filter(|line| line.target == "bulkhead::decision");
    let of_line = lines.take(1).flat_map(|line| line.fields.values());
    let of_line = of_line.filter(|_| span.name == "decision");
    span.fields.values().chain(of_line).map(named).collect()
}

/// Returns the status of a span: an error if it has a fault or a problem in its log.
fn status_of(span: &Recorded) -> Status {
    let problem = span
        .lines
        .iter()
        .find(|line| line.is_problem)
        .map(|line| line.fields.message().to_owned());
    let problem = problem.or_else(|| span.fields.text("fault").map(str::to_owned));
    problem.map_or(Status::Unset, Status::error)
}

/// Returns an event of a span. A write is named by its verb and object.
fn event_of(line: &Line) -> Event {
    let text = |name| line.fields.text(name);
    let name = match (text("verb"), text("kind"), text("name")) {
        (Some(verb), Some(kind), Some(name)) => {
            let namespace = text("namespace")
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default();
            format!("{} {verb} {kind} {namespace}{name}", line.fields.message())
        }
        _ => line.fields.message().to_owned(),
    };
    let attributes = line.fields.values().map(|(name, value)| KeyValue::new(name, value));
    Event::new(name, line.at, attributes.collect(), 0)
}

fn linked(contexts: impl Iterator<Item = SpanContext>) -> SpanLinks {
    let mut links = SpanLinks::default();
    links
        .links
        .extend(contexts.map(|context| Link::new(context, Vec::new(), 0)));
    links
}
