//! Validated scenarios.

use std::fmt;

use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_core::composition::Composition;
use bulkhead_emulator::ClusterState;
use bulkhead_plugin::FoundPlugin;
use serde_json::Value;

use super::faults::FaultSpec;
use super::source::ObjectOrigin;
use super::{ClusterSpec, CustomKind, Expectation, FailureModeSpec, ObjectSpec};

/// Complete list of the problems of a scenario.
#[derive(Debug)]
pub struct ScenarioError {
    /// Problems, one line each: file, line if known, field, and the expected value.
    pub problems: Vec<String>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ScenarioError {}

/// Validated scenario.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Title of the scenario.
    pub name: String,
    /// Description of the scenario.
    pub description: String,
    /// SHA-256 of the scenario's file, in hexadecimal digits.
    pub sha256: String,
    /// Duration of the run, in virtual time.
    pub duration: GoDuration,
    /// Default random seed.
    pub seed: u64,
    /// Settings of the controllers.
    pub flags: Flags,
    /// Member clusters, each with its own name, in order of name.
    pub clusters: Vec<ClusterSpec>,
    /// Additional kinds that are served.
    pub custom_kinds: Vec<CustomKind>,
    /// Objects to apply at the start, in order.
    pub manifests: Vec<ManifestObject>,
    /// Plugins, in call order.
    pub plugins: Vec<FoundPlugin>,
    /// Rules that combine the verdicts of several policies.
    pub composition: Composition,
    /// Events, in order of time.
    pub events: Vec<LoadedEvent>,
    /// Expectations, each with its line number in the file.
    pub expectations: Vec<(u64, Expectation)>,
    /// True to check the invariants as well.
    pub invariants: bool,
    /// True to run a second process in mode `report` beside the controllers.
    pub witness: bool,
    /// Likely mistakes that do not prevent a run.
    pub warnings: Vec<String>,
}

/// Object of a manifest file.
#[derive(Clone, Debug)]
pub struct ManifestObject {
    /// Part of a file that contains it, for messages.
    pub origin: ObjectOrigin,
    /// Content of the object.
    pub value: Value,
}

impl ManifestObject {
    /// Returns the name of the Cluster whose taints an application of the object replaces.
    pub(crate) fn cluster_with_replaced_taints(&self) -> Option<String> {
        let is_cluster = self.value["kind"] == "Cluster" && self.value.pointer("/spec/taints").is_some();
        let name = self.value.pointer("/metadata/name").filter(|_| is_cluster)?;
        name.as_str().map(str::to_owned)
    }
}

/// Validated event.
#[derive(Clone, Debug)]
pub struct LoadedEvent {
    /// Time from the start.
    pub at: GoDuration,
    /// Action of the event.
    pub action: EventAction,
}

/// Action of an event.
#[derive(Clone, Debug)]
pub enum EventAction {
    /// Changes the state of a member cluster.
    ClusterState(String, ClusterState),
    /// Replaces the failures of workloads in a member cluster.
    FailureModes(String, Vec<FailureModeSpec>),
    /// Applies objects to the control plane; with the name of their file.
    Apply(String, Vec<ManifestObject>),
    /// Deletes an object from the control plane.
    Delete(ObjectSpec),
    /// Requests the rescheduling of a binding: `namespace/name`, or `name` for one of cluster scope.
    Reschedule(String),
    /// Restarts a controller with an empty memory after a downtime.
    KillController(String, GoDuration),
    /// Replaces all plugins.
    Plugins(Vec<FoundPlugin>),
    /// Injects a fault into the control plane or the controllers.
    Fault(FaultSpec),
}
