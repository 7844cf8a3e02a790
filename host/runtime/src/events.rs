//! Kubernetes events, written in the background so that no reconcile waits for one.
//!
//! An owner reads events, so each of them is a step of a workload or a problem. A success of the machinery between two
//! steps is an event only if it ends a problem ([`Events::emit_recovery`]). Repetitions are one series: one object
//! whose count rises, written once a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug, error_span};

use crate::clock::Clock;
use crate::controller::is_not_found;

/// Target of the log lines of events.
const TARGET: &str = "bulkhead::event";

/// Capacity of the event queue. Single events of a larger burst are of no use, so the excess is dropped and counted.
const PENDING_MAX: usize = 16_384;
/// Number of events whose repetitions raise a count, as in client-go.
const WRITTEN_MAX: usize = 4096;
/// Minimum pause between two writes of a series. Repetitions in between raise the count of the next write.
const SERIES_PAUSE: Duration = Duration::from_mins(1);
/// Maximum number of objects with a problem that are remembered. The recovery of the others has no event.
const TROUBLED_MAX: usize = 4096;

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
}

impl Pending {
    /// Returns the span of the write. That of the caller ends before, because the events of a burst wait for long.
    fn span(&self) -> Span {
        let about = path_of(&self.about);
        let annotations = (!self.annotations.is_empty()).then(|| tracing::field::debug(&*self.annotations));
        // As for reconciles, a failure has its context with every filter that shows it.
        error_span!(target: TARGET, "event", reason = self.reason, about, annotations)
    }
}

/// Annotations of an event.
type Annotations = Arc<BTreeMap<String, String>>;

