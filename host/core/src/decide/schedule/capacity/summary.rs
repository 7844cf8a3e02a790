//! Capacity for replicas of one pod template, by resource summary (Karmada: `estimator/client/general.go`).

use std::collections::BTreeMap;

use super::assumed::Deduction;
use super::grades::PerNode;
use super::request::{self, Amount};
use super::{AssumedWorkload, Estimation};
use crate::decide::schedule::ScheduleError;
use crate::snapshot::{ClusterSnapshot, ModelColumn, ResourceColumn};

/// Returns one estimate per row. As in Karmada, results have 32 bits and very large numbers wrap around.
pub(super) fn estimate(
    estimation: &Estimation<'_>,
    request: Option<&BTreeMap<String, String>>,
    snapshot: &ClusterSnapshot,
    rows: &[u32],
) -> Result<Vec<i32>, ScheduleError> {
    let amounts = request.map(request::parse).transpose()?;
    let capacity = snapshot.capacity();
    let positive = amounts.iter().flatten().filter(|amount| amount.is_positive());
    let columns: Vec<_> = positive
        .map(|amount| Column::new(amount, capacity.resource(&amount.resource)))
        .collect();
    let mut per_node = PerNode::new(amounts.as_deref().unwrap_or_default(), capacity.definitions());
    let mut replicas = |row: u32| {
        let assumed = assumed_on(estimation, snapshot, row);
        let deduction = if estimation.options.overcommit_protection {
            Deduction::of(assumed)?
        } else {
            Deduction::default()
        };
        let Some(pods) = capacity.pods(row) else { return Ok(0) };
        let room = pods.wrapping_sub(deduction.pods);
        if room <= 0 {
            return Ok(0);
        }
        if amounts.is_none() {
            return Ok(room as i32);
        }
        if let ModelColumn::Counts { definition, nodes } = capacity.models(row)
            && estimation.options.resource_models
        {
            return Ok(per_node.replicas(definition, nodes, assumed)?.min(room) as i32);
        }
        let room = columns
            .iter()
            .map(|column| column.fitting(row, &deduction))
            .fold(room, i64::min);
        Ok(room as i32)
    };
    rows.iter().map(|row| replicas(*row)).collect()
}

/// Returns the workloads recently placed on a cluster.
pub(super) fn assumed_on<'a>(
    estimation: &Estimation<'a>,
    snapshot: &ClusterSnapshot,
    row: u32,
) -> &'a [AssumedWorkload] {
    if estimation.assumed.is_empty() {
        return &[];
    }
    estimation.assumed.get(snapshot.name(row)).map_or(&[], Vec::as_slice)
}

/// Free amounts of one resource, and the request of a pod for it.
struct Column<'a> {
    amount: &'a Amount,
    divisor: i64,
    offered: &'a [bool],
    free: &'a [i64],
}

impl<'a> Column<'a> {
    fn new(amount: &'a Amount, column: Option<&'a ResourceColumn>) -> Self {
        let free = column.map_or(&[][..], |column| {
            if amount.resource == "cpu" {
                &column.millis
            } else {
                &column.units
            }
        });
        let offered = column.map_or(&[][..], |column| &column.offered);
        Self {
            amount,
            divisor: amount.divisor(),
            offered,
            free,
        }
    }

    /// Returns how many times the request fits into the free amount; 0 if the resource is not offered.
    fn fitting(&self, row: u32, deduction: &Deduction) -> i64 {
        let row = row as usize;
        let (Some(true), Some(free)) = (self.offered.get(row), self.free.get(row)) else {
            return 0;
        };
        let free = free.saturating_sub(deduction.of_resource(&self.amount.resource));
        if free <= 0 { 0 } else { free / self.divisor }
    }
}
