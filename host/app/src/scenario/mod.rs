//! A scenario: member clusters, manifests, plugins, what happens when, and what must hold.

mod checks;
pub mod faults;
mod load;
mod manifests;

use std::collections::BTreeMap;

use bulkhead_api::kinds::KindInfo;
use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_controllers::profile::Profile;
use bulkhead_core::composition::Composition;
use bulkhead_core::model::{SyncMode, Taint};
use bulkhead_plugin::PluginManifest;
use serde::Deserialize;
use serde_saphyr::Spanned;

pub use checks::parse_workload;
pub use load::{EventAction, Loaded, LoadedEvent, ManifestObject, ScenarioError, load, parse};

/// A scenario as written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Title, for people.
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// How long to run, in virtual time.
    pub duration: GoDuration,
    /// Seed of everything random; `--seed` overrides it.
    #[serde(default)]
    pub seed: u64,
    /// The set of options that `flags` are laid over.
    #[serde(default)]
    pub profile: Profile,
    /// Settings of the controllers, with Karmada's names; those that are not given are the profile's.
    #[serde(default)]
    pub flags: Flags,
    /// Member clusters.
    pub clusters: Vec<Spanned<ClusterSpec>>,
    /// Objects to apply at the start, in files relative to the scenario or written out here.
    #[serde(default)]
    pub manifests: Vec<Spanned<ManifestSource>>,
    /// Texts that stand for files of these names, so that a scenario can be one file.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Plugins, in the order in which they are asked; all of them before the built-in policies.
    #[serde(default)]
    pub plugins: Vec<Spanned<PluginManifest>>,
    /// How the answers of several plugins become one.
    #[serde(default)]
    pub composition: Composition,
    /// Kinds that the control plane and every member cluster serve besides those that they have, as if their
    /// CustomResourceDefinitions were there.
    #[serde(default)]
    pub custom_kinds: Vec<CustomKind>,
    /// What to do about a manifest of a kind that is not served.
    #[serde(default)]
    pub unknown_kinds: UnknownKinds,
    /// What happens when.
    #[serde(default)]
    pub events: Vec<Spanned<EventSpec>>,
    /// What must hold.
    #[serde(default)]
    pub expect: Vec<Spanned<Expectation>>,
    /// Whether the promises that hold whatever goes wrong are looked at, too. They want a quiet end: everything well
    /// for longer than the longest timer.
    #[serde(default)]
    pub invariants: bool,
    /// Whether a second process in mode `report` runs beside the controllers. With `invariants` it must write nothing.
    #[serde(default)]
    pub witness: bool,
}

/// A kind of custom resource. Its objects live in namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomKind {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Lower-case plural, as in paths.
    pub plural: String,
}

/// What to do about a manifest of a kind that is not served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnknownKinds {
    /// The scenario is bad.
    #[default]
    Refuse,
    /// Say so and go on without it.
    Skip,
}

/// Objects to apply: a file, many objects made from one, or the objects themselves.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a file name, {file, count}, or {objects}")]
pub enum ManifestSource {
    /// A file with one or more YAML documents.
    File(String),
    /// A file whose text is applied `count` times, with `{n}` replaced by `first`, `first` + 1, … and `{n%K}` by
    /// 1 … K in turn.
    Generated(GeneratedManifest),
    /// Objects that are written out here.
    Inline(InlineManifest),
}

/// Objects that are written out in the scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InlineManifest {
    /// The objects, in the order in which they are applied.
    pub objects: Vec<serde_json::Value>,
}

/// Many objects made from one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedManifest {
    /// The file.
    pub file: String,
    /// The first number.
    #[serde(default = "one")]
    pub first: u32,
    /// How often.
    pub count: u32,
}

fn one() -> u32 {
    1
}

/// A member cluster, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// Name; with `count` a prefix that a number is added to.
    pub name: String,
    /// How many clusters of this sort: `<name>1` … `<name><count>`.
    #[serde(default)]
    pub count: Option<u32>,
    /// Labels of the Cluster object.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Cloud provider.
    #[serde(default)]
    pub provider: String,
    /// Region.
    #[serde(default)]
    pub region: String,
    /// Zones.
    #[serde(default)]
    pub zones: Vec<String>,
    /// Push or Pull.
    #[serde(default)]
    pub sync_mode: SyncMode,
    /// Taints from the start.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Nodes and what they offer.
    #[serde(default)]
    pub capacity: Capacity,
    /// How long a replica takes to become ready.
    #[serde(default = "five_seconds")]
    pub replica_ready_after: GoDuration,
    /// How much longer, at most, drawn from the seed for each replica.
    #[serde(default)]
    pub replica_ready_jitter: GoDuration,
    /// What is wrong with workloads there.
    #[serde(default)]
    pub failure_modes: Vec<FailureModeSpec>,
}

fn five_seconds() -> GoDuration {
    GoDuration::from_secs(5)
}

/// Nodes of a member cluster and what they offer together.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Capacity {
    /// Number of nodes, which share the rest evenly.
    pub nodes: u32,
    /// CPU, as a Kubernetes quantity.
    pub cpu: String,
    /// Memory, as a Kubernetes quantity.
    pub memory: String,
    /// Pods.
    pub pods: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { nodes: 2, cpu: "32".to_owned(), memory: "128Gi".to_owned(), pods: 220 }
    }
}

/// Something that is wrong with workloads in a member cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailureModeSpec {
    /// What is wrong.
    pub mode: WorkloadFailure,
    /// `namespace/name` of the only workload concerned; absent is all of them.
    #[serde(default)]
    pub workload: Option<String>,
}

