//! Events about faults of plugins that answer Karmada's interpreter.
//!
//! The event is about the object that was asked about, because its owner sees health or replicas that stay unknown.
//! Faults are limited like failures in the log: one event for each object and operation in ten minutes, and 20 new ones
//! in a second.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bulkhead_api::webhook::serve::Failure;
use bulkhead_core::names::keys;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::events::{self, EventType, Events};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::logs::Limiter;

/// Component that events name as their source.
const SOURCE: &str = "resource-interpreter";

/// Emitter of events about faults, with its writer.
pub(super) struct FaultEvents {
    events: Events,
    limiter: Limiter,
    _writer: JoinSet<()>,
}

impl FaultEvents {
    /// Starts the writer.
    pub(super) fn start(client: Client, clock: Clock) -> Self {
        let (events, writer) = events::events(client, clock);
        let mut running = JoinSet::new();
        running.spawn(writer.run());
        Self {
            events,
            limiter: Limiter::default(),
            _writer: running,
        }
    }

    /// Emits an event about a fault, unless there were too many. A verdict of a plugin that the health is unknown is no
    /// fault.
    pub(super) fn report(&self, failure: &Failure) {
        if !failure.is_fault {
            return;
        }
        let (about, operation) = (about(&failure.object), &failure.operation);
        let mut hasher = DefaultHasher::new();
        (&about.kind, &about.namespace, &about.name, operation).hash(&mut hasher);
        if self.limiter.admit(hasher.finish(), Instant::now()).is_none() {
            return;
        }
        let message = format!("No plugin answers {operation}: {}.", failure.message);
        self.events
            .emit(SOURCE, about, EventType::Warning, "PluginFault", message);
    }
}

/// Returns the template of an object as the subject of an event. An object of a member has the uid of its template in an
/// annotation.
fn about(object: &Value) -> ObjectReference {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let metadata = &object["metadata"];
    ObjectReference {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        uid: text(&metadata["annotations"][keys::TEMPLATE_UID]).or_else(|| text(&metadata["uid"])),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bulkhead_apiserver::{ApiServer, Options};
    use k8s_openapi::api::core::v1::Event;
    use k8s_openapi::jiff::Timestamp;
    use kube::Api;
    use kube::api::ListParams;
    use serde_json::json;

    use super::*;

    fn failure(name: &str, is_fault: bool) -> Failure {
        let annotations = json!({keys::TEMPLATE_UID: "of-the-template"});
        let metadata = json!({"name": name, "namespace": "default", "uid": "of-the-copy", "annotations": annotations});
        Failure {
            operation: "InterpretHealth".to_owned(),
            object: Arc::new(json!({"apiVersion": "example.io/v1", "kind": "Game", "metadata": metadata})),
            message: "PluginOutOfFuel: lua/health: used up its 10000000 steps".to_owned(),
            is_fault,
        }
    }

    /// Reports failures of these objects, and returns the events.
    async fn events(failures: impl IntoIterator<Item = Failure>) -> Vec<Event> {
        let clock = bulkhead_apiserver::Clock::new(Timestamp::UNIX_EPOCH);
        let hub = ApiServer::new(Options {
            auto_create_namespaces: true,
            ..Options::new("hub", 1, clock.clone())
        });
        let faults = FaultEvents::start(hub.client(), Clock::new(move || clock.now()));
        for failure in failures {
            faults.report(&failure);
        }
        // Time is paused: it passes when the writer has nothing left to do.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let events: Api<Event> = Api::all(hub.client());
        events.list(&ListParams::default()).await.unwrap().items
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_is_one_event_at_the_template_of_the_object() {
        let written = events([failure("a", true), failure("a", true), failure("b", false)]).await;
        let [event] = written.as_slice() else {
            panic!("{written:?}");
        };
        let about = &event.involved_object;
        let fields = [
            &about.api_version,
            &about.kind,
            &about.namespace,
            &about.name,
            &about.uid,
        ];
        let expected = ["example.io/v1", "Game", "default", "a", "of-the-template"];
        assert_eq!(fields.map(|field| field.clone().unwrap()), expected);
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.reason.as_deref(), Some("PluginFault"));
        let message = "No plugin answers InterpretHealth: PluginOutOfFuel: lua/health: used up its 10000000 steps.";
        assert_eq!(event.message.as_deref(), Some(message));
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_fails_for_many_objects_does_not_flood_the_control_plane() {
        let many = (0..500).map(|number| failure(&format!("game-{number}"), true));
        assert_eq!(events(many).await.len(), 20);
    }
}
