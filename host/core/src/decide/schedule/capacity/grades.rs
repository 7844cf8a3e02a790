//! Capacity for replicas of one pod template, by node grades.
//!
//! Karmada lists virtual nodes and places one replica at a time on the first node with capacity. As all replicas are
//! identical, every node gets as many as fit. Their number is the capacity of one node of a grade times the number of
//! nodes, without the list. Nodes are simulated only if other workloads are placed first.

use std::sync::Arc;

use super::AssumedWorkload;
use super::nodes::{Nodes, Shape};
use super::request::Amount;
use crate::decide::schedule::ScheduleError;
use crate::snapshot::Grades;

/// Maximum number of replicas that Karmada places.
const PLACED_MAX: i64 = i32::MAX as i64;

/// Number of replicas that fit on one node, by grade definition and grade.
pub(super) struct PerNode<'a> {
    shape: Shape,
    definitions: &'a [Arc<Grades>],
    fitting: Vec<Option<Vec<i64>>>,
}

impl<'a> PerNode<'a> {
    pub(super) fn new(request: &[Amount], definitions: &'a [Arc<Grades>]) -> Self {
        Self {
            shape: Shape::new(request),
            definitions,
            fitting: vec![None; definitions.len()],
        }
    }

    /// Returns the replicas that fit on a cluster with these nodes, after its recently placed workloads.
    pub(super) fn replicas(
        &mut self,
        definition: u32,
        nodes: &[i64],
        assumed: &[AssumedWorkload],
    ) -> Result<i64, ScheduleError> {
        let index = definition as usize;
        let Some(grades) = self.definitions.get(index) else {
            return Ok(0);
        };
        if !assumed.is_empty() {
            let mut nodes = Nodes::new(grades, nodes);
            nodes.place_assumed(assumed)?;
            return Ok(nodes.fitting(&self.shape).min(PLACED_MAX));
        }
        let shape = &self.shape;
        let fitting = self.fitting[index].get_or_insert_with(|| {
            grades
                .iter()
                .map(|grade| shape.fits_on_empty(&grade.capacity))
                .collect()
        });
        let replicas = fitting
            .iter()
            .zip(nodes)
            .map(|(fitting, nodes)| fitting.saturating_mul(*nodes));
        Ok(replicas.fold(0, i64::saturating_add).min(PLACED_MAX))
    }
}
