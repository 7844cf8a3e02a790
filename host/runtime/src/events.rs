//! Kubernetes events, written in the background so that no reconcile waits for one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use tokio::sync::mpsc;
use tracing::{Instrument as _, Span, debug};

use crate::clock::Clock;
use crate::controller::is_not_found;

/// Target of the log lines of events.
const TARGET: &str = "bulkhead::event";

/// Capacity of the event queue. Single events of a larger burst are of no use, so the excess is dropped and counted.
const PENDING_MAX: usize = 16_384;
/// Number of events whose repetitions raise a count, as in client-go.
const WRITTEN_MAX: usize = 4096;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Normal operation.
    Normal,
    /// A problem that needs attention.
    Warning,
}

struct Pending {
    about: ObjectReference,
    type_: EventType,
    reason: &'static str,
    message: String,
    source: &'static str,
    annotations: Annotations,
    /// Span of the caller, with the id of the decision that the event is about.
    span: Span,
}

/// Annotations of an event.
type Annotations = Arc<BTreeMap<String, String>>;

/// Handle that queues events for the writer.
#[derive(Clone)]
pub struct Events {
    pending: mpsc::Sender<Pending>,
    dropped: Arc<AtomicU64>,
    annotations: Annotations,
    /// Span to log events in; the current one if absent.
    span: Option<Span>,
}

/// Writer of queued events. [`Writer::run`] must be running.
pub struct Writer {
    client: kube::Client,
    clock: Clock,
    pending: mpsc::Receiver<Pending>,
    written: Mutex<BTreeMap<Says, Written>>,
}

/// Identity of an event: object, reason, message.
type Says = (String, String, String);

/// Name and count of a written event.
type Written = (String, i32);

/// Creates an event queue and its writer.
pub fn events(client: kube::Client, clock: Clock) -> (Events, Writer) {
    let (sender, pending) = mpsc::channel(PENDING_MAX);
    let events = Events {
        pending: sender,
        dropped: Arc::default(),
        annotations: Arc::default(),
        span: None,
    };
    (
        events,
        Writer {
            client,
            clock,
            pending,
            written: Mutex::default(),
        },
    )
}

impl Events {
    /// Returns a handle for events with these annotations.
    pub fn annotated(&self, annotations: BTreeMap<String, String>) -> Self {
        Self {
            annotations: Arc::new(annotations),
            ..self.clone()
        }
    }

    /// Returns a handle for events of a span.
    pub fn within(&self, span: Span) -> Self {
        Self {
            span: Some(span),
            ..self.clone()
        }
    }

    /// Emits an event about an object. `source` is the controller.
    pub fn emit(
        &self,
        source: &'static str,
        about: ObjectReference,
        type_: EventType,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let span = self.span.clone().unwrap_or_else(Span::current);
        let (annotations, message) = (Arc::clone(&self.annotations), message.into());
        let entered = span.enter();
        let (kind, namespace, name) = (about.kind.as_deref(), about.namespace.as_deref(), about.name.as_deref());
        debug!(target: TARGET, controller = source, kind, namespace, name, reason, "{message}");
        drop(entered);
        if self
            .pending
            .try_send(Pending {
                about,
                type_,
                reason,
                message,
                source,
                annotations,
                span,
            })
            .is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of events that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Writer {
    /// Writes events until every [`Events`] is dropped. An event that cannot be written is discarded.
    pub async fn run(mut self) {
        while let Some(pending) = self.pending.recv().await {
            let span = pending.span.clone();
            let written = async {
                if let Err(error) = self.write(pending).await {
                    debug!(target: TARGET, %error, "not written");
                }
            };
            written.instrument(span).await;
        }
    }

    /// Writes an event. A repeated event raises the count of the first one.
    async fn write(&self, pending: Pending) -> kube::Result<()> {
        // Events about cluster-scoped objects live in `default`, as in Kubernetes.
        let namespace = pending
            .about
            .namespace
            .clone()
            .filter(|n| !n.is_empty())
            .unwrap_or_else(|| "default".into());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let about = &pending.about;
        let object = format!(
            "{}/{namespace}/{}",
            about.kind.as_deref().unwrap_or(""),
            about.name.as_deref().unwrap_or("")
        );
        let says = (object, pending.reason.to_owned(), pending.message.clone());
        let now = Time(self.clock.now());
        let repeated = {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            written.get_mut(&says).map(|(name, count)| {
                *count += 1;
                (name.clone(), *count)
            })
        };
        if let Some((name, count)) = repeated {
            let patch = serde_json::json!({"count": count, "lastTimestamp": now});
            match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                // The first event has expired; write a new one.
                Err(error) if is_not_found(&error) => {}
                patched => return patched.map(drop),
            }
        }
        let annotations = Some(&*pending.annotations)
            .filter(|annotations| !annotations.is_empty())
            .cloned();
        let event = Event {
            metadata: ObjectMeta {
                annotations,
                generate_name: Some(format!("{}.", about.name.as_deref().unwrap_or("object"))),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            involved_object: pending.about.clone(),
            type_: Some(
                if pending.type_ == EventType::Normal {
                    "Normal"
                } else {
                    "Warning"
                }
                .to_owned(),
            ),
            reason: Some(pending.reason.to_owned()),
            message: Some(pending.message),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            source: Some(EventSource {
                component: Some(pending.source.to_owned()),
                host: None,
            }),
            ..Event::default()
        };
        let created = api.create(&PostParams::default(), &event).await?;
        let name = created.metadata.name.unwrap_or_default();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= WRITTEN_MAX {
            // After this, a repetition becomes a new event.
            written.clear();
        }
        written.insert(says, (name, 1));
        Ok(())
    }
}
