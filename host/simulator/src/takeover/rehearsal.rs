//! Control plane in memory with the copied objects, and the controllers of a mode.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use bulkhead_api::REGISTERED;
use bulkhead_apiserver as apiserver;
use bulkhead_apiserver::kinds::kubernetes;
use bulkhead_apiserver::{ApiServer, ResourceKind};
use bulkhead_controllers::{Manager, MemberError, Members, Process};
use bulkhead_core::journal::Journal;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::{Clock, WallClock};
use bulkhead_runtime::controller::ErrorClass;
use bulkhead_runtime::events;
use bulkhead_runtime::failures::Failure;
use bulkhead_runtime::kinds::ObjectKind;
use kube::Client;
use serde_json::Value;

use super::changes::{ObjectId, compare};
use super::{ControlPlaneCopy, Outcome, Take};
use crate::control_plane;

/// Virtual time of a rehearsal.
pub const DURATION: Duration = Duration::from_mins(1);
/// Controllers that talk to member clusters, and the one of Plugin objects, which the copy does not have.
const LEFT_OUT: [&str; 5] = ["execution", "workStatus", "clusterStatus", "cluster", "pluginStatus"];
/// Number of decisions kept in memory: none is read.
const RECORDS_MAX: usize = 1;
/// Maximum number of failures that become notes.
const FAILURES_MAX: usize = 5;

/// Members without a connection. Without a probe in this process, the Ready condition decides.
struct NoMembers;

impl Members for NoMembers {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        Err(MemberError::Broken(format!("{cluster} is not part of a rehearsal")))
    }
}

/// Returns the kinds that every control plane in memory serves.
fn served_kinds() -> BTreeSet<ObjectKind> {
    let registered = REGISTERED
        .iter()
        .map(|info| ObjectKind::new(info.api_version(), info.kind));
    let of = |kind: &ResourceKind| ObjectKind::new(kind.api_version(), kind.kind.clone());
    registered.chain(kubernetes().iter().map(of)).collect()
}

/// Runs the controllers on a copy for [`DURATION`] of virtual time, and returns the changes. Must not be called from
/// an async context.
///
/// # Errors
///
/// An object of the copy has a kind that the control plane in memory does not serve.
pub fn rehearse(copy: &ControlPlaneCopy, registry: Arc<Registry>, take: Take<'_>) -> anyhow::Result<Outcome> {
    control_plane::virtual_time()?.block_on(async {
        let clock = apiserver::Clock::new(take.now.timestamp());
        let hub = control_plane::server(0, clock.clone(), take.flags, copy.kinds.clone());
        let kinds = kinds(copy);
        let left_out = hub.restore(copy.contents(take.now));
        ensure!(
            left_out.is_empty(),
            "{} objects have a kind that is not served",
            left_out.len()
        );
        let before = objects(&hub, &kinds);
        let failures = run(&hub, clock, registry, take).await;
        let after = objects(&hub, &kinds);
        Ok(Outcome {
            objects: copy.objects.len(),
            changes: compare(&before, &after),
            notes: notes(copy, &failures),
        })
    })
}

/// Runs the controllers, and returns the failures of their reconciles.
async fn run(hub: &ApiServer, clock: apiserver::Clock, registry: Arc<Registry>, take: Take<'_>) -> Vec<Failure> {
    let time = Clock::following(WallClock::new(move || clock.now()));
    // Events are no changes, so their writer does not run.
    let (events, _) = events::events(hub.client(), time.clone());
    let components = Process {
        hub: hub.client(),
        members: Arc::new(NoMembers),
        clock: time,
        registry,
        journal: Journal::new(RECORDS_MAX),
        flags: take.flags.clone(),
        events,
        explain: None,
    }
    .components();
    let manager = Manager::watch(components.clone());
    for name in take.controllers.iter().filter(|name| !LEFT_OUT.contains(name)) {
        manager.start_controller(name);
    }
    tokio::time::sleep(DURATION).await;
    components.failures.counts()
}

fn kinds(copy: &ControlPlaneCopy) -> BTreeSet<ObjectKind> {
    let of = |kind: &ResourceKind| ObjectKind::new(kind.api_version(), kind.kind.clone());
    served_kinds().into_iter().chain(copy.kinds.iter().map(of)).collect()
}

fn objects(hub: &ApiServer, kinds: &BTreeSet<ObjectKind>) -> BTreeMap<ObjectId, Arc<Value>> {
    let mut objects = BTreeMap::new();
    for kind in kinds {
        let Some(id) = hub.kind_id(&kind.api_version, &kind.kind) else {
            continue;
        };
        for object in hub.store().list(id, None) {
            let id = ObjectId {
                kind: kind.kind.clone(),
                api_version: kind.api_version.clone(),
                namespace: object.namespace().to_owned(),
                name: object.name().to_owned(),
            };
            objects.insert(id, Arc::clone(object.value()));
        }
    }
    objects
}

/// Returns the limits of this rehearsal: interpreters that were not called, and reconciles that failed.
fn notes(copy: &ControlPlaneCopy, failures: &[Failure]) -> Vec<String> {
    let mut notes = Vec::new();
    let has_hooks = copy
        .objects
        .iter()
        .any(|object| object["kind"] == "ResourceInterpreterWebhookConfiguration");
    if has_hooks {
        notes.push("webhook interpreters were not called: objects that only they interpret stay unchanged".to_owned());
    }
    let lasting: Vec<_> = failures
        .iter()
        .filter(|failure| !matches!(failure.class, ErrorClass::Conflict | ErrorClass::NotYet))
        .collect();
    for failure in lasting.iter().take(FAILURES_MAX) {
        notes.push(format!("controller {} failed: {}", failure.controller, failure.text));
    }
    if lasting.len() > FAILURES_MAX {
        notes.push(format!("{} more failures of controllers", lasting.len() - FAILURES_MAX));
    }
    notes
}
