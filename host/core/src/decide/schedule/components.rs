//! Multi-component workloads (Karmada: feature gate MultiplePodTemplatesScheduling, `core/estimation.go`).

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::ScheduleError;
use super::options::SchedulerOptions;
use crate::model::{BindingSpec, Component, Placement};

/// Parses `spec.components`.
pub(super) fn parse(spec: &BindingSpec) -> Result<Vec<Component>, ScheduleError> {
    let parse = |(index, value): (usize, &Value)| {
        Component::deserialize(value)
            .map_err(|error| ScheduleError::BadInput(format!("spec.components[{index}] is not a component: {error}")))
    };
    spec.components.iter().enumerate().map(parse).collect()
}

/// Returns true if the workload is placed as complete sets of its components on one cluster.
pub(super) fn placed_as_sets(spec: &BindingSpec, placement: &Placement, options: &SchedulerOptions) -> bool {
    let one_cluster = placement.spread_constraints.iter().any(|constraint| {
        constraint.spread_by_field == "cluster" && (constraint.min_groups, constraint.max_groups) == (1, 1)
    });
    options.multiple_pod_templates && !spec.components.is_empty() && one_cluster
}

/// Returns the components in the format of a scheduling result.
pub(super) fn as_assigned(components: &[Component]) -> Vec<Value> {
    components
        .iter()
        .map(|component| json!({"name": component.name, "replicas": component.replicas}))
        .collect()
}
