//! Scenario format: member clusters, manifests, plugins, timed events and expectations.

mod applied;
mod checks;
pub mod faults;
mod load;
mod loaded;
mod loader;
mod manifests;
mod source;

use std::collections::BTreeMap;

use bulkhead_api::kinds::KindInfo;
use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_controllers::profile::Profile;
use bulkhead_core::composition::Composition;
use bulkhead_core::manifest::{NamePattern, PluginManifest};
use bulkhead_core::model::{SyncMode, Taint};
use bulkhead_emulator::{ClusterState, WorkloadFailure};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

pub use checks::parse_workload;
pub use load::{load, parse};
pub use loaded::{EventAction, Loaded, LoadedEvent, ManifestObject, ScenarioError};
pub(crate) use manifests::builtin;
pub use source::ObjectOrigin;

/// Scenario as written in its file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Title of the scenario.
    pub name: String,
    /// Description of the scenario.
    #[serde(default)]
    pub description: String,
    /// Duration of the run, in virtual time.
    pub duration: GoDuration,
    /// Random seed; `--seed` overrides it.
    #[serde(default)]
    pub seed: u64,
    /// Profile whose settings `flags` override.
    #[serde(default)]
    pub profile: Profile,
    /// Settings of the controllers, with Karmada's names; unset ones come from the profile.
    #[serde(default)]
    pub flags: Flags,
    /// Member clusters.
    pub clusters: Vec<ClusterSpec>,
    /// Objects to apply at the start: files relative to the scenario, or `{objects: [...]}`.
    #[serde(default)]
    pub manifests: Vec<ManifestSource>,
    /// Contents of files by name, so that a scenario can be self-contained.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Plugins, in call order; all of them are called before the built-in policies.
    #[serde(default)]
    pub plugins: Vec<PluginManifest>,
    /// Namespaces of tenants by the name of a plugin, as a rule of a trust file limits it: the plugin answers health and
    /// eviction checks of workloads in these namespaces only, and can only hold. A name may end with `*`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub tenants: BTreeMap<String, Vec<NamePattern>>,
    /// Rules that combine the verdicts of several policies.
    #[serde(default)]
    pub composition: Composition,
    /// Additional kinds that the control plane and every member cluster serve, as if their CustomResourceDefinitions
    /// were installed.
    #[serde(default)]
    pub custom_kinds: Vec<CustomKind>,
    /// Handling of manifests of a kind that is not served.
    #[serde(default)]
    pub unknown_kinds: UnknownKinds,
    /// Timed events.
    #[serde(default)]
    pub events: Vec<EventSpec>,
    /// Expectations.
    #[serde(default)]
    #[schemars(with = "Vec<Expectation>")]
    pub expect: Vec<Spanned<Expectation>>,
    /// True to check the invariants as well. They require a quiet end of the run: no faults for longer than the
    /// longest timer.
    #[serde(default)]
    pub invariants: bool,
    /// True to run a second process in mode `report` beside the controllers. With `invariants` it must not write.
    #[serde(default)]
    pub witness: bool,
}

/// Namespaced custom resource kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomKind {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Lower-case plural, as in API paths.
    pub plural: String,
}

/// Handling of manifests of a kind that is not served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnknownKinds {
    /// Reject the scenario.
    #[default]
    Refuse,
    /// Skip the manifest with a warning.
    Skip,
}

/// Objects to apply: a file, objects generated from a file, or inline objects.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum ManifestSource {
    /// File with one or more YAML documents.
    File(String),
    /// File whose text is applied `count` times, with `{n}` replaced by `first`, `first` + 1, … and `{n%K}` by 1 …
    /// K, cyclically.
    Generated(GeneratedManifest),
    /// Inline objects.
    Inline(InlineManifest),
}

/// Inline objects of a scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineManifest {
    /// Objects, in the order in which they are applied.
    pub objects: Vec<serde_json::Value>,
}

/// Objects generated from one file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedManifest {
    /// Name of the file.
    pub file: String,
    /// First number, at least 1.
    #[serde(default = "one")]
    pub first: u32,
    /// Number of repetitions.
    pub count: u32,
}

