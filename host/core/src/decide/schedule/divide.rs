//! Division by available capacity: dynamic weights and Aggregated (Karmada: `core/assignment.go`,
//! `core/division_algorithm.go`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ScheduleError;
use super::candidate::Candidate;
use super::gosort;
use super::webster::{TieBreak, dispense};

/// Replicas on a cluster, identified by its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) row: u32,
    pub(super) replicas: i32,
}

/// Treatment of the previous scheduling result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Running replicas stay on their clusters as far as possible.
    Steady,
    /// A rescheduling was requested: all replicas are divided again.
    Fresh,
}

/// Strategy of dynamic division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Packing {
    /// In proportion to capacity, over all selected clusters.
    Spread,
    /// In proportion to capacity, over the fewest clusters with enough capacity.
    Aggregated,
}

/// Strategy for dividing replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// All replicas on every cluster.
    Duplicated,
    /// By static weights, regardless of the current placement.
    StaticWeight,
    /// By available capacity.
    Dynamic(Packing),
    /// The workload has no replicas to divide and is placed as a whole.
    Whole,
}

/// Inputs of a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division<'a> {
    pub(super) replicas: i32,
    pub(super) packing: Packing,
    pub(super) mode: Mode,
    pub(super) ties: TieBreak,
    /// Selected clusters.
    pub(super) selected: &'a [Candidate],
    /// Previous result on the selected clusters, in its own order.
    pub(super) scheduled: &'a [Share],
}

/// Divides the replicas. The result has Karmada's order: allocated replicas by name, then previous replicas without
/// an addition. (Karmada takes the second part from a Go map; here it is sorted by name.)
pub(super) fn divide(division: &Division<'_>) -> Result<Vec<Share>, ScheduleError> {
    let Division {
        replicas,
        selected,
        scheduled,
        ..
    } = *division;
    let assigned = sum(scheduled);
    let room = |candidate: &Candidate| Share {
        row: candidate.row,
        replicas: candidate.allocatable,
    };
    match division.mode {
        Mode::Fresh => {
            let mut available: Vec<_> = selected.iter().map(room).collect();
            let mut runs: BTreeMap<u32, i32> = BTreeMap::new();
            for share in scheduled {
                let runs = runs.entry(share.row).or_default();
                *runs = runs.wrapping_add(share.replicas);
            }
            for share in &mut available {
                share.replicas = share.replicas.wrapping_add(runs.get(&share.row).copied().unwrap_or(0));
            }
            distribute(division, replicas, available, &[]).map_err(prefixed("failed to do fresh scale: "))
        }
        Mode::Steady if assigned > replicas => {
            distribute(division, replicas, scheduled.to_vec(), &[]).map_err(prefixed("failed to scale down: "))
        }
        Mode::Steady if assigned < replicas => {
            let available = selected.iter().map(room).collect();
            let missing = replicas.wrapping_sub(assigned);
            distribute(division, missing, available, scheduled).map_err(prefixed("failed to scale up: "))
        }
        Mode::Steady => Ok(scheduled.to_vec()),
    }
}

fn prefixed(prefix: &str) -> impl Fn(NotEnough) -> ScheduleError {
    move |NotEnough(sum)| {
        ScheduleError::Unschedulable(format!(
            "{prefix}Clusters available replicas {sum} are not enough to schedule."
        ))
    }
}

/// Error with the available capacity, in replicas.
struct NotEnough(i32);

fn distribute(
    division: &Division<'_>,
    target: i32,
    mut available: Vec<Share>,
    kept: &[Share],
) -> Result<Vec<Share>, NotEnough> {
    let room = sum(&available);
    if room < target {
        return Err(NotEnough(room));
    }
    if division.packing == Packing::Aggregated {
        available = fewest(available, target, kept);
    }
    Ok(merge(kept, by_weight(target, &available, division.ties)))
}

pub(super) fn sum(shares: &[Share]) -> i32 {
    shares.iter().fold(0_i32, |sum, share| sum.wrapping_add(share.replicas))
}

/// Returns the fewest clusters with enough total capacity: clusters in use first, then larger ones first.
fn fewest(mut available: Vec<Share>, target: i32, kept: &[Share]) -> Vec<Share> {
    gosort::sort(&mut available, |a, b| a.replicas > b.replicas);
    let in_use: std::collections::BTreeSet<u32> = kept
        .iter()
        .filter(|share| share.replicas > 0)
        .map(|share| share.row)
        .collect();
    if !in_use.is_empty() {
        let (first, others): (Vec<_>, Vec<_>) = available.iter().partition(|share| in_use.contains(&share.row));
        available = first.into_iter().chain(others).copied().collect();
    }
    let mut room = 0_i32;
    let enough = available.iter().position(|share| {
        room = room.wrapping_add(share.replicas);
        room >= target
    });
    available.truncate(enough.map_or(available.len(), |last| last + 1));
    available
}

/// Allocates seats by weight, in name order; returns nothing if the weights add up to zero. If a cluster has several
/// weights, the last one counts.
pub(super) fn by_weight(seats: i32, weights: &[Share], ties: TieBreak) -> Vec<Share> {
    let weights: Vec<_> = weights
        .iter()
        .map(|weight| (weight.row, i64::from(weight.replicas)))
        .collect();
    dispense_by_row(seats, weights, ties)
}

/// Allocates seats like [`by_weight`], with 64-bit weights.
pub(super) fn dispense_by_row(seats: i32, mut weights: Vec<(u32, i64)>, ties: TieBreak) -> Vec<Share> {
    weights.reverse();
    weights.sort_by_key(|(row, _)| *row);
    weights.dedup_by_key(|(row, _)| *row);
    let votes: Vec<_> = weights.iter().map(|(_, votes)| *votes).collect();
    let Some(seats) = dispense(seats, &votes, ties) else {
        return Vec::new();
    };
    weights
        .iter()
        .zip(seats)
        .map(|((row, _), replicas)| Share { row: *row, replicas })
        .collect()
}

/// Merges allocated replicas into the previous ones (Karmada: `pkg/util/binding.go:MergeTargetClusters`).
fn merge(kept: &[Share], mut given: Vec<Share>) -> Vec<Share> {
    if given.is_empty() {
        return kept.to_vec();
    }
    let mut remaining: BTreeMap<u32, i32> = kept.iter().map(|share| (share.row, share.replicas)).collect();
    for share in &mut given {
        share.replicas = share.replicas.wrapping_add(remaining.remove(&share.row).unwrap_or(0));
    }
    given.extend(remaining.into_iter().map(|(row, replicas)| Share { row, replicas }));
    given
}
