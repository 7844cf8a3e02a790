//! Feasible clusters with the data for selection and assignment.

use std::cmp::Reverse;

use crate::model::{Binding, BindingSpec, Placement};
use crate::snapshot::{Candidates, ClusterSnapshot};

/// Feasible cluster. Rows represent names: a lower row is an earlier name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Row of the cluster in the snapshot.
    pub(super) row: u32,
    /// 0 for a cluster of the group itself, 1 or more for its overflow entries.
    pub(super) overflow: u32,
    /// Weighted sum of the scores.
    pub(super) score: i64,
    /// Replicas that the cluster can take in addition to the current ones.
    pub(super) allocatable: i32,
    /// Replicas that the cluster can take, including the current ones of this binding.
    pub(super) available: i64,
}

/// Overflow order of a cluster that the observed group does not select.
const OVERFLOW_UNMATCHED: u32 = 1000;

/// Returns the candidates in selection order (Karmada: `group_clusters.go:generateClustersInfo`).
pub(super) fn rank(
    binding: &Binding,
    placement: &Placement,
    feasible: Candidates<'_>,
    scores: &[i64],
    allocatable: &[i32],
) -> Vec<Candidate> {
    let assigned = assigned_first(&binding.spec, feasible);
    let order = OverflowOrder::new(binding, placement, feasible.snapshot());
    let numbers = feasible.rows().iter().zip(scores).zip(allocatable).zip(assigned);
    let candidate = |(((row, score), allocatable), assigned): (((&u32, &i64), &i32), i32)| Candidate {
        row: *row,
        overflow: order.of(*row),
        score: *score,
        allocatable: *allocatable,
        available: i64::from(*allocatable) + i64::from(assigned),
    };
    let mut candidates: Vec<_> = numbers.map(candidate).collect();
    candidates.sort_unstable_by_key(sort_key);
    candidates
}

/// Returns the sort key: lower overflow order, higher score, more capacity, earlier name.
pub(super) fn sort_key(candidate: &Candidate) -> (u32, Reverse<i64>, Reverse<i64>, u32) {
    (
        candidate.overflow,
        Reverse(candidate.score),
        Reverse(candidate.available),
        candidate.row,
    )
}

/// Returns the current replicas of each candidate. If a cluster has several entries, the first one counts.
fn assigned_first(spec: &BindingSpec, feasible: Candidates<'_>) -> Vec<i32> {
    let mut assigned = vec![0; feasible.len()];
    for target in spec.clusters.iter().rev() {
        if let Some(position) = feasible.position_of(&target.name) {
            assigned[position] = target.replicas;
        }
    }
    assigned
}

/// Overflow order of clusters (Karmada: `group_clusters.go:getClusterOverflowOrder`).
enum OverflowOrder {
    /// Affinity groups do not apply.
    Same,
    /// Rows selected by the observed group itself and by each of its overflow entries.
    ByMatch(Vec<Vec<bool>>),
}

impl OverflowOrder {
    fn new(binding: &Binding, placement: &Placement, snapshot: &ClusterSnapshot) -> Self {
        let terms = placement.cluster_affinities.as_deref().unwrap_or_default();
        if placement.cluster_affinity.is_some() || terms.is_empty() {
            return Self::Same;
        }
        let observed = &binding.status.scheduler_observed_affinity_name;
        let term = terms.iter().find(|term| term.affinity_name == *observed);
        let own = term.map(|term| snapshot.selected_by(&term.affinity));
        let overflow = term.map(|term| term.overflow()).unwrap_or_default();
        let overflow = overflow.iter().map(|entry| snapshot.selected_by(&entry.affinity));
        Self::ByMatch(own.into_iter().chain(overflow).collect())
    }

    fn of(&self, row: u32) -> u32 {
        match self {
            Self::Same => 0,
            Self::ByMatch(affinities) => {
                let matching = affinities.iter().position(|rows| rows.get(row as usize) == Some(&true));
                matching.map_or(OVERFLOW_UNMATCHED, |position| position as u32)
            }
        }
    }
}