fn one() -> u32 {
    1
}

/// Member cluster, or several identical ones.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// Name; with `count`, the prefix that a number is appended to.
    pub name: String,
    /// Number of identical clusters: `<name>1` … `<name><count>`.
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
    /// Sync mode: Push or Pull.
    #[serde(default)]
    pub sync_mode: SyncMode,
    /// Initial taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Nodes and their total resources.
    #[serde(default)]
    pub capacity: Capacity,
    /// Time until a replica becomes ready.
    #[serde(default = "five_seconds")]
    pub replica_ready_after: GoDuration,
    /// Maximum random addition to that time, drawn from the seed for each replica.
    #[serde(default)]
    pub replica_ready_jitter: GoDuration,
    /// Failures of workloads in the cluster.
    #[serde(default)]
    pub failure_modes: Vec<FailureModeSpec>,
    /// Images that cannot be pulled; `*` matches any text.
    #[serde(default)]
    pub unpullable_images: Vec<String>,
}

fn five_seconds() -> GoDuration {
    GoDuration::from_secs(5)
}

/// Nodes of a member cluster and their total resources.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Capacity {
    /// Number of nodes, which share the resources evenly.
    pub nodes: u32,
    /// Total CPU, as a Kubernetes quantity.
    pub cpu: String,
    /// Total memory, as a Kubernetes quantity.
    pub memory: String,
    /// Maximum number of pods.
    pub pods: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            nodes: 2,
            cpu: "32".to_owned(),
            memory: "128Gi".to_owned(),
            pods: 220,
        }
    }
}

/// Failure of workloads in a member cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailureModeSpec {
    /// Kind of failure.
    pub mode: WorkloadFailure,
    /// `namespace/name` of the affected workload; all workloads if absent.
    #[serde(default)]
    pub workload: Option<String>,
}

/// Timed event. Requires exactly one of the fields besides `at` and `for`; `cluster` requires `state` or
/// `failureModes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventSpec {
    /// Time from the start.
    pub at: GoDuration,
    /// Member cluster whose state or failure modes change.
    #[serde(default)]
    pub cluster: Option<String>,
    /// New state of the cluster.
    #[serde(default)]
    pub state: Option<ClusterState>,
    /// New failures of workloads in the cluster; an empty list ends the current ones.
    #[serde(default)]
    pub failure_modes: Option<Vec<FailureModeSpec>>,
    /// Objects to apply to the control plane.
    #[serde(default)]
    pub apply: Option<ManifestSource>,
    /// Object to delete from the control plane.
    #[serde(default)]
    pub delete: Option<ObjectSpec>,
    /// Member cluster to drain.
    #[serde(default)]
    pub drain: Option<DrainSpec>,
    /// Member cluster whose drain ends.
    #[serde(default)]
    pub undrain: Option<String>,
    /// Binding to schedule again, as `namespace/name` or `name`: sets its `spec.rescheduleTriggeredAt` to the time of the
    /// event.
    #[serde(default)]
    pub reschedule: Option<String>,
    /// Controller to restart with an empty memory, or `*` for all.
    #[serde(default, rename = "kill-controller", alias = "killController")]
    pub kill_controller: Option<String>,
    /// Downtime of a killed controller; 0 if absent.
    #[serde(default, rename = "for")]
    pub for_: Option<GoDuration>,
    /// Plugins that replace all previous ones.
    #[serde(default)]
    pub plugins: Option<Vec<PluginManifest>>,
    /// Fault of the control plane or the controllers.
    #[serde(default)]
    pub fault: Option<faults::FaultSpec>,
}

/// Drain of a member cluster, as by `bulkhead drain`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainSpec {
    /// Name of the cluster.
    pub cluster: String,
    /// Maximum number of evictions per second.
    #[serde(default)]
    pub evictions_per_second: Option<f64>,
}

