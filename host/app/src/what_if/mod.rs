//! What would happen if clusters were lost: the decisions of a failover on exported objects, in virtual time.
//!
//! The core is the same as that of the controllers: taints from the policies of the export, one queue of evictions with
//! its rates and its brake, the judgement of each eviction, the scheduler. What is left out is what takes time in member
//! clusters: a workload counts as placed when it is scheduled, and old copies are not purged. Nothing is written.

mod export;
mod play;

use std::collections::BTreeMap;

use bulkhead_controllers::flags::{Flags, GoDuration};
use serde::Serialize;

pub use export::{Export, load, load_live};
pub use play::play;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Clusters that are lost at the start.
    pub down: Vec<String>,
    /// For how long; absent is for good.
    pub lasts: Option<GoDuration>,
    /// How long to look, at most.
    pub horizon: GoDuration,
    /// Settings of the controllers.
    pub flags: Flags,
}

/// What would happen.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Workloads that leave a cluster, in the order in which they do.
    pub moves: Vec<Move>,
    /// Workloads that would have to leave and stay, each with the gate that keeps it.
    pub stays: Vec<Stay>,
    /// Workloads that left and found no other place.
    pub nowhere: Vec<Unplaced>,
    /// Taints that are added and removed, in order.
    pub taints: Vec<TaintChange>,
    /// Replicas of each cluster, in order of name.
    pub load: Vec<Load>,
    /// When the last workload moves, in milliseconds from the loss; absent if none does.
    pub last_move_ms: Option<u64>,
    /// Evictions that still wait at the end of the horizon.
    pub waiting: usize,
    /// Every cluster is lost or not ready, so that no workload can move.
    pub no_cluster_left: bool,
}

/// One workload that leaves a cluster.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// When, in milliseconds from the loss.
    pub at_ms: u64,
    /// The binding, as `namespace/name` or `name`.
    pub binding: String,
    /// The cluster that it leaves.
    pub from: String,
    /// How many replicas leave.
    pub leaving: i32,
    /// Replicas that gain, by cluster; empty if it found no place.
    pub to: BTreeMap<String, i32>,
    /// Why it leaves.
    pub reason: String,
}

/// One workload that stays although it would have to leave.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stay {
    /// The binding.
    pub binding: String,
    /// The cluster.
    pub cluster: String,
    /// The gate, as the code of its reason.
    pub gate: String,
    /// The reason as a sentence.
    pub why: String,
}

/// A workload that is placed nowhere, or not whole.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unplaced {
    /// The binding.
    pub binding: String,
    /// Why the scheduler finds no place.
    pub why: String,
}

/// A change of a cluster's taints.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintChange {
    /// When, in milliseconds from the loss.
    pub at_ms: u64,
    /// The cluster.
    pub cluster: String,
    /// `+key:effect` or `-key:effect`.
    pub change: String,
}

/// Replicas of a cluster.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// The cluster.
    pub cluster: String,
    /// Whether it is one of those that are lost.
    pub down: bool,
    /// Replicas before.
    pub before: i64,
    /// Replicas at the end.
    pub after: i64,
}
