//! Helpers for the tests of several modules.

#[path = "../../../tests/logs/captured.rs"]
pub(crate) mod captured;

use std::sync::{Arc, Condvar, Mutex};

use bulkhead_api::{Cluster, ResourceBinding};
use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind, kinds};
use bulkhead_core::call::{Call, CallKind, Interpretation, Operation, Reply};
use bulkhead_core::journal::Journal;
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_plugin::{Description, Engine, LoadError, LoadStage, Loaded, Module, PluginSource, Registry};
use bulkhead_runtime::events;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::components::Components;
use crate::flags::Flags;
use crate::members::OneMember;
use crate::process::Process;

/// Creates an API server with these kinds.
pub(crate) fn server(name: &str, seed: u64, kinds: Vec<ResourceKind>) -> ApiServer {
    let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
    ApiServer::new(Options {
        kinds,
        auto_create_namespaces: true,
        ..Options::new(name, seed, clock)
    })
}

/// Creates a control plane that serves Clusters, ResourceBindings, Works and Kubernetes' own kinds.
pub(crate) fn hub_of_works(seed: u64) -> ApiServer {
    let clusters = ResourceKind::cluster_scoped("cluster.karmada.io", "v1alpha1", "Cluster", "clusters").with_status();
    let works = ResourceKind::namespaced("work.karmada.io", "v1alpha1", "Work", "works").with_status();
    let bindings = ResourceKind::namespaced("work.karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings");
    server(
        "hub",
        seed,
        kinds::kubernetes()
            .into_iter()
            .chain([clusters, works, bindings.with_status()])
            .collect(),
    )
}

/// Creates a control plane that serves every kind of Karmada and Bulkhead, and Kubernetes' own ones.
pub(crate) fn hub_of_everything(seed: u64) -> ApiServer {
    let kind = |info: &bulkhead_api::KindInfo| {
        let new = if info.namespaced {
            ResourceKind::namespaced
        } else {
            ResourceKind::cluster_scoped
        };
        let kind = new(info.group, info.version, info.kind, info.plural);
        if info.status_subresource {
            kind.with_status()
        } else {
            kind
        }
    };
    let registered = bulkhead_api::REGISTERED.iter().map(kind);
    server("hub", seed, kinds::kubernetes().into_iter().chain(registered).collect())
}

/// Creates a member cluster in which nothing runs.
pub(crate) fn member() -> ApiServer {
    server("m1", 7, kinds::kubernetes())
}

/// Creates the components of a control plane with one member, `m1`, and no policies. Events are kept, not written.
pub(crate) fn components(hub: Client, member: Client) -> (Components, events::Writer) {
    let clock = bulkhead_runtime::clock::Clock::new(|| Time::from_millis(0).timestamp());
    let (events, writer) = events::events(hub.clone(), clock.clone());
    let components = Process {
        members: Arc::new(OneMember::new("m1".to_owned(), member)),
        clock,
        registry: Arc::new(Registry::new(Vec::new())),
        journal: Journal::new(100),
        flags: Flags::default(),
        events,
        explain: None,
        hub,
    }
    .components();
    (components, writer)
}

/// Writes all emitted events to a control plane, and returns them. The components that emit them must be dropped.
pub(crate) async fn written_events(hub: Client, events: events::Writer) -> Vec<Event> {
    events.run().await;
    let all: Api<Event> = Api::all(hub);
    all.list(&ListParams::default()).await.unwrap().items
}

/// Parses an object.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Returns a Push cluster with these taints, which has been ready, or not, since 1969.
pub(crate) fn cluster(name: &str, is_ready: bool, taints: &Value) -> Cluster {
    let status = if is_ready { "True" } else { "False" };
    let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": "1969-01-01T00:00:00Z"});
    object(json!({
        "metadata": {"name": name, "uid": name, "finalizers": [keys::CLUSTER_FINALIZER]},
        "spec": {"syncMode": "Push", "taints": taints}, "status": {"conditions": [ready]},
    }))
}

/// Returns the taint of a cluster that is not ready.
pub(crate) fn not_ready() -> Value {
    json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"}])
}

/// Returns the binding of the Deployment `web` in the namespace `default`, which was placed with an empty placement.
/// `fields` are added to its spec.
pub(crate) fn binding_of_web(fields: &Value) -> ResourceBinding {
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"});
    let mut binding = json!({
        "metadata": {
            "name": "web-deployment", "namespace": "default", "annotations": {keys::APPLIED_PLACEMENT: "{}"},
        },
        "spec": {"resource": resource, "replicas": 2, "placement": {}},
    });
    for (name, value) in fields.as_object().unwrap() {
        binding["spec"][name] = value.clone();
    }
    object(binding)
}

/// Engine that runs no script: one that contains `broken` does not load, and any other one is the policy [`Renames`].
pub(crate) struct Scripts;

impl Engine for Scripts {
    fn kind(&self) -> EngineKind {
        EngineKind::Lua
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let is_broken = |module: &Module| String::from_utf8_lossy(&module.code).contains("broken");
        if source.modules.iter().any(is_broken) {
            return Err(LoadError::new(source, LoadStage::Compiled, "line 1: syntax error"));
        }
        let digest = source.digest();
        let id = PolicyId {
            name: source.name.clone(),
            version: digest.short(),
            engine: EngineKind::Lua,
        };
        Ok(Loaded {
            policy: Arc::new(Renames(id, [Capability::any(CallKind::Interpret)])),
            description: Description {
                name: String::new(),
                version: String::new(),
                summary: String::new(),
                digest,
                code_bytes: 0,
                contract: String::new(),
                imports: Vec::new(),
                taint_keys: Vec::new(),
                config_schema: None,
                reusable: false,
                remarks: Vec::new(),
            },
        })
    }
}

/// Latch that blocks threads until it is opened. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    pub(crate) fn pass(&self) {
        let mut is_open = self.0.0.lock().unwrap();
        while !*is_open {
            is_open = self.0.1.wait(is_open).unwrap();
        }
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Interpreter that returns every object under the name `other`.
pub(crate) struct Renames(PolicyId, [Capability; 1]);

impl Renames {
    pub(crate) fn policy() -> Arc<dyn Policy> {
        Arc::new(Self(
            PolicyId::builtin("renames"),
            [Capability::any(CallKind::Interpret)],
        ))
    }
}

impl Policy for Renames {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let Call::Interpret(call) = call else {
            return Err(Fault::new(FaultKind::Unsupported, ""));
        };
        let (Operation::Revise { object, .. } | Operation::Retain { desired: object, .. }) = &call.operation else {
            return Ok(Reply::Interpret(None));
        };
        let mut renamed = Value::clone(object);
        renamed["metadata"]["name"] = "other".into();
        Ok(Reply::Interpret(Some(Interpretation::Object(renamed))))
    }
}