/// Object of the control plane.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectSpec {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster scope.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Expected state at a time, at the end, or throughout a period.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// Time of the check, from the start. Absent means at the end.
    #[serde(default)]
    pub at: Option<GoDuration>,
    /// Start of the period in which the expectation must hold at every moment.
    #[serde(default)]
    pub from: Option<GoDuration>,
    /// End of the period that starts at `from`; absent means the end of the run.
    #[serde(default)]
    pub until: Option<GoDuration>,
    /// Binding, as `namespace/name` or `name`.
    #[serde(default)]
    pub binding: Option<String>,
    /// Exact placement of the binding: replicas by cluster.
    #[serde(default)]
    pub clusters: Option<BTreeMap<String, i32>>,
    /// Alternative exact placements, one of which must match.
    #[serde(default)]
    pub clusters_one_of: Option<Vec<BTreeMap<String, i32>>>,
    /// Exact list of the clusters that the binding has graceful eviction tasks from.
    #[serde(default)]
    pub evicting_from: Option<Vec<String>>,
    /// Exact list of the clusters that the binding has a Work in, including Works that wait for a finalizer.
    #[serde(default)]
    pub works_in: Option<Vec<String>>,
    /// Exact list of the steps in the FailoverRecord of the binding without holds, oldest first, as `State cluster`, for
    /// example `Evicted member1`. Empty if there must be no record.
    #[serde(default)]
    pub recorded: Option<Vec<String>>,
    /// Number of bindings with a cluster in their placement.
    #[serde(default)]
    pub bindings_on: Option<CountOn>,
    /// Member cluster.
    #[serde(default)]
    pub cluster: Option<String>,
    /// Status of its Ready condition.
    #[serde(default)]
    pub ready: Option<String>,
    /// Exact list of its taints, as `key:effect` or `key=value:effect`.
    #[serde(default)]
    pub taints: Option<Vec<String>>,
    /// Workload in member clusters, as `Kind namespace/name`.
    #[serde(default)]
    pub workload: Option<String>,
    /// Exact ready replicas of the workload by member cluster, without clusters in which it does not exist.
    #[serde(default)]
    pub ready_replicas: Option<BTreeMap<String, i64>>,
    /// Minimum sum of ready replicas over the reachable member clusters.
    #[serde(default)]
    pub ready_replicas_min: Option<i64>,
    /// Exact images of the workload's containers by member cluster, without clusters in which it does not exist.
    #[serde(default)]
    pub images: Option<BTreeMap<String, Vec<String>>>,
    /// Event that must, or must not, have been emitted.
    #[serde(default)]
    pub event: Option<EventExpectation>,
    /// Decision that must, or must not, be in the journal.
    #[serde(default)]
    pub decision: Option<DecisionExpectation>,
}

/// Number of bindings on a cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CountOn {
    /// Name of the cluster.
    pub cluster: String,
    /// Number of bindings with the cluster in their placement.
    pub count: usize,
}

/// Event that must, or must not, have been emitted by then.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventExpectation {
    /// Reason of the event.
    pub reason: String,
    /// Name of the involved object.
    #[serde(default)]
    pub name: Option<String>,
    /// True if the event must be absent.
    #[serde(default)]
    pub absent: bool,
}

/// Decision that must, or must not, be in the journal by then.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionExpectation {
    /// Kind of decision.
    pub decision: bulkhead_core::journal::Decision,
    /// Reason code.
    #[serde(default)]
    pub reason: Option<String>,
    /// Name of the plugin that gave the reason.
    #[serde(default)]
    pub plugin: Option<String>,
    /// Key of the object.
    #[serde(default)]
    pub object: Option<String>,
    /// Member cluster concerned.
    #[serde(default)]
    pub cluster: Option<String>,
    /// True if the decision must be absent.
    #[serde(default)]
    pub absent: bool,
}

/// Returns the registered kind for an API version and kind, if any.
pub fn served_kind(api_version: &str, kind: &str) -> Option<&'static KindInfo> {
    bulkhead_api::kinds::REGISTERED
        .iter()
        .find(|info| info.api_version() == api_version && info.kind == kind)
}
