//! How a scheduling result came about, as data with names in it. It is made only when somebody asks
//! ([`decide_explained`](super::decide_explained)); what the messages of every decision need is in
//! [`Rejections`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ScheduleError;
use super::assign::Strategy;
use super::candidate::Candidate;
use super::capacity::Estimates;
use super::divide::Mode;
use super::region::RegionChoice;
use super::rejections::Rejections;
use crate::combine::{Because, PolicyScores};
use crate::model::TargetCluster;
use crate::snapshot::Candidates;

/// How a scheduling result came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanation {
    /// One for each affinity group that was tried, in order; a single one when the placement has no groups.
    pub attempts: Vec<AttemptExplanation>,
}

/// One attempt: filter, score, estimate, select, assign. What it did not come to is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptExplanation {
    /// The affinity group; absent when the placement has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity_name: Option<String>,
    /// Clusters that are being removed and were not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminating: Vec<String>,
    /// Who rejected a cluster first, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, Because>,
    /// The clusters that fit, in the order of selection: overflow order, score, room, name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateExplanation>,
    /// By which rule some of them were selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionRule>,
    /// Regions that were weighed against each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionChoice>,
    /// How replicas were divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<DivisionExplanation>,
    /// The result; absent when the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetCluster>>,
    /// Why the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is known of a cluster that fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateExplanation {
    /// Its name.
    pub cluster: String,
    /// What each score policy gave it, before the policy's weight.
    pub scores: BTreeMap<String, i64>,
    /// Weighted sum of the scores.
    pub score: i64,
    /// What the general estimator says that there is room for; absent when nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub general_estimate: Option<i32>,
    /// What the accurate estimator says; absent when there is none, or one of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accurate_estimate: Option<i32>,
    /// Replicas it has room for in addition to what it runs.
    pub allocatable: i32,
    /// Replicas it has room for, those of this workload included.
    pub available: i64,
    /// 0 for a cluster of the affinity group itself, then the number of its overflow entry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflow: u32,
    /// Whether it was selected.
    pub selected: bool,
    /// What it counts for when replicas are divided by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// By which rule clusters were selected among those that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SelectionRule {
    /// All of them: there are no spread constraints, or static weights ignore them.
    Everything,
    /// The first of them, swapped for larger ones where that is needed to have room for all replicas.
    ByCluster {
        /// Fewest clusters.
        min: i64,
        /// Most clusters.
        max: i64,
    },
    /// The best combination of regions, then the first cluster of each, then the best of the others.
    ByRegion {
        /// Fewest regions.
        regions_min: i64,
        /// Most regions.
        regions_max: i64,
        /// Fewest clusters.
        clusters_min: i64,
        /// Most clusters.
        clusters_max: i64,
    },
}

/// How replicas were divided, and why so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DivisionExplanation {
    /// What the placement asks for.
    pub strategy: Strategy,
    /// Whether what runs was left where it is; matters to dynamic strategies only.
    pub mode: Mode,
    /// What was to be placed in all.
    pub replicas: i32,
    /// What the selected clusters run already.
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

    /// Marks the clusters with these names and weights.
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
        self.rejected = rejections.iter().map(|(name, because)| (name.to_owned(), because.clone())).collect();
        match result {
            Ok(targets) => self.targets = Some(targets.clone()),
            Err(error) => self.error = Some(error.to_string()),
        }
    }
}
