//! How a scheduling result came about, as data. It is kept in columns while deciding; names and texts are made
//! when somebody reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::assign::Strategy;
use super::candidate::Candidate;
use super::divide::Mode;
use super::region::RegionChoice;
use crate::combine::{Because, PolicyScores};
use crate::snapshot::ClusterSnapshot;

/// How a scheduling result came about.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The affinity group that was used, if the placement has groups.
    pub affinity_name: String,
    pub(super) clusters: Arc<ClusterSnapshot>,
    /// Rows that were asked about, and who rejected each first.
    pub(super) asked: Vec<u32>,
    pub(super) rejections: Vec<Option<Box<Because>>>,
    /// Rows that were scored, and what each policy gave them.
    pub(super) feasible: Vec<u32>,
    pub(super) scores: Vec<PolicyScores>,
    /// The feasible clusters in the order of selection.
    pub(super) ranked: Vec<Candidate>,
    /// Regions that were weighed against each other.
    pub regions: Vec<RegionChoice>,
    pub(super) selected: Vec<u32>,
    /// How replicas were divided; absent when it did not come to that.
    pub division: Option<DivisionChoice>,
}

/// How replicas were divided, and why so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DivisionChoice {
    /// What the placement asks for.
    pub strategy: Strategy,
    /// Whether what runs was left where it is; matters to dynamic strategies only.
    pub mode: Mode,
    /// What was to be placed in all.
    pub replicas: i32,
}

/// What is known of a feasible cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateExplanation {
    /// What each policy gave it.
    pub scores: BTreeMap<String, i64>,
    /// Sum of the scores.
    pub score: i64,
    /// Replicas it has room for in addition to what it runs.
    pub allocatable: i32,
    /// Replicas it has room for, those of this workload included.
    pub available: i64,
    /// 0 for a cluster of the affinity group itself, then the number of its overflow entry.
    #[serde(skip_serializing_if = "is_zero")]
    pub overflow: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Clusters named for one reason; more are counted.
const NAMED_MAX: usize = 3;

impl Explanation {
    /// Who rejected a cluster first, and why, in order of cluster.
    pub fn rejected(&self) -> impl Iterator<Item = (&str, &Because)> {
        let asked = self.asked.iter().zip(&self.rejections);
        asked.filter_map(|(row, because)| Some((self.clusters.name(*row), because.as_deref()?)))
    }

    /// The feasible clusters, in the order of selection.
    pub fn candidates(&self) -> impl Iterator<Item = (&str, CandidateExplanation)> {
        self.ranked.iter().map(|candidate| (self.clusters.name(candidate.row), self.explain(candidate)))
    }

    fn explain(&self, candidate: &Candidate) -> CandidateExplanation {
        let position = self.feasible.binary_search(&candidate.row).ok();
        let score = |policy: &PolicyScores| Some((policy.policy.name.clone(), *policy.scores.get(position?)?));
        CandidateExplanation {
            scores: self.scores.iter().filter_map(score).collect(),
            score: candidate.score,
            allocatable: candidate.allocatable,
            available: candidate.available,
            overflow: candidate.overflow,
        }
    }

    /// The selected clusters, in order.
    pub fn selected(&self) -> impl Iterator<Item = &str> {
        self.selected.iter().map(|row| self.clusters.name(*row))
    }

    /// Who was rejected and why, in one line: `member1, member4: <reason>; 40 clusters: <another>`.
    pub fn rejections(&self) -> String {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (cluster, because) in self.rejected() {
            by_reason.entry(&because.reason.message).or_default().push(cluster);
        }
        let line = |(reason, clusters): (&str, Vec<&str>)| {
            let who =
                if clusters.len() > NAMED_MAX { format!("{} clusters", clusters.len()) } else { clusters.join(", ") };
            format!("{who}: {reason}")
        };
        by_reason.into_iter().map(line).collect::<Vec<_>>().join("; ")
    }

    /// Karmada's text when nobody is left: a histogram of reasons, sorted as strings. It counts terminating clusters
    /// among all, but not among the reasons.
    pub(super) fn no_cluster_fits(&self) -> String {
        let all = self.clusters.len();
        let mut histogram: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, because) in self.rejected() {
            *histogram.entry(&because.reason.message).or_default() += 1;
        }
        if histogram.is_empty() {
            return format!("0/{all} clusters are available: no cluster exists.");
        }
        let mut reasons: Vec<_> = histogram.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        reasons.sort();
        format!("0/{all} clusters are available: {}.", reasons.join(", "))
    }
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            #[serde(skip_serializing_if = "str::is_empty")]
            affinity_name: &'a str,
            rejected: BTreeMap<&'a str, &'a Because>,
            candidates: BTreeMap<&'a str, CandidateExplanation>,
            #[serde(skip_serializing_if = "<[RegionChoice]>::is_empty")]
            regions: &'a [RegionChoice],
            selected: Vec<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            division: Option<DivisionChoice>,
        }
        let wire = Wire {
            affinity_name: &self.affinity_name,
            rejected: self.rejected().collect(),
            candidates: self.candidates().collect(),
            regions: &self.regions,
            selected: self.selected().collect(),
            division: self.division,
        };
        wire.serialize(serializer)
    }
}
