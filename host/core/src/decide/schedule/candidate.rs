//! The feasible clusters with what selection and assignment need to know of them.

use std::cmp::Reverse;

use crate::model::{Binding, BindingSpec, Placement};
use crate::snapshot::{Candidates, ClusterSnapshot};

/// A feasible cluster. Rows stand for names: a lower row is an earlier name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its row in the snapshot.
    pub(super) row: u32,
    /// 0 for a cluster of the group itself, 1 and up for its overflow entries.
    pub(super) overflow: u32,
    /// Sum over the score plugins.
    pub(super) score: i64,
    /// Replicas it has room for in addition to what it runs.
    pub(super) allocatable: i32,
    /// Replicas it has room for, those of this binding included.
    pub(super) available: i64,
}

/// The order of a cluster that no part of the observed group matches.
const OVERFLOW_UNMATCHED: u32 = 1000;

/// The candidates in the order in which they are selected (Karmada: `group_clusters.go:generateClustersInfo`).
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

/// Small overflow order, high score, much room, early name.
pub(super) fn sort_key(candidate: &Candidate) -> (u32, Reverse<i64>, Reverse<i64>, u32) {
    (candidate.overflow, Reverse(candidate.score), Reverse(candidate.available), candidate.row)
}

/// Replicas that each candidate has now; of several entries for one cluster the first counts.
fn assigned_first(spec: &BindingSpec, feasible: Candidates<'_>) -> Vec<i32> {
    let mut assigned = vec![0; feasible.len()];
    for target in spec.clusters.iter().rev() {
        if let Some(position) = feasible.position_of(&target.name) {
            assigned[position] = target.replicas;
        }
    }
    assigned
}

/// Karmada: `group_clusters.go:getClusterOverflowOrder`.
enum OverflowOrder {
    /// Groups play no part.
    Same,
    /// For each affinity of the observed group, its own and then its overflow entries, the rows that it selects.
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
