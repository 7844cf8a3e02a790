//! How many replicas each cluster has room for (Karmada: `core/util.go:calAvailableReplicas`).
//!
//! Two estimators: the general one, from what clusters report of themselves (`summary`, `grades`, `sets`),
//! and the accurate one, whose answers are part of the input. The smaller answer counts.

mod accurate;
mod assumed;
mod grades;
mod nodes;
mod request;
mod sets;
mod summary;

use std::collections::BTreeMap;

use super::ScheduleError;
use super::components;
use super::options::SchedulerOptions;
use crate::model::Component;
use crate::model::{BindingSpec, Placement};
use crate::snapshot::{Candidates, ClusterSnapshot};
pub use accurate::{AccurateEstimates, EstimateQuestion, estimate_question};
pub use assumed::{ASSUMPTION_TTL_S, AssumedWorkload, Assumptions};

/// What an estimator answers when it cannot tell.
const CANNOT_TELL: i32 = -1;

/// What is to be placed, as estimators see it.
#[derive(Clone, Copy, Debug)]
pub enum Workload<'a> {
    /// Replicas of one pod template.
    Replicas(Option<&'a BTreeMap<String, String>>),
    /// Sets of these components.
    Sets(&'a [Component]),
}

/// What an estimate depends on besides the clusters.
#[derive(Clone, Copy, Debug)]
pub struct Estimation<'a> {
    /// What is to be placed.
    pub workload: Workload<'a>,
    /// Settings.
    pub options: &'a SchedulerOptions,
    /// What was placed on each cluster a moment ago and is not in its summary yet.
    pub assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
}

/// What the general estimator answers for each of the rows, in order.
pub fn general(
    estimation: &Estimation<'_>,
    snapshot: &ClusterSnapshot,
    rows: &[u32],
) -> Result<Vec<i32>, ScheduleError> {
    match estimation.workload {
        Workload::Replicas(request) => summary::estimate(estimation, request, snapshot, rows),
        Workload::Sets(components) => sets::estimate(estimation, components, snapshot, rows),
    }
}

/// The input of [`available`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Availability<'a> {
    pub(super) spec: &'a BindingSpec,
    pub(super) placement: &'a Placement,
    pub(super) options: &'a SchedulerOptions,
    pub(super) assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
    pub(super) accurate: Option<&'a AccurateEstimates>,
}

/// How many more replicas (or sets) each candidate takes, and who said so.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimates {
    pub(super) available: Vec<i32>,
    pub(super) general: Option<Vec<i32>>,
    pub(super) accurate: Option<Vec<i32>>,
}

/// Asks the estimators about each candidate.
pub(super) fn available(input: &Availability<'_>, clusters: Candidates<'_>) -> Result<Estimates, ScheduleError> {
    let spec = input.spec;
    let mut available = vec![i32::MAX; clusters.len()];
    if spec.replicas == 0 && spec.components.is_empty() {
        return Ok(Estimates { available, ..Estimates::default() });
    }
    let parsed;
    let workload = if components::placed_as_sets(spec, input.placement, input.options) {
        parsed = components::parse(spec)?;
        Workload::Sets(&parsed)
    } else {
        Workload::Replicas(spec.replica_requirements.as_ref().map(|requirements| &requirements.resource_request))
    };
    let estimation = Estimation { workload, options: input.options, assumed: input.assumed };
    let general = general(&estimation, clusters.snapshot(), clusters.rows())?;
    merge(&mut available, &general);
    let accurate = input.accurate.and_then(|estimates| all_answers(estimates, clusters));
    if let Some(answers) = &accurate {
        merge(&mut available, answers);
    }
    for amount in available.iter_mut().filter(|amount| **amount == i32::MAX) {
        *amount = spec.replicas;
    }
    Ok(Estimates { available, general: Some(general), accurate })
}

fn merge(available: &mut [i32], answers: &[i32]) {
    for (available, answer) in available.iter_mut().zip(answers) {
        if *answer != CANNOT_TELL {
            *available = (*available).min(*answer);
        }
    }
}

/// The accurate answers for all clusters. One failure voids the round: the others' answers are not used either.
fn all_answers(estimates: &AccurateEstimates, clusters: Candidates<'_>) -> Option<Vec<i32>> {
    let answer = |name: &str| estimates.0.get(name)?.as_ref().ok().copied();
    clusters.iter().map(|cluster| answer(&cluster.name)).collect()
}
