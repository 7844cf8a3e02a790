//! Explanation of a scheduling result, as data with names. It is created only on request
//! ([`decide_explained`](super::decide_explained)); [`Rejections`] has the data for the messages of every decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ScheduleError;
use super::candidate::Candidate;
use super::capacity::Estimates;
use super::divide::{Mode, Strategy};
use super::region::RegionChoice;
use super::rejections::Rejections;
use crate::combine::{Attribution, PolicyScores};
use crate::model::TargetCluster;
use crate::snapshot::Candidates;

/// Explanation of a scheduling result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanation {
    /// Attempts in order, one per affinity group tried; a single one if the placement has no groups.
    pub attempts: Vec<AttemptExplanation>,
}

/// Explanation of one attempt: filter, score, estimate, select, assign. Steps that were not reached are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptExplanation {
    /// Affinity group; absent if the placement has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity_name: Option<String>,
    /// Clusters that are being removed and were not considered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminating: Vec<String>,
    /// Rejected clusters, each with the first rejection.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, Attribution>,
    /// Feasible clusters in selection order: overflow order, score, capacity, name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateExplanation>,
    /// Rule for the selection of clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionRule>,
    /// Regions that were considered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionChoice>,
    /// Division of the replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<DivisionExplanation>,
    /// Result; absent if the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetCluster>>,
    /// Reason why the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Explanation for one feasible cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateExplanation {
    /// Name of the cluster.
    pub cluster: String,
    /// Score of each policy, before the policy's weight.
    pub scores: BTreeMap<String, i64>,
    /// Weighted sum of the scores.
    pub score: i64,
    /// Replicas according to the general estimator; absent if it was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub general_estimate: Option<i32>,
    /// Replicas according to the accurate estimator; absent if there is none, or if any of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accurate_estimate: Option<i32>,
    /// Replicas that the cluster can take in addition to the current ones.
    pub allocatable: i32,
    /// Replicas that the cluster can take, including the current ones of this workload.
    pub available: i64,
    /// 0 for a cluster of the affinity group itself, otherwise the number of its overflow entry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflow: u32,
    /// True if the cluster was selected.
    pub selected: bool,
    /// Weight for the division of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Rule for the selection among feasible clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SelectionRule {
    /// Selects all: there are no spread constraints, or static weights ignore them.
    Everything,
    /// Selects the first clusters, replaced by larger ones if required for the capacity of all replicas.
    ByCluster {
        /// Minimum number of clusters.
        min: i64,
        /// Maximum number of clusters.
        max: i64,
    },
    /// Selects the best combination of regions, then the first cluster of each, then the best of the others.
    ByRegion {
        /// Minimum number of regions.
        regions_min: i64,
        /// Maximum number of regions.
        regions_max: i64,
        /// Minimum number of clusters.
        clusters_min: i64,
        /// Maximum number of clusters.
        clusters_max: i64,
    },
}

/// Division of replicas, with its strategy and mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DivisionExplanation {
    /// Strategy of the placement.
    pub strategy: Strategy,
    /// Treatment of running replicas; relevant only for dynamic strategies.
    pub mode: Mode,
    /// Total number of replicas to place.
    pub replicas: i32,
    /// Replicas that already run on the selected clusters.
    pub assigned: i32,
}

impl AttemptExplanation {
    pub(super) fn note_candidates(
        &mut self,
        feasible: Candidates<'_>,
        ranked: &[Candidate],
        scores: &[PolicyScores],
        estimates: &Estimates,
    ) {
        let explain = |candidate: &Candidate| {
            let position = feasible.rows().binary_search(&candidate.row).ok();
            let of = |estimates: &Option<Vec<i32>>| estimates.as_ref()?.get(position?).copied();
            let score = |policy: &PolicyScores| Some((policy.policy.name.clone(), *policy.scores.get(position?)?));
            CandidateExplanation {
                cluster: feasible.snapshot().name(candidate.row).to_owned(),
                scores: scores.iter().filter_map(score).collect(),
                score: candidate.score,
                general_estimate: of(&estimates.general),
                accurate_estimate: of(&estimates.accurate),
                allocatable: candidate.allocatable,
                available: candidate.available,
                overflow: candidate.overflow,
                selected: false,
                weight: None,
            }
        };
        self.candidates = ranked.iter().map(explain).collect();
    }

    /// Marks the selected clusters and sets their weights.
    pub(super) fn note_selected<'a>(&mut self, selected: impl Iterator<Item = (&'a str, Option<i64>)>) {
        let selected: BTreeMap<&str, Option<i64>> = selected.collect();
        for candidate in &mut self.candidates {
            if let Some(weight) = selected.get(candidate.cluster.as_str()) {
                candidate.selected = true;
                candidate.weight = *weight;
            }
        }
    }

    pub(super) fn conclude(&mut self, rejections: &Rejections, result: &Result<Vec<TargetCluster>, ScheduleError>) {
        self.terminating = rejections.terminating();
        self.rejected = rejections
            .iter()
            .map(|(name, attribution)| (name.to_owned(), attribution.clone()))
            .collect();
        match result {
            Ok(targets) => self.targets = Some(targets.clone()),
            Err(error) => self.error = Some(error.to_string()),
        }
    }
}
