//! Inputs of the selection among the feasible clusters.

use crate::model::Placement;
use crate::snapshot::ClusterSnapshot;

/// Inputs of the selection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    pub(super) placement: &'a Placement,
    /// Replicas of the workload.
    pub(super) replicas: i32,
    /// Required capacity of the selected clusters; absent if it does not matter.
    pub(super) needed: Option<i64>,
    pub(super) snapshot: &'a ClusterSnapshot,
}
