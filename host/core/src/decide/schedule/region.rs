//! Cluster selection by region (Karmada: `spreadconstraint/select_clusters_by_region.go`, `group_clusters.go`).

use serde::{Deserialize, Serialize};

use super::ScheduleError;
use super::candidate::{Candidate, sort_key};
use super::groups::{Bounds, Group, select_groups};
use super::selection::Selection;
use crate::model::{ReplicaSchedulingType, SpreadConstraint};

/// Region that was considered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegionChoice {
    /// Name of the region.
    pub name: String,
    /// Number of feasible clusters in the region.
    pub clusters: i64,
    /// Score of the region.
    pub score: i64,
    /// True if the region was chosen.
    pub chosen: bool,
}

struct Region<'a> {
    name: &'a str,
    /// Candidates in selection order.
    members: Vec<Candidate>,
}

/// Selects one cluster of each chosen region, then the best of the others. Total capacity is not checked.
pub(super) fn select(
    selection: &Selection<'_>,
    by_region: &SpreadConstraint,
    by_cluster: Option<&SpreadConstraint>,
    candidates: &[Candidate],
) -> Result<(Vec<Candidate>, Vec<RegionChoice>), ScheduleError> {
    let regions = group(selection, candidates);
    if (regions.len() as i64) < by_region.min_groups {
        let message = "the number of feasible region is less than spreadConstraint.MinGroups";
        return Err(ScheduleError::Select(message.to_owned()));
    }
    let clusters_min = by_cluster.map_or(0, |constraint| constraint.min_groups);
    let groups: Vec<Group<'_>> = regions
        .iter()
        .map(|region| Group {
            name: region.name,
            value: region.members.len() as i64,
            weight: score(selection, by_region.min_groups, clusters_min, &region.members),
        })
        .collect();
    let bounds = Bounds {
        groups_min: by_region.min_groups,
        groups_max: by_region.max_groups,
        value_min: clusters_min,
    };
    let chosen = select_groups(&groups, bounds).unwrap_or_default();
    if chosen.is_empty() {
        let message = "the number of clusters is less than the cluster spreadConstraint.MinGroups";
        return Err(ScheduleError::Select(message.to_owned()));
    }
    let clusters_max = by_cluster.map_or(0, |constraint| constraint.max_groups);
    let choices = groups.into_iter().enumerate().map(|(index, group)| RegionChoice {
        name: group.name.to_owned(),
        clusters: group.value,
        score: group.weight,
        chosen: chosen.contains(&index),
    });
    Ok((members(&regions, &chosen, clusters_max), choices.collect()))
}

/// Groups candidates by region, sorted by name; clusters without a region are left out.
fn group<'a>(selection: &Selection<'a>, candidates: &[Candidate]) -> Vec<Region<'a>> {
    let places = selection.snapshot.places();
    let mut sizes = vec![0; places.regions().len()];
    for candidate in candidates {
        sizes[places.region(candidate.row)] += 1;
    }
    let mut members: Vec<Vec<Candidate>> = sizes.into_iter().map(Vec::with_capacity).collect();
    for candidate in candidates {
        members[places.region(candidate.row)].push(*candidate);
    }
    let regions = places.regions().iter().zip(members);
    regions
        .filter(|(name, members)| !name.is_empty() && !members.is_empty())
        .map(|(name, members)| Region { name, members })
        .collect()
}

fn members(regions: &[Region<'_>], chosen: &[usize], clusters_max: i64) -> Vec<Candidate> {
    let chosen: Vec<&Region<'_>> = chosen.iter().filter_map(|index| regions.get(*index)).collect();
    let mut selected: Vec<_> = chosen
        .iter()
        .filter_map(|region| region.members.first().copied())
        .collect();
    let mut others: Vec<_> = chosen
        .iter()
        .flat_map(|region| region.members.iter().skip(1).copied())
        .collect();
    let more = clusters_max.saturating_sub(selected.len() as i64);
    others.sort_unstable_by_key(sort_key);
    selected.extend(others.into_iter().take(usize::try_from(more).unwrap_or(0)));
    selected
}

/// Scores a region. `members` must not be empty. (Karmada: `group_clusters.go:calcGroupScore`.)
fn score(selection: &Selection<'_>, regions_min: i64, clusters_min: i64, members: &[Candidate]) -> i64 {
    let replicas = i64::from(selection.replicas);
    if selection.placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated {
        let valid = || members.iter().filter(|member| member.available >= replicas);
        let (count, sum) = valid().fold((0_i64, 0_i64), |(n, sum), member| {
            (n + 1, sum.wrapping_add(member.score))
        });
        return if count == 0 {
            0
        } else {
            count * 1000 + sum.div_euclid(count)
        };
    }
    let target = replicas_per_region(replicas, regions_min);
    let fewest = clusters_min.max(regions_min);
    let (mut available, mut score, mut count) = (0_i64, 0_i64, 0_i64);
    for member in members {
        available = available.wrapping_add(member.available);
        score = score.wrapping_add(member.score);
        count += 1;
        if count >= fewest && available >= target {
            break;
        }
    }
    if available < target {
        return available.wrapping_mul(1000).wrapping_add(score / members.len() as i64);
    }
    target.wrapping_mul(1000).wrapping_add(score / count)
}

/// Returns the replicas per region, rounded up. If no region is required, Go divides by zero here and gets the
/// smallest integer.
fn replicas_per_region(replicas: i64, regions_min: i64) -> i64 {
    if regions_min == 0 {
        i64::MIN
    } else {
        (replicas as f64 / regions_min as f64).ceil() as i64
    }
}
