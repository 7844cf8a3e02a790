//! Results of a simulation, as data. Every output format is rendered from these types alone.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::origin::Origin;

/// Result of one run of a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Title of the scenario.
    pub scenario: String,
    /// Description of the scenario; may be empty.
    pub description: String,
    /// Program, inputs and settings of the run.
    pub origin: Origin,
    /// Random seed of the run.
    pub seed: u64,
    /// Virtual time that passed, in milliseconds.
    pub duration_ms: i64,
    /// Member clusters, in order of name, with their state at the end.
    pub clusters: Vec<ClusterRow>,
    /// Events of the run, in order of time.
    pub timeline: Vec<TimelineEntry>,
    /// Placements at the end, in order of key.
    pub placements: Vec<PlacementRow>,
    /// Policies in force at the end, in call order.
    pub plugins: Vec<PluginRow>,
    /// Results of the expectations, in the scenario's order.
    pub expectations: Vec<ExpectationRow>,
    /// Violated invariants; checked only if the scenario enables it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Counters of the run.
    pub totals: Totals,
    /// Retried operations, most frequent first.
    pub retries: Vec<RetryRow>,
    /// Writes to the control plane by resource, verb and status code, in that order.
    pub writes: Vec<WriteRow>,
}

impl Report {
    /// Returns true if every expectation and every invariant held.
    pub fn held(&self) -> bool {
        self.violations.is_empty() && self.expectations.iter().all(|expectation| expectation.held)
    }
}

/// One member cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// Name.
    pub name: String,
    /// `Push` or `Pull`.
    pub sync_mode: String,
    /// Region; may be empty.
    pub region: String,
    /// Status of the Ready condition at the end; `Unknown` if there is none.
    pub ready: String,
    /// Taints at the end, as `key:effect`.
    pub taints: Vec<String>,
    /// Periods in which the cluster was not ready, as (start, end) in milliseconds from the start of the run. A
    /// period that has not ended extends to the end of the run.
    pub not_ready_ms: Vec<(i64, i64)>,
    /// Ready replicas of all workloads on the cluster over time: (milliseconds from the start, replicas), one entry
    /// per change.
    pub ready_replicas: Vec<(i64, i64)>,
}

/// Origin of a timeline entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntrySource {
    /// Injected by the scenario.
    Injected,
    /// Decided by a controller.
    Decided,
    /// Observed in a member cluster.
    Observed,
}

/// Severity of a timeline entry, for highlighting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Neutral information.
    Neutral,
    /// Improvement.
    Good,
    /// Waiting or held.
    Waiting,
    /// Problem.
    Bad,
}

/// One line of the timeline.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Time, in milliseconds from the start.
    pub at_ms: i64,
    /// Origin of the entry.
    pub source: EntrySource,
    /// Severity of the entry.
    pub tone: Tone,
    /// Member cluster concerned, if any.
    pub cluster: Option<String>,
    /// Object concerned, as `Kind namespace/name`; absent if the entry covers several.
    pub object: Option<String>,
    /// Event, for example `evicted`.
    pub what: String,
    /// Consequence, for example `1 replicas to be placed elsewhere`; may be empty.
    pub effect: String,
    /// Reason code, for example `TaintUntolerated`; may be empty.
    pub reason: String,
    /// Reason as a sentence; may be empty.
    pub why: String,
    /// Plugin or policy that gave the reason, if any.
    pub plugin: Option<String>,
    /// Controller that decided, if any.
    pub controller: Option<String>,
    /// Number of decisions that this entry aggregates, at least 1.
    pub count: usize,
}

/// Placement of one binding at the end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRow {
    /// Binding, as `namespace/name` or `name`.
    pub binding: String,
    /// Resource template, as `Kind namespace/name`.
    pub resource: String,
    /// Desired replicas.
    pub replicas: i32,
    /// Scheduled replicas by cluster.
    pub clusters: BTreeMap<String, i32>,
    /// Health by cluster, as reported by the member clusters.
    pub health: BTreeMap<String, String>,
    /// Clusters with a pending graceful eviction task.
    pub evicting_from: Vec<String>,
    /// Clusters with a Work that waits for its finalizer.
    pub waiting_in: Vec<String>,
}

/// Policy in force at the end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginRow {
    /// Name.
    pub name: String,
    /// Version or digest.
    pub version: String,
    /// `builtin`, `wasm` or `lua`.
    pub engine: String,
    /// True for an interpreter that comes with the program, for a kind that Kubernetes does not have.
    pub library: bool,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that ended in a fault.
    pub faults: u64,
}

impl PluginRow {
    /// Returns true for an interpreter that comes with the program and was not called.
    pub fn is_unused_library(&self) -> bool {
        self.library && self.calls == 0
    }
}

/// Result of one expectation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectationRow {
    /// Line number in the scenario file, starting at 1.
    pub line: u64,
    /// Time of the check, in words: `at 55s`, `at the end`, `from 20s until 2m`.
    pub when: String,
    /// Expected state, in words.
    pub expected: String,
    /// True if the expectation held.
    pub held: bool,
    /// Actual state; empty if the expectation held.
    pub seen: String,
}

/// Violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Identifier of the invariant, for example `S1`.
    pub invariant: &'static str,
    /// Time, in milliseconds from the start.
    pub at_ms: i64,
    /// Description of the violation.
    pub seen: String,
}

/// Counters of one run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Decisions in the journal.
    pub decisions: u64,
    /// Requests to the control plane's API server.
    pub control_plane_requests: u64,
    /// Requests to the member clusters' API servers.
    pub member_requests: u64,
    /// Rate-limited writes of the scheduler.
    pub scheduler_writes: u64,
    /// Scheduler writes that were delayed by the rate limit.
    pub scheduler_writes_delayed: u64,
    /// Longest delay of a scheduler write, in milliseconds.
    pub scheduler_write_wait_max_ms: u64,
}

/// Retries of one controller with one error.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryRow {
    /// Name of the controller.
    pub controller: String,
    /// Error that caused the retries.
    pub error: String,
    /// Number of retries.
    pub count: u64,
}

/// Number of writes with the same resource, verb and status code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteRow {
    /// Resource and subresource, for example `works.work.karmada.io/status`.
    pub resource: String,
    /// Verb, for example `patch`.
    pub verb: String,
    /// HTTP status code of the response.
    pub code: u16,
    /// Number of writes.
    pub count: u64,
}
