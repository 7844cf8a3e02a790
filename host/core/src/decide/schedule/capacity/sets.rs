//! Complete component sets (Karmada: `estimator/client/general.go:MaxAvailableComponentSets`).

use std::collections::BTreeMap;

use super::Estimation;
use super::assumed::SetDeduction;
use super::nodes::Nodes;
use super::request::{self, Amount};
use super::summary::assumed_on;
use crate::decide::schedule::ScheduleError;
use crate::model::Component;
use crate::snapshot::{Capacity, ClusterSnapshot, ModelColumn};

/// Returns one estimate per row.
pub(super) fn estimate(
    estimation: &Estimation<'_>,
    components: &[Component],
    snapshot: &ClusterSnapshot,
    rows: &[u32],
) -> Result<Vec<i32>, ScheduleError> {
    let need = needed_per_set(components)?;
    let pods_per_set = components
        .iter()
        .fold(0_i64, |sum, component| sum + i64::from(component.replicas));
    let capacity = snapshot.capacity();
    let sets = |row: u32| -> Result<i32, ScheduleError> {
        let assumed = assumed_on(estimation, snapshot, row);
        let taken = if estimation.options.overcommit_protection {
            SetDeduction::of(assumed)?
        } else {
            SetDeduction::default()
        };
        let Some(pods) = capacity.pods(row).filter(|pods| *pods > 0) else {
            return Ok(0);
        };
        let room = pods.wrapping_sub(taken.pods).max(0);
        if room == 0 || pods_per_set <= 0 {
            return Ok(room as i32);
        }
        let mut bound = (room / pods_per_set) as i32;
        for (resource, amount) in need.iter().filter(|(_, amount)| **amount > 0) {
            let free = free(capacity, resource, row).wrapping_sub(taken.of_resource(resource));
            if free <= 0 {
                return Ok(0);
            }
            bound = bound.min((free / amount) as i32);
        }
        if let ModelColumn::Counts { definition, nodes } = capacity.models(row)
            && estimation.options.resource_models
            && let Some(grades) = capacity.definitions().get(definition as usize)
        {
            let mut nodes = Nodes::new(grades, nodes);
            nodes.place_assumed(assumed)?;
            bound = bound.min(nodes.place_sets(components, bound)?);
        }
        Ok(bound)
    };
    rows.iter().map(|row| sets(*row)).collect()
}

/// Returns the requests of a whole set by resource. Sums are 64 bits wide and wrap around as in Go. Each amount
/// counts in thousandths if written in decimal format and in units if written in binary format. A set that mixes both
/// is sized incorrectly, as in Karmada.
fn needed_per_set(components: &[Component]) -> Result<BTreeMap<String, i64>, ScheduleError> {
    let mut need: BTreeMap<String, i64> = BTreeMap::new();
    for component in components {
        let request = component
            .replica_requirements
            .as_ref()
            .map(|needs| &needs.resource_request);
        let amounts: Vec<Amount> = request.map(request::parse).transpose()?.unwrap_or_default();
        for amount in amounts {
            let of_component = amount.set_amount().wrapping_mul(component.replicas.into());
            let sum = need.entry(amount.resource).or_default();
            *sum = sum.wrapping_add(of_component);
        }
    }
    Ok(need)
}

fn free(capacity: &Capacity, resource: &str, row: u32) -> i64 {
    let index = row as usize;
    let Some(column) = capacity
        .resource(resource)
        .filter(|column| column.offered.get(index) == Some(&true))
    else {
        return 0;
    };
    let amounts = if column.binary.get(index) == Some(&true) {
        &column.units
    } else {
        &column.millis
    };
    amounts.get(index).copied().unwrap_or(0)
}
