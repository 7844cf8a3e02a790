//! Replicas of one pod template, from grades of nodes.
//!
//! Karmada makes a list of virtual nodes and puts one replica after the other on the first node with room. All
//! replicas being alike, every node ends up with as many as fit, so they are counted without the list: what fits
//! on one node of a grade, times the nodes. Only if other workloads go first are nodes simulated.

use std::sync::Arc;

use super::AssumedWorkload;
use super::nodes::{Nodes, Shape};
use super::request::Amount;
use crate::decide::schedule::ScheduleError;
use crate::snapshot::Grades;

/// Karmada stops to place replicas there.
const PLACED_MAX: i64 = i32::MAX as i64;

/// How many replicas fit on one node, for each definition of grades and each of its grades.
pub(super) struct PerNode<'a> {
    shape: Shape,
    definitions: &'a [Arc<Grades>],
    fitting: Vec<Option<Vec<i64>>>,
}

impl<'a> PerNode<'a> {
    pub(super) fn new(request: &[Amount], definitions: &'a [Arc<Grades>]) -> Self {
        Self { shape: Shape::new(request), definitions, fitting: vec![None; definitions.len()] }
    }

    /// Replicas that fit on a cluster with these nodes, after what was placed there a moment ago.
    pub(super) fn replicas(
        &mut self,
        definition: u32,
        nodes: &[i64],
        assumed: &[AssumedWorkload],
    ) -> Result<i64, ScheduleError> {
        let index = definition as usize;
        let Some(grades) = self.definitions.get(index) else { return Ok(0) };
        if !assumed.is_empty() {
            let mut nodes = Nodes::new(grades, nodes);
            nodes.place_assumed(assumed)?;
            return Ok(nodes.fitting(&self.shape).min(PLACED_MAX));
        }
        let shape = &self.shape;
        let fitting = self.fitting[index]
            .get_or_insert_with(|| grades.iter().map(|grade| shape.fits_on_empty(&grade.capacity)).collect());
        let replicas = fitting.iter().zip(nodes).map(|(fitting, nodes)| fitting.saturating_mul(*nodes));
        Ok(replicas.fold(0, i64::saturating_add).min(PLACED_MAX))
    }
}
