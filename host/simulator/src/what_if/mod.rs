//! Simulated loss of clusters: the decisions of a failover on exported objects, in virtual time.
//!
//! The taint manager, the scheduler and the controller of taint policies run beside a control plane in memory that has
//! the exported objects (`rehearsal`). Member clusters are not simulated: the Ready condition of a lost cluster
//! changes when the thresholds say so, a workload takes up room as soon as it is scheduled, and old copies are not
//! purged. `observe` collects moves and taints while the controllers work, `end` the rest. Nothing is written.

mod cluster_status;
mod end;
mod export;
mod observe;
mod rehearsal;
mod room;

use std::collections::BTreeMap;

use bulkhead_controllers::flags::{Flags, GoDuration};
use serde::Serialize;

pub use export::{Export, load, load_live};
pub use rehearsal::play;

/// Question to simulate.
#[derive(Clone, Debug)]
pub struct Question {
    /// Clusters that are lost at the start.
    pub down: Vec<String>,
    /// Duration of the loss; `None` means permanent.
    pub lasts: Option<GoDuration>,
    /// Maximum virtual time to simulate.
    pub horizon: GoDuration,
    /// Settings of the controllers.
    pub flags: Flags,
}

/// Result of the simulation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Evictions, in order of time.
    pub moves: Vec<Move>,
    /// Workloads that would have to leave but stay, each with the gate that blocks the eviction.
    pub stays: Vec<Stay>,
    /// Evicted workloads without another placement.
    pub nowhere: Vec<Unplaced>,
    /// Added and removed taints, in order of time.
    pub taints: Vec<TaintChange>,
    /// Replicas of each cluster, in order of name.
    pub load: Vec<Load>,
    /// Time of the last move, in milliseconds from the loss; absent if there is none.
    pub last_move_ms: Option<u64>,
    /// Number of evictions still queued at the end of the simulation.
    pub waiting: usize,
    /// True if every cluster is lost or not ready, so that no workload can move.
    pub no_cluster_left: bool,
}

/// Eviction of one workload from a cluster.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// Time, in milliseconds from the loss.
    pub at_ms: u64,
    /// Binding, as `namespace/name` or `name`.
    pub binding: String,
    /// Cluster that the workload leaves.
    pub from: String,
    /// Number of evicted replicas.
    pub leaving: i32,
    /// Added replicas by cluster; empty if there is no other placement.
    pub to: BTreeMap<String, i32>,
    /// Replicas that other clusters lose because the same decision divides the replicas anew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shrunk: BTreeMap<String, i32>,
    /// Reason for the eviction.
    pub reason: String,
}

/// Workload that stays although its cluster is lost.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stay {
    /// Key of the binding.
    pub binding: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Gate that blocks the eviction, as its reason code.
    pub gate: String,
    /// Reason as a sentence.
    pub why: String,
}

/// Workload that the scheduler could not place completely.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unplaced {
    /// Key of the binding.
    pub binding: String,
    /// Error of the scheduler.
    pub why: String,
}

/// Change of a cluster's taints.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintChange {
    /// Time, in milliseconds from the loss.
    pub at_ms: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// `+key:effect` or `-key:effect`.
    pub change: String,
}

/// Replicas of one cluster.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Name of the cluster.
    pub cluster: String,
    /// True if the cluster is lost.
    pub down: bool,
    /// Replicas before the loss.
    pub before: i64,
    /// Replicas at the end.
    pub after: i64,
}
