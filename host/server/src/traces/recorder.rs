//! Layer of `tracing` that collects the spans of each reconcile and passes them on when it has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bulkhead_controllers::eviction_trace;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::assembler::Assembler;
use super::evictions::Subject;
use super::recorded::{Fields, Line, Recorded};
use super::tree::{SPANS_MAX, Tree};
use crate::now;

/// Layer that collects spans.
pub(super) struct Recorder {
    assembler: Arc<Assembler>,
}

/// Span that is not closed yet, in the extensions of the registry.
struct Open {
    tree: Arc<Mutex<Tree>>,
    recorded: Recorded,
}

/// Returns true for the spans and events that traces consist of. The text of a plugin's fault is part of the decision
/// that had to do without its answer, so the events of calls are left out.
pub(super) fn is_recorded(metadata: &Metadata<'_>) -> bool {
    let level = *metadata.level();
    match metadata.target() {
        "bulkhead::reconcile" => metadata.is_span() || level <= Level::WARN,
        "bulkhead::plugin" => metadata.is_span(),
        "bulkhead::decision" | "bulkhead::write" => level <= Level::DEBUG,
        // The write of an event is no part of the reconcile that emitted it.
        "bulkhead::event" => metadata.is_event() && level <= Level::DEBUG,
        target => target == eviction_trace::TARGET,
    }
}

impl Recorder {
    /// Creates a layer that passes the spans of each reconcile to an assembler.
    pub(super) fn new(assembler: Arc<Assembler>) -> Self {
        Self { assembler }
    }
}

/// Runs `change` on a span that is not closed yet. A span that is not recorded is skipped.
fn with<S: for<'a> LookupSpan<'a>, T>(span: &SpanRef<'_, S>, change: impl FnOnce(&mut Open) -> T) -> Option<T> {
    span.extensions_mut().get_mut::<Open>().map(change)
}

fn time() -> SystemTime {
    now().into()
}

impl<S> Layer<S> for Recorder
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span
            .parent()
            .and_then(|parent| with(&parent, |open| (Arc::clone(&open.tree), open.recorded.number)));
        let (tree, parent) = match parent {
            Some((tree, number)) => (tree, Some(number)),
            None => (Arc::default(), None),
        };
        let fields = Fields::read(|fields| attributes.record(fields));
        let start = time();
        let mut recorded = Recorded {
            number: 0,
            parent,
            name: span.name(),
            start,
            end: start,
            fields,
            lines: Vec::new(),
        };
        {
            let mut tree = tree.lock().unwrap_or_else(PoisonError::into_inner);
            tree.opened += 1;
            recorded.number = tree.opened;
            if parent.is_none() {
                tree.subject = Subject::of(&recorded);
            }
        }
        span.extensions_mut().insert(Open { tree, recorded });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            with(&span, |open| values.record(&mut open.recorded.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let line = Line {
            at: time(),
            target: event.metadata().target(),
            is_problem: *event.metadata().level() <= Level::WARN,
            fields: Fields::read(|fields| event.record(fields)),
        };
        with(&span, |open| {
            let mut tree = open.tree.lock().unwrap_or_else(PoisonError::into_inner);
            self.assembler.learn(&mut tree.subject, &line);
            open.recorded.add(line);
        });
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            with(&span, |open| open.recorded.end = time());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { tree, recorded }) = span.extensions_mut().remove::<Open>() else {
            return;
        };
        let is_root = recorded.parent.is_none();
        let ended = {
            let mut tree = tree.lock().unwrap_or_else(PoisonError::into_inner);
            if is_root || tree.spans.len() < SPANS_MAX {
                tree.spans.push(recorded);
            }
            is_root.then(|| std::mem::take(&mut *tree))
        };
        if let Some(tree) = ended {
            self.assembler.finish(&tree);
        }
    }
}
