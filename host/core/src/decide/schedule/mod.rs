//! Where a binding runs: filter → score → select → assign, filters and scores through the plugin port.
//!
//! Covered so far: Duplicated, Divided with static weights, cluster affinity and ordered affinity groups, spread
//! by cluster. The rest of Karmada's scheduler answers [`ScheduleError::Unsupported`], which keeps what runs.

mod assign;
mod select;
mod trigger;
pub mod webster;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::call::{FilterCall, ScoreCall};
use crate::combine::{self, Because, FilterOutcome, Remarks, ScoreOutcome};
use crate::model::{Binding, Cluster, Condition, ConditionStatus, Placement, TargetCluster};
use crate::policy::PolicySet;
use crate::time::Time;
use select::Candidate;
pub use trigger::{Trigger, reschedule_required, trigger};

/// What scheduling one binding depends on.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingSnapshot<'a> {
    /// The binding.
    pub binding: &'a Binding,
    /// Every cluster, in order of name, terminating ones included.
    pub clusters: &'a [Arc<Cluster>],
    /// The time to reason with.
    pub now: Time,
}

/// Why nothing was scheduled. The text is Karmada's where Karmada has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No cluster passed the filters: the result is cleared, and only a change brings another attempt.
    #[error("{0}")]
    NoClusterFit(String),
    /// The selection failed: the result stays, and the attempt is repeated.
    #[error("failed to select clusters: {0}")]
    Select(String),
    /// The assignment failed: the result stays, and the attempt is repeated.
    #[error("failed to assign replicas: {0}")]
    Assign(String),
    /// This scheduler cannot do that yet: the result stays, and the attempt is repeated.
    #[error("{0} are not supported by this scheduler yet")]
    Unsupported(String),
    /// The binding has no placement.
    #[error("the binding has no placement")]
    NoPlacement,
}

impl ScheduleError {
    /// The `Scheduled` condition for this error (Karmada: `helper.go:getConditionByError`).
    pub fn condition(&self, now: Time) -> Condition {
        let reason = match self {
            Self::NoClusterFit(_) => "NoClusterFit",
            Self::Select(_) | Self::Assign(_) | Self::Unsupported(_) | Self::NoPlacement => "SchedulerError",
        };
        Condition::new("Scheduled", ConditionStatus::False, reason, self.to_string(), now)
    }
}

/// The `Scheduled` condition after success.
pub fn success_condition(now: Time) -> Condition {
    let message = "Binding has been scheduled successfully.";
    Condition::new("Scheduled", ConditionStatus::True, "Success", message, now)
}

/// How a scheduling result came about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The affinity group that was used, if the placement has groups.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub affinity_name: String,
    /// Who rejected a cluster first, and why, by cluster.
    pub rejected: BTreeMap<String, Because>,
    /// Scores of the feasible clusters, by cluster, then by policy.
    pub scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// The selected clusters, in order.
    pub selected: Vec<String>,
}

/// Clusters named for one reason; more are counted.
const NAMED_MAX: usize = 3;

impl Explanation {
    /// Who was rejected and why, in one line: `member1, member4: <reason>; 40 clusters: <another>`.
    pub fn rejections(&self) -> String {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (cluster, because) in &self.rejected {
            by_reason.entry(&because.reason.message).or_default().push(cluster);
        }
        let line = |(reason, clusters): (&str, Vec<&str>)| {
            let who =
                if clusters.len() > NAMED_MAX { format!("{} clusters", clusters.len()) } else { clusters.join(", ") };
            format!("{who}: {reason}")
        };
        by_reason.into_iter().map(line).collect::<Vec<_>>().join("; ")
    }
}

/// What scheduling came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulePlan {
    /// The new `spec.clusters`.
    pub result: Result<Vec<TargetCluster>, ScheduleError>,
    /// The affinity group to observe from now on; absent when the placement has none or all failed.
    pub affinity_name: Option<String>,
    /// How it came about; for several groups, of the last one tried.
    pub explanation: Explanation,
    /// Plugins that did not answer.
    pub remarks: Remarks,
}

