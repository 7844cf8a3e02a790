//! Capacity estimation: available replicas per cluster (Karmada: `core/util.go:calAvailableReplicas`).
//!
//! There are two estimators. The general one uses the reported status of clusters (`summary`, `grades`, `sets`). The
//! results of the accurate one are part of the input. The smaller result counts.

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
pub use accurate::{AccurateEstimates, EstimateRequest, estimate_request};
pub use assumed::{ASSUMPTION_TTL_S, AssumedWorkload, Assumptions};

/// Result of an estimator without an estimate.
const CANNOT_TELL: i32 = -1;

/// Workload to place, as estimators see it.
#[derive(Clone, Copy, Debug)]
pub enum Workload<'a> {
    /// Replicas of a pod template with these requests.
    Replicas(Option<&'a BTreeMap<String, String>>),
    /// Complete sets of these components.
    Sets(&'a [Component]),
}

/// Inputs of an estimate besides the clusters.
#[derive(Clone, Copy, Debug)]
pub struct Estimation<'a> {
    /// Workload to place.
    pub workload: Workload<'a>,
    /// Scheduler options.
    pub options: &'a SchedulerOptions,
    /// Workloads recently placed on each cluster and not yet in its summary.
    pub assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
}

/// Returns the result of the general estimator for each row, in order.
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

/// Inputs of [`available`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Availability<'a> {
    pub(super) spec: &'a BindingSpec,
    pub(super) placement: &'a Placement,
    pub(super) options: &'a SchedulerOptions,
    pub(super) assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
    pub(super) accurate: Option<&'a AccurateEstimates>,
}

/// Additional replicas (or sets) that each candidate can take, with the results of both estimators.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimates {
    pub(super) available: Vec<i32>,
    pub(super) general: Option<Vec<i32>>,
    pub(super) accurate: Option<Vec<i32>>,
}

/// Runs the estimators for all candidates.
pub(super) fn available(input: &Availability<'_>, clusters: Candidates<'_>) -> Result<Estimates, ScheduleError> {
    let spec = input.spec;
    let mut available = vec![i32::MAX; clusters.len()];
    if spec.replicas == 0 && spec.components.is_empty() {
        return Ok(Estimates {
            available,
            ..Estimates::default()
        });
    }
    let parsed;
    let workload = if components::placed_as_sets(spec, input.placement, input.options) {
        parsed = components::parse(spec)?;
        Workload::Sets(&parsed)
    } else {
        Workload::Replicas(
            spec.replica_requirements
                .as_ref()
                .map(|requirements| &requirements.resource_request),
        )
    };
    let estimation = Estimation {
        workload,
        options: input.options,
        assumed: input.assumed,
    };
    let general = general(&estimation, clusters.snapshot(), clusters.rows())?;
    merge(&mut available, &general);
    let accurate = input.accurate.and_then(|estimates| all_answers(estimates, clusters));
    if let Some(answers) = &accurate {
        merge(&mut available, answers);
    }
    for amount in available.iter_mut().filter(|amount| **amount == i32::MAX) {
        *amount = spec.replicas;
    }
    Ok(Estimates {
        available,
        general: Some(general),
        accurate,
    })
}

fn merge(available: &mut [i32], answers: &[i32]) {
    for (available, answer) in available.iter_mut().zip(answers) {
        if *answer != CANNOT_TELL {
            *available = (*available).min(*answer);
        }
    }
}

/// Returns the accurate results for all clusters. A single failure discards the results of all clusters.
fn all_answers(estimates: &AccurateEstimates, clusters: Candidates<'_>) -> Option<Vec<i32>> {
    let answer = |name: &str| estimates.0.get(name)?.as_ref().ok().copied();
    clusters.iter().map(|cluster| answer(&cluster.name)).collect()
}
