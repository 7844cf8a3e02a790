//! What a simulation came to, as data. Every output is made from this and nothing else.

use std::collections::BTreeMap;

use serde::Serialize;

/// The outcome of one run of a scenario.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Title of the scenario.
    pub scenario: String,
    /// What it shows; may be empty.
    pub description: String,
    /// Seed it ran with.
    pub seed: u64,
    /// Virtual time that passed, in milliseconds.
    pub duration_ms: i64,
    /// Member clusters, in order of name, as they were at the end.
    pub clusters: Vec<ClusterRow>,
    /// What happened, in order of time.
    pub timeline: Vec<TimelineEntry>,
    /// Where everything is at the end, in order of key.
    pub placements: Vec<PlacementRow>,
    /// The policies in force at the end, in the order in which they are asked.
    pub plugins: Vec<PluginRow>,
    /// What was expected, in order of the scenario.
    pub expectations: Vec<ExpectationRow>,
    /// Promises that were broken; only looked for if the scenario says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// How much there was to do.
    pub totals: Totals,
    /// Operations that were repeated, most frequent first.
    pub retries: Vec<RetryRow>,
    /// Writes to the control plane by resource, verb and answer, in that order.
    pub writes: Vec<WriteRow>,
}

impl Report {
    /// Whether every expectation and every promise held.
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
    /// When it was not ready, as pairs of milliseconds from the start; an open end is the end of the run.
    pub not_ready_ms: Vec<(i64, i64)>,
    /// Ready replicas of all workloads there over time: (milliseconds from the start, replicas), one entry per change.
    pub ready_replicas: Vec<(i64, i64)>,
}

/// Where an entry of the timeline comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntrySource {
    /// The scenario made it happen.
    Injected,
    /// A controller decided it.
    Decided,
    /// It followed in a member cluster.
    Observed,
}

/// How an entry is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Nothing special.
    Neutral,
    /// Things get better.
    Good,
    /// Something waits or is held.
    Waiting,
    /// Something is wrong.
    Bad,
}

/// One line of the timeline.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When, in milliseconds from the start.
    pub at_ms: i64,
    /// Where it comes from.
    pub source: EntrySource,
    /// How it is to be read.
    pub tone: Tone,
    /// The member cluster it concerns, if one.
    pub cluster: Option<String>,
    /// The object it is about, as `Kind namespace/name`; absent for several at once.
    pub object: Option<String>,
    /// What happened, for example `evicted`.
    pub what: String,
    /// What follows, for example `1 replicas to be placed elsewhere`; may be empty.
    pub effect: String,
    /// Code of the reason, for example `TaintUntolerated`; may be empty.
    pub reason: String,
    /// The reason as a sentence; may be empty.
    pub why: String,
    /// The plugin or policy that gave the reason, if one.
    pub plugin: Option<String>,
    /// The controller that decided, if one.
    pub controller: Option<String>,
    /// How many decisions this line stands for, at least 1.
    pub count: usize,
}

/// One binding at the end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRow {
    /// The binding, as `namespace/name` or `name`.
    pub binding: String,
    /// The resource template, as `Kind namespace/name`.
    pub resource: String,
    /// Desired replicas.
    pub replicas: i32,
    /// Scheduled replicas by cluster.
    pub clusters: BTreeMap<String, i32>,
    /// Health by cluster, as the member clusters report it.
    pub health: BTreeMap<String, String>,
    /// Clusters that old copies are still held on.
    pub evicting_from: Vec<String>,
    /// Clusters that have a Work which waits for its finalizer.
    pub waiting_in: Vec<String>,
}

/// One policy in force.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginRow {
    /// Name.
    pub name: String,
    /// Version or digest.
    pub version: String,
    /// `builtin`, `wasm` or `lua`.
    pub engine: String,
    /// Calls.
    pub calls: u64,
    /// Calls without an answer.
    pub faults: u64,
}

/// One expectation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectationRow {
    /// Line in the scenario file, from 1.
    pub line: u64,
    /// When it was looked at, in words: `at 55s`, `at the end`, `from 20s until 2m`.
    pub when: String,
    /// What was expected, in words.
    pub expected: String,
    /// Whether it held.
    pub held: bool,
    /// What was seen instead; empty if it held.
    pub seen: String,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Which, for example `S1`.
    pub invariant: &'static str,
    /// When, in milliseconds from the start.
    pub at_ms: i64,
    /// What was seen.
    pub seen: String,
}

/// How much there was to do.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Decisions in the journal.
    pub decisions: u64,
    /// Requests to the control plane's API server.
    pub control_plane_requests: u64,
    /// Requests to the member clusters' API servers.
    pub member_requests: u64,
    /// Writes of the scheduler, which has a budget for them.
    pub scheduler_writes: u64,
    /// Those of them that had to wait for the budget.
    pub scheduler_writes_delayed: u64,
    /// The longest that one had to wait.
    pub scheduler_write_wait_max_ms: u64,
}

/// One operation that was repeated.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryRow {
    /// The controller.
    pub controller: String,
    /// Why it did not get through.
    pub error: String,
    /// How often.
    pub count: u64,
}

/// Writes of one sort with one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteRow {
    /// What was written, for example `works.work.karmada.io/status`.
    pub resource: String,
    /// How, for example `patch`.
    pub verb: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// How often.
    pub count: u64,
}