/// Schedules one binding, whatever its trigger. Groups of clusters are tried from the observed one onwards and
/// all-or-nothing; if all fail, the first one's error counts.
pub fn decide(snapshot: SchedulingSnapshot<'_>, policies: &PolicySet) -> SchedulePlan {
    let mut plan = SchedulePlan {
        result: Err(ScheduleError::NoPlacement),
        affinity_name: None,
        explanation: Explanation::default(),
        remarks: Remarks::default(),
    };
    let Some(placement) = &snapshot.binding.spec.placement else { return plan };
    let Some(terms) = placement.cluster_affinities.as_deref().filter(|_| placement.cluster_affinity.is_none()) else {
        plan.result = attempt(snapshot, placement, policies, &mut plan);
        return plan;
    };
    let observed = &snapshot.binding.status.scheduler_observed_affinity_name;
    let first = if reschedule_required(snapshot.binding) {
        0
    } else {
        terms.iter().position(|term| term.affinity_name == *observed).unwrap_or(0)
    };
    let mut first_error = None;
    for term in terms.iter().skip(first) {
        let mut binding = snapshot.binding.clone();
        binding.status.scheduler_observed_affinity_name.clone_from(&term.affinity_name);
        plan.explanation = Explanation { affinity_name: term.affinity_name.clone(), ..Explanation::default() };
        match attempt(SchedulingSnapshot { binding: &binding, ..snapshot }, placement, policies, &mut plan) {
            Ok(targets) => {
                plan.result = Ok(targets);
                plan.affinity_name = Some(term.affinity_name.clone());
                return plan;
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    let no_terms = || ScheduleError::NoClusterFit("0/0 clusters are available: no cluster exists.".to_owned());
    plan.result = Err(first_error.unwrap_or_else(no_terms));
    plan
}

fn attempt(
    snapshot: SchedulingSnapshot<'_>,
    placement: &Placement,
    policies: &PolicySet,
    plan: &mut SchedulePlan,
) -> Result<Vec<TargetCluster>, ScheduleError> {
    let SchedulingSnapshot { binding, clusters, now } = snapshot;
    let present: Vec<_> = clusters.iter().filter(|cluster| !cluster.is_terminating()).cloned().collect();
    let filtered = combine::filter(policies, FilterCall { binding, clusters: &present, now });
    let feasible: Vec<_> = present
        .iter()
        .zip(&filtered.rejections)
        .filter(|(_, rejection)| rejection.is_none())
        .map(|(cluster, _)| Arc::clone(cluster))
        .collect();
    let diagnosis = explain_filter(&present, filtered, plan);
    if feasible.is_empty() {
        return Err(ScheduleError::NoClusterFit(no_cluster_fit(clusters.len(), diagnosis)));
    }
    let scored = combine::score(policies, ScoreCall { binding, clusters: &feasible, now });
    let candidates = feasible.iter().zip(&scored.totals).map(|(cluster, score)| Candidate {
        cluster: Arc::clone(cluster),
        score: *score,
        available: i64::from(binding.spec.replicas),
    });
    let candidates = candidates.collect();
    explain_scores(&feasible, scored, plan);
    let selected = select::select(binding, placement, candidates)?;
    plan.explanation.selected = selected.iter().map(|candidate| candidate.cluster.name.clone()).collect();
    assign::assign(binding, placement, &selected)
}

/// Moves the outcome into the explanation and returns how often each reason was given.
fn explain_filter(
    present: &[Arc<Cluster>],
    outcome: FilterOutcome,
    plan: &mut SchedulePlan,
) -> BTreeMap<String, usize> {
    let mut diagnosis = BTreeMap::new();
    for (cluster, rejection) in present.iter().zip(outcome.rejections) {
        if let Some(because) = rejection {
            *diagnosis.entry(because.reason.message.clone()).or_default() += 1;
            plan.explanation.rejected.insert(cluster.name.clone(), because);
        }
    }
    plan.remarks.extend(outcome.remarks);
    diagnosis
}

fn explain_scores(feasible: &[Arc<Cluster>], outcome: ScoreOutcome, plan: &mut SchedulePlan) {
    for by_policy in outcome.by_policy {
        for (cluster, score) in feasible.iter().zip(by_policy.scores) {
            let scores = plan.explanation.scores.entry(cluster.name.clone()).or_default();
            scores.insert(by_policy.policy.name.clone(), score);
        }
    }
    plan.remarks.extend(outcome.remarks);
}

/// Karmada's text: a histogram of reasons, sorted as strings.
fn no_cluster_fit(clusters: usize, diagnosis: BTreeMap<String, usize>) -> String {
    if clusters == 0 || diagnosis.is_empty() {
        return format!("0/{clusters} clusters are available: no cluster exists.");
    }
    let mut reasons: Vec<_> = diagnosis.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.sort();
    format!("0/{clusters} clusters are available: {}.", reasons.join(", "))
}