/// How workloads fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadFailure {
    /// Replicas start and never become ready.
    NeverReady,
    /// Replicas become ready and fail again, over and over.
    CrashLoop,
    /// Images cannot be pulled.
    ImagePull,
}

/// Something that happens. Exactly one of the fields beside `at` and `for` is given, `cluster` with `state`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventSpec {
    /// When, from the start.
    pub at: GoDuration,
    /// A member cluster whose state changes.
    #[serde(default)]
    pub cluster: Option<String>,
    /// Its new state.
    #[serde(default)]
    pub state: Option<ClusterState>,
    /// What goes wrong with workloads of the cluster from now on; an empty list ends what was wrong.
    #[serde(default)]
    pub failure_modes: Option<Vec<FailureModeSpec>>,
    /// Objects to apply.
    #[serde(default)]
    pub apply: Option<ManifestSource>,
    /// An object to delete from the control plane.
    #[serde(default)]
    pub delete: Option<ObjectSpec>,
    /// A member cluster that is emptied from now on.
    #[serde(default)]
    pub drain: Option<DrainSpec>,
    /// A member cluster that is no longer emptied.
    #[serde(default)]
    pub undrain: Option<String>,
    /// A controller that loses its memory, or `*` for all.
    #[serde(default, rename = "kill-controller", alias = "killController")]
    pub kill_controller: Option<String>,
    /// How long a killed controller stays away; absent is not at all.
    #[serde(default, rename = "for")]
    pub for_: Option<GoDuration>,
    /// Plugins that replace all that were named before.
    #[serde(default)]
    pub plugins: Option<Vec<PluginManifest>>,
    /// Something that goes wrong with the control plane or the controllers.
    #[serde(default)]
    pub fault: Option<faults::FaultSpec>,
}

/// A member cluster that is emptied: `bulkhead drain`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainSpec {
    /// The cluster.
    pub cluster: String,
    /// How fast, at most.
    #[serde(default)]
    pub evictions_per_second: Option<f64>,
}

/// States of a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// Nothing gets through to its API server, and its agent gets nothing out. Workloads there run on.
    Unreachable,
    /// Its API server answers, but `/readyz` says 500.
    ReadyzFailing,
    /// Its API server answers, but `/readyz` says 202, which is neither ready nor unreachable.
    ReadyzDegraded,
    /// All is well again.
    Recover,
}

/// An object of the control plane.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectSpec {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; absent for cluster scope.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Something that must hold at a time, at the end, or (`never`) at no time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// When: a duration from the start. Absent is at the end.
    #[serde(default)]
    pub at: Option<GoDuration>,
    /// Must hold at every moment from this one on, until `until`.
    #[serde(default)]
    pub from: Option<GoDuration>,
    /// Last moment for `from`; absent is the end.
    #[serde(default)]
    pub until: Option<GoDuration>,
    /// A binding, as `namespace/name` or `name`.
    #[serde(default)]
    pub binding: Option<String>,
    /// Its exact placement: replicas by cluster.
    #[serde(default)]
    pub clusters: Option<BTreeMap<String, i32>>,
    /// One of these placements.
    #[serde(default)]
    pub clusters_one_of: Option<Vec<BTreeMap<String, i32>>>,
    /// The clusters it has eviction tasks from, exactly.
    #[serde(default)]
    pub evicting_from: Option<Vec<String>>,
    /// Clusters it has a Work in, exactly; one that waits for its finalizer counts.
    #[serde(default)]
    pub works_in: Option<Vec<String>>,
    /// Every binding: how many have the cluster in their placement.
    #[serde(default)]
    pub bindings_on: Option<CountOn>,
    /// A member cluster.
    #[serde(default)]
    pub cluster: Option<String>,
    /// Status of its Ready condition.
    #[serde(default)]
    pub ready: Option<String>,
    /// Taints it has, exactly, as `key:effect` or `key=value:effect`.
    #[serde(default)]
    pub taints: Option<Vec<String>>,
    /// A workload in member clusters, as `Kind namespace/name`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Its ready replicas by member cluster, exactly; a cluster where it does not exist is left out.
    #[serde(default)]
    pub ready_replicas: Option<BTreeMap<String, i64>>,
    /// At least this many ready replicas over the member clusters that can be reached.
    #[serde(default)]
    pub ready_replicas_min: Option<i64>,
    /// An event with that reason.
    #[serde(default)]
    pub event: Option<EventExpectation>,
    /// A decision in the journal.
    #[serde(default)]
    pub decision: Option<DecisionExpectation>,
}

/// Number of bindings on a cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CountOn {
    /// The cluster.
    pub cluster: String,
    /// How many bindings have it in their placement.
    pub count: usize,
}

/// An event that must, or must not, have been emitted by then.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventExpectation {
    /// Its reason.
    pub reason: String,
    /// Name of the object it is about.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether it must be absent.
    #[serde(default)]
    pub absent: bool,
}

/// A decision that must, or must not, be in the journal by then.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionExpectation {
    /// Which decision.
    pub decision: bulkhead_core::journal::Decision,
    /// Code of its reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// Name of the plugin that gave the reason.
    #[serde(default)]
    pub plugin: Option<String>,
    /// Key of the object it is about.
    #[serde(default)]
    pub object: Option<String>,
    /// The member cluster it concerns.
    #[serde(default)]
    pub cluster: Option<String>,
    /// Whether it must be absent.
    #[serde(default)]
    pub absent: bool,
}

/// What is known about the kinds that a scenario may use.
pub fn served_kind(api_version: &str, kind: &str) -> Option<&'static KindInfo> {
    bulkhead_api::kinds::REGISTERED.iter().find(|info| info.api_version() == api_version && info.kind == kind)
}
