//! Control plane in memory with the copied objects, and the controllers of a mode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_apiserver as apiserver;
use bulkhead_apiserver::{ApiServer, Content};
use bulkhead_controllers::Manager;
use bulkhead_core::journal::Journal;
use bulkhead_plugin::Registry;
use bulkhead_runtime::controller::ErrorClass;
use bulkhead_runtime::failures::Failure;

use super::changes::{ObjectId, compare};
use super::copy::contents;
use super::{ControlPlaneCopy, Outcome, Take};
use crate::control_plane::{self, RECORDS_MAX};

/// Virtual time of a rehearsal.
pub const DURATION: Duration = Duration::from_mins(1);
/// Controllers that talk to member clusters, and those of Plugin objects and of records, which the copy does not have.
const LEFT_OUT: [&str; 6] = [
    "execution",
    "workStatus",
    "clusterStatus",
    "cluster",
    "pluginStatus",
    "failoverRecord",
];
/// Maximum number of failures that become notes.
const FAILURES_MAX: usize = 5;

/// Runs the controllers on a copy for [`DURATION`] of virtual time, and returns the changes. Must not be called from
/// an async context.
///
/// # Errors
///
/// An object of the copy has a kind that the control plane in memory does not serve.
pub fn rehearse(copy: ControlPlaneCopy, registry: Arc<Registry>, take: Take<'_>) -> anyhow::Result<Outcome> {
    control_plane::virtual_time()?.block_on(async {
        let clock = apiserver::Clock::new(take.now.timestamp());
        let ControlPlaneCopy { objects, kinds } = copy;
        let hub = control_plane::server(0, clock.clone(), take.flags, kinds);
        let objects_total = objects.len();
        let has_hooks = objects
            .iter()
            .any(|object| object["kind"] == "ResourceInterpreterWebhookConfiguration");
        control_plane::restore(&hub, contents(objects, take.now))?;
        let before = stored(&hub);
        let failures = run(&hub, clock, registry, take).await;
        Ok(Outcome {
            objects: objects_total,
            changes: compare(&before, &stored(&hub)),
            notes: notes(has_hooks, &failures),
        })
    })
}

/// Runs the controllers, and returns the failures of their reconciles.
async fn run(hub: &ApiServer, clock: apiserver::Clock, registry: Arc<Registry>, take: Take<'_>) -> Vec<Failure> {
    let components = control_plane::components(hub, clock, registry, Journal::new(RECORDS_MAX), take.flags);
    let manager = Manager::watch(components.clone());
    for name in take.controllers.iter().filter(|name| !LEFT_OUT.contains(name)) {
        manager.start_controller(name);
    }
    tokio::time::sleep(DURATION).await;
    components.failures.counts()
}

/// Returns all objects of the control plane.
fn stored(hub: &ApiServer) -> BTreeMap<ObjectId, Content> {
    let objects = hub.kind_ids().into_iter().flat_map(|kind| hub.store().list(kind, None));
    objects
        .map(|object| (ObjectId::of(object.content()), object.content().clone()))
        .collect()
}

/// Returns the limits of this rehearsal: interpreters that were not called, and reconciles that failed.
fn notes(has_hooks: bool, failures: &[Failure]) -> Vec<String> {
    let mut notes = Vec::new();
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
