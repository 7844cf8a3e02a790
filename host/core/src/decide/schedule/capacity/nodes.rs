//! First-fit simulation of virtual nodes (Karmada: `estimator/scheduling_simulator_components.go`). Adjacent
//! identical nodes form one run, so the cost depends on the number of distinct nodes, not on their total.

use std::collections::BTreeMap;

use super::AssumedWorkload;
use super::request::{self, Amount};
use crate::decide::schedule::ScheduleError;
use crate::model::Component;
use crate::snapshot::Grades;

/// Pod slots of a virtual node.
const PODS_PER_NODE: i64 = 110;

/// Resources of one pod on a node: thousandths of cpu, units of all others, plus one pod slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    amounts: BTreeMap<String, i64>,
}

impl Shape {
    pub(super) fn new(request: &[Amount]) -> Self {
        let counted = request
            .iter()
            .filter(|amount| amount.is_positive() && is_counted(&amount.resource));
        Self {
            amounts: counted
                .map(|amount| (amount.resource.clone(), amount.divisor()))
                .collect(),
        }
    }

    fn of(component: &Component) -> Result<Self, ScheduleError> {
        let request = component
            .replica_requirements
            .as_ref()
            .map(|needs| request::parse(&needs.resource_request));
        Ok(Self::new(&request.transpose()?.unwrap_or_default()))
    }

    /// Returns the number of such pods that fit on an empty node.
    pub(super) fn fits_on_empty(&self, capacity: &BTreeMap<String, i64>) -> i64 {
        self.fits(capacity, PODS_PER_NODE)
    }

    fn fits(&self, free: &BTreeMap<String, i64>, pods: i64) -> i64 {
        let of_resource = |(resource, amount): (&String, &i64)| free.get(resource).map_or(0, |free| free / amount);
        self.amounts.iter().map(of_resource).fold(pods, i64::min).max(0)
    }
}

/// Returns true if the simulation counts the resource: native and extended resources, huge pages and volumes.
fn is_counted(resource: &str) -> bool {
    match resource {
        "cpu" | "memory" | "ephemeral-storage" => true,
        _ if resource.contains("kubernetes.io/") => true,
        _ if resource.contains('/') => !resource.starts_with("requests."),
        _ => resource.starts_with("hugepages-") || resource.starts_with("attachable-volumes-"),
    }
}

/// Nodes in order, as runs of identical nodes.
pub(super) struct Nodes {
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    nodes: i64,
    free: BTreeMap<String, i64>,
    pods: i64,
}

impl Run {
    fn take(&self, nodes: i64, shape: &Shape, pods: i64) -> Self {
        let mut taken = Self { nodes, ..self.clone() };
        for (resource, amount) in &shape.amounts {
            if let Some(free) = taken.free.get_mut(resource) {
                *free = free.saturating_sub(amount.saturating_mul(pods));
            }
        }
        taken.pods -= pods;
        taken
    }
}

impl Nodes {
    /// Creates empty nodes; `counts` has the number of nodes per grade.
    pub(super) fn new(grades: &Grades, counts: &[i64]) -> Self {
        let run = |(grade, nodes): (&crate::snapshot::Grade, &i64)| Run {
            nodes: *nodes,
            free: grade.capacity.clone(),
            pods: PODS_PER_NODE,
        };
        Self {
            runs: grades
                .iter()
                .zip(counts)
                .filter(|(_, nodes)| **nodes > 0)
                .map(run)
                .collect(),
        }
    }

    /// Returns the number of pods of one shape that fit.
    pub(super) fn fitting(&self, shape: &Shape) -> i64 {
        let of_run = |run: &Run| shape.fits(&run.free, run.pods).saturating_mul(run.nodes);
        self.runs.iter().map(of_run).fold(0, i64::saturating_add)
    }

    /// Places each workload once; a workload that does not fit keeps its placed pods.
    pub(super) fn place_assumed(&mut self, workloads: &[AssumedWorkload]) -> Result<(), ScheduleError> {
        for workload in workloads {
            let _ = self.place_set(&shapes(&workload.components)?);
        }
        Ok(())
    }

    /// Places complete sets, at most `bound`, and returns their number.
    pub(super) fn place_sets(&mut self, components: &[Component], bound: i32) -> Result<i32, ScheduleError> {
        let set = shapes(components)?;
        let mut placed = 0;
        while placed < bound && self.place_set(&set) {
            placed += 1;
        }
        Ok(placed)
    }

    fn place_set(&mut self, set: &[(Shape, i64)]) -> bool {
        set.iter().all(|(shape, pods)| self.place(shape, *pods))
    }

    /// Fills the first nodes with as many pods as fit. Returns true if all pods were placed.
    fn place(&mut self, shape: &Shape, pods: i64) -> bool {
        let mut remaining = pods.max(0);
        let mut runs = Vec::with_capacity(self.runs.len() + 2);
        for run in std::mem::take(&mut self.runs) {
            let per_node = if remaining > 0 {
                shape.fits(&run.free, run.pods)
            } else {
                0
            };
            if per_node == 0 {
                append(&mut runs, run);
                continue;
            }
            let full = (remaining / per_node).min(run.nodes);
            let partial = if full < run.nodes {
                remaining - full * per_node
            } else {
                0
            };
            remaining -= full * per_node + partial;
            let touched = full + i64::from(partial > 0);
            append(&mut runs, run.take(full, shape, per_node));
            append(&mut runs, run.take(touched - full, shape, partial));
            append(
                &mut runs,
                Run {
                    nodes: run.nodes - touched,
                    ..run
                },
            );
        }
        self.runs = runs;
        remaining == 0
    }
}

fn shapes(components: &[Component]) -> Result<Vec<(Shape, i64)>, ScheduleError> {
    components
        .iter()
        .map(|component| Ok((Shape::of(component)?, i64::from(component.replicas))))
        .collect()
}

/// Appends a run unless it is empty; merges it with the last run if both are identical.
fn append(runs: &mut Vec<Run>, run: Run) {
    if run.nodes == 0 {
        return;
    }
    match runs
        .last_mut()
        .filter(|last| last.pods == run.pods && last.free == run.free)
    {
        Some(last) => last.nodes += run.nodes,
        None => runs.push(run),
    }
}