/// Handle that queues events for the writer.
#[derive(Clone)]
pub struct Events {
    pending: mpsc::Sender<Pending>,
    dropped: Arc<AtomicU64>,
    annotations: Annotations,
    /// Objects and controllers whose last event is a warning.
    troubled: Arc<Mutex<BTreeSet<(String, &'static str)>>>,
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

/// Written event.
struct Written {
    name: String,
    /// Number of occurrences, including those that are not written yet.
    count: i32,
    /// Time of the last write.
    at: Instant,
}

/// Repetition of a written event.
enum Repetition {
    /// The series is written: name of the event, and its count.
    Due(String, i32),
    /// The count is written with a later repetition.
    Early,
}

/// Creates an event queue and its writer.
pub fn events(client: kube::Client, clock: Clock) -> (Events, Writer) {
    let (sender, pending) = mpsc::channel(PENDING_MAX);
    let events = Events {
        pending: sender,
        dropped: Arc::default(),
        annotations: Arc::default(),
        troubled: Arc::default(),
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
        if type_ == EventType::Warning {
            let mut troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
            if troubled.len() < TROUBLED_MAX {
                troubled.insert((path_of(&about), source));
            }
        }
        let message = message.into();
        self.log(source, &about, reason, &message);
        if self
            .pending
            .try_send(Pending {
                about,
                type_,
                reason,
                message,
                source,
                annotations: Arc::clone(&self.annotations),
            })
            .is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Emits a success of the machinery. It is an event only if it ends a problem: if the last event of this
    /// controller about the object was a warning of this process. Any other success is a log line.
    pub fn emit_recovery(
        &self,
        source: &'static str,
        about: ObjectReference,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let key = (path_of(&about), source);
        let was_troubled = self
            .troubled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
        if was_troubled {
            self.emit(source, about, EventType::Normal, reason, message);
        } else {
            self.log(source, &about, reason, &message.into());
        }
    }

    /// Logs an event in the span that it belongs to.
    fn log(&self, source: &str, about: &ObjectReference, reason: &str, message: &str) {
        let _entered = self.span.as_ref().map(Span::enter);
        let (kind, namespace, name) = (about.kind.as_deref(), about.namespace.as_deref(), about.name.as_deref());
        debug!(target: TARGET, controller = source, kind, namespace, name, reason, "{message}");
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
            let span = pending.span();
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
        let says = (path_of(about), pending.reason.to_owned(), pending.message.clone());
        let now = Time(self.clock.now());
        match self.repeat(&says) {
            Some(Repetition::Early) => return Ok(()),
            Some(Repetition::Due(name, count)) => {
                let patch = serde_json::json!({"count": count, "lastTimestamp": now});
                match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                    // The first event has expired; write a new one.
                    Err(error) if is_not_found(&error) => {}
                    patched => return patched.map(drop),
                }
            }
            None => {}
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
        let (count, at) = (1, Instant::now());
        written.insert(says, Written { name, count, at });
        Ok(())
    }

    /// Counts a repetition of a written event; `None` if the event is new.
    fn repeat(&self, says: &Says) -> Option<Repetition> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let series = written.get_mut(says)?;
        series.count = series.count.saturating_add(1);
        if series.at.elapsed() < SERIES_PAUSE {
            return Some(Repetition::Early);
        }
        series.at = Instant::now();
        Some(Repetition::Due(series.name.clone(), series.count))
    }
}

/// Returns kind, namespace and name of an object.
fn path_of(about: &ObjectReference) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}/{}", text(&about.kind), text(&about.namespace), text(&about.name))
}

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{ApiServer, Options};
    use k8s_openapi::jiff::Timestamp;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::registry::LookupSpan as _;

    use super::*;

    fn about(name: &str) -> ObjectReference {
        ObjectReference {
            kind: Some("Deployment".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        }
    }

    /// Control plane with a running writer of events.
    struct Written {
        events: Events,
        hub: ApiServer,
        _writer: tokio::task::JoinSet<()>,
    }

    impl Written {
        fn new() -> Self {
            let clock = bulkhead_apiserver::Clock::new(Timestamp::UNIX_EPOCH);
            let hub = ApiServer::new(Options {
                auto_create_namespaces: true,
                ..Options::new("hub", 1, clock.clone())
            });
            let (events, writer) = events(hub.client(), Clock::new(move || clock.now()));
            let mut running = tokio::task::JoinSet::new();
            running.spawn(writer.run());
            Self {
                events,
                hub,
                _writer: running,
            }
        }

        /// Returns reason, message and count of each event, in order of reason, and the number of writes.
        async fn all(&self) -> (Vec<(String, String, i32)>, u64) {
            // Time is paused: it passes when the writer has nothing left to do.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let events: Api<Event> = Api::all(self.hub.client());
            let list = events.list(&Default::default()).await.unwrap().items;
            let one = |event: Event| {
                let (reason, message) = (event.reason.unwrap(), event.message.unwrap());
                (reason, message, event.count.unwrap())
            };
            let mut all: Vec<_> = list.into_iter().map(one).collect();
            all.sort();
            (all, self.hub.writes().values().sum())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_waits_does_not_keep_the_span_of_its_caller_open() {
        // Only a layered registry closes spans.
        let subscriber = tracing_subscriber::registry().with(tracing_subscriber::layer::Identity::new());
        let _subscriber = tracing::subscriber::set_default(subscriber);
        let (events, _writer) = {
            let clock = bulkhead_apiserver::Clock::new(Timestamp::UNIX_EPOCH);
            let hub = ApiServer::new(Options::new("hub", 1, clock.clone()));
            super::events(hub.client(), Clock::new(move || clock.now()))
        };
        let span = error_span!("reconcile");
        let id = span.id().unwrap();
        let emit = |events: &Events| events.emit("binding", about("web"), EventType::Normal, "Step", "done");
        span.in_scope(|| emit(&events));
        emit(&events.within(span.clone()));
        let is_open = || {
            tracing::dispatcher::get_default(|dispatch| {
                let registry = dispatch.downcast_ref::<tracing_subscriber::Registry>();
                registry.is_some_and(|registry| registry.span(&id).is_some())
            })
        };
        assert!(is_open());
        drop(span);
        assert!(!is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn repetitions_are_one_series_that_is_written_once_a_minute() {
        let written = Written::new();
        let fail = || {
            let (reason, message) = ("SyncWorkFailed", "no answer");
            written
                .events
                .emit("binding", about("web"), EventType::Warning, reason, message);
        };
        (0..50).for_each(|_| fail());
        let series = |count| vec![("SyncWorkFailed".to_owned(), "no answer".to_owned(), count)];
        assert_eq!(written.all().await, (series(1), 1));
        tokio::time::sleep(SERIES_PAUSE).await;
        fail();
        assert_eq!(written.all().await, (series(51), 2), "the write has all repetitions");
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_between_two_steps_is_an_event_only_after_a_problem() {
        let written = Written::new();
        let succeed = |source, name| {
            let (reason, message) = ("SyncWorkSucceed", "Sync work successful.");
            written.events.emit_recovery(source, about(name), reason, message);
        };
        succeed("binding", "web");
        assert_eq!(written.all().await, (Vec::new(), 0));
        let (reason, message) = ("SyncWorkFailed", "no answer");
        written
            .events
            .emit("binding", about("web"), EventType::Warning, reason, message);
        succeed("binding", "shop");
        succeed("execution", "web");
        succeed("binding", "web");
        succeed("binding", "web");
        let failed = ("SyncWorkFailed".to_owned(), "no answer".to_owned(), 1);
        let recovered = ("SyncWorkSucceed".to_owned(), "Sync work successful.".to_owned(), 1);
        assert_eq!(written.all().await, (vec![failed, recovered], 2));
    }

    #[tokio::test(start_paused = true)]
    async fn steps_with_other_messages_are_events_of_their_own() {
        let written = Written::new();
        for cluster in ["m1", "m2"] {
            let (reason, message) = (
                "EvictWorkloadFromClusterSucceed",
                format!("Evict from cluster {cluster} succeed."),
            );
            written
                .events
                .emit("gracefulEviction", about("web"), EventType::Normal, reason, message);
        }
        let (all, writes) = written.all().await;
        let messages: Vec<_> = all.iter().map(|(_, message, _)| message.as_str()).collect();
        assert_eq!(
            messages,
            ["Evict from cluster m1 succeed.", "Evict from cluster m2 succeed."]
        );
        assert_eq!(writes, 2);
    }
}
