//! Defaults and validation of `spec.placement`
//! (Karmada: `pkg/util/helper/policy.go`, `pkg/util/validation/validation.go:ValidatePlacement`).

use std::collections::BTreeSet;

use bulkhead_core::model::{
    ClusterAffinity, ClusterAffinityTerm, Placement, ReplicaDivisionPreference, ReplicaScheduling,
    ReplicaSchedulingType, SelectorOperator, SpreadConstraint, Toleration,
};
use serde_json::Value;

use super::denied::Denied;
use super::label;
use crate::decode::decode;

const AFFINITY_NAME_BYTES_MAX: usize = 32;
const CLUSTER: &str = "cluster";
const SPREAD_FIELDS: [&str; 4] = [CLUSTER, "region", "zone", "provider"];

/// A constraint without field and label is by cluster, over at least one group.
pub(super) fn default_spread_constraints(constraints: &mut [SpreadConstraint]) {
    for constraint in constraints {
        if constraint.spread_by_field.is_empty() && constraint.spread_by_label.is_empty() {
            CLUSTER.clone_into(&mut constraint.spread_by_field);
        }
        if constraint.min_groups == 0 {
            constraint.min_groups = 1;
        }
    }
}

/// Divided without a preference is by weight.
pub(super) fn default_replica_scheduling(scheduling: &mut ReplicaScheduling) {
    if scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided {
        scheduling.replica_division_preference.get_or_insert(ReplicaDivisionPreference::Weighted);
    }
}

pub(super) fn validate(placement: &Placement, path: &str) -> Result<(), Denied> {
    if placement.cluster_affinity.is_some() && placement.cluster_affinities.is_some() {
        return Err(Denied::invalid(path, placement, "clusterAffinities cannot co-exist with clusterAffinity"));
    }
    if let Some(affinity) = &placement.cluster_affinity {
        validate_affinity(affinity, &format!("{path}.clusterAffinity"))?;
    }
    validate_affinity_terms(placement, &format!("{path}.clusterAffinities"))?;
    validate_tolerations(&placement.cluster_tolerations, &format!("{path}.clusterTolerations"))?;
    validate_spread_constraints(&placement.spread_constraints, &format!("{path}.spreadConstraints"))?;
    if let Some(scheduling) = &placement.replica_scheduling {
        validate_static_weights(scheduling, &format!("{path}.replicaScheduling.weightPreference.staticWeightList"))?;
    }
    match &placement.workload_affinity {
        Some(affinity) => validate_workload_affinity(affinity, &format!("{path}.workloadAffinity")),
        None => Ok(()),
    }
}

pub(super) fn validate_affinity(affinity: &ClusterAffinity, path: &str) -> Result<(), Denied> {
    let expressions = affinity.field_selector.iter().flat_map(|selector| &selector.match_expressions);
    for (index, expression) in expressions.enumerate() {
        let path = format!("{path}.fieldSelector.matchExpressions[{index}]");
        if !matches!(expression.key.as_str(), "provider" | "region" | "zone") {
            let detail = format!("unsupported key {:?}, must be provider, region, or zone", expression.key);
            return Err(Denied::invalid(format!("{path}.key"), &expression.key, detail));
        }
        if !matches!(expression.operator, SelectorOperator::In | SelectorOperator::NotIn) {
            let detail = format!("unsupported operator \"{:?}\", must be In or NotIn", expression.operator);
            return Err(Denied::invalid(format!("{path}.operator"), expression.operator, detail));
        }
    }
    Ok(())
}

fn validate_affinity_terms(placement: &Placement, path: &str) -> Result<(), Denied> {
    let terms = placement.cluster_affinities.as_deref().unwrap_or_default();
    let mut names = BTreeSet::new();
    for (index, term) in terms.iter().enumerate() {
        let term_path = format!("{path}[{index}]");
        validate_affinity_name(&term.affinity_name, &term_path)?;
        if !names.insert(&term.affinity_name) {
            return Err(Denied::invalid(path, terms, "each affinity term in a policy must have a unique name"));
        }
        validate_affinity(&term.affinity, &term_path)?;
        if let Some(overflow) = &term.overflow_affinities {
            validate_overflow(term, overflow, placement, &format!("{term_path}.overflowAffinities"))?;
        }
    }
    Ok(())
}

fn validate_affinity_name(name: &str, path: &str) -> Result<(), Denied> {
    let path = format!("{path}.affinityName");
    if name.len() > AFFINITY_NAME_BYTES_MAX {
        let detail = format!("may not be longer than {AFFINITY_NAME_BYTES_MAX}");
        return Err(Denied::invalid(path, name, detail));
    }
    label::check_key(name).map_err(|detail| Denied::invalid(path, name, detail))
}

fn validate_overflow(
    term: &ClusterAffinityTerm,
    overflow: &Value,
    placement: &Placement,
    path: &str,
) -> Result<(), Denied> {
    let overflow: Vec<ClusterAffinityTerm> = decode(overflow).map_err(|error| Denied::undecodable(path, error))?;
    if overflow.is_empty() {
        return Ok(());
    }
    if !divides_by_availability(placement) {
        let detail = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling";
        return Err(Denied::invalid(path, overflow, detail));
    }
    if term.affinity == ClusterAffinity::default() {
        let detail = "overflowAffinities can only be used together with the inline ClusterAffinity";
        return Err(Denied::invalid(path, overflow, detail));
    }
    let mut names = BTreeSet::from([&term.affinity_name]);
    for (index, entry) in overflow.iter().enumerate() {
        let path = format!("{path}[{index}]");
        validate_affinity_name(&entry.affinity_name, &path)?;
        if !names.insert(&entry.affinity_name) {
            let detail =
                "overflow affinity name must be unique and must not duplicate the primary group's affinityName";
            return Err(Denied::invalid(format!("{path}.affinityName"), &entry.affinity_name, detail));
        }
        validate_affinity(&entry.affinity, &path)?;
    }
    Ok(())
}

fn divides_by_availability(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else { return false };
    let dynamic = || scheduling.weight_preference.as_ref().is_some_and(|weights| !weights.dynamic_weight.is_empty());
    scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided
        && match scheduling.replica_division_preference {
            Some(ReplicaDivisionPreference::Aggregated) => true,
            Some(ReplicaDivisionPreference::Weighted) => dynamic(),
            None => false,
        }
}

/// Only the operators that Kubernetes added for numbers are refused; effects and seconds are not looked at.
fn validate_tolerations(tolerations: &[Toleration], path: &str) -> Result<(), Denied> {
    match tolerations.iter().enumerate().find(|(_, toleration)| matches!(toleration.operator.as_str(), "Lt" | "Gt")) {
        Some((index, toleration)) => {
            let field = format!("{path}[{index}].operator");
            Err(Denied::not_supported(field, &toleration.operator, &["", "Exists", "Equal"]))
        }
        None => Ok(()),
    }
}

fn validate_spread_constraints(constraints: &[SpreadConstraint], path: &str) -> Result<(), Denied> {
    let mut fields = BTreeSet::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let SpreadConstraint { spread_by_field: field, spread_by_label: label, min_groups, max_groups } = constraint;
        let at = |name: &str| format!("{path}[{index}].{name}");
        if !field.is_empty() && !label.is_empty() {
            let detail = "spreadByLabel should not co-exist with spreadByField";
            return Err(Denied::invalid(at("spreadByLabel"), label, detail));
        }
        if *min_groups < 0 {
            return Err(Denied::invalid(at("minGroups"), min_groups, "minGroups lower than 0 is not allowed"));
        }
        if *max_groups < 0 {
            return Err(Denied::invalid(at("maxGroups"), max_groups, "maxGroups lower than 0 is not allowed"));
        }
        if *max_groups > 0 && max_groups < min_groups {
            return Err(Denied::invalid(at("maxGroups"), max_groups, "maxGroups lower than minGroups is not allowed"));
        }
        if field.is_empty() {
            continue;
        }
        if !SPREAD_FIELDS.contains(&field.as_str()) {
            return Err(Denied::not_supported(at("spreadByField"), field, &SPREAD_FIELDS));
        }
        if !fields.insert(field.as_str()) {
            let detail = format!("multiple {field} spread constraints are not allowed");
            return Err(Denied::invalid(path, constraints, detail));
        }
    }
    if !fields.is_empty() && !fields.contains(CLUSTER) {
        let detail = "the cluster spread constraint must be enabled in one of the constraints in case of \
                      SpreadByField is enabled";
        return Err(Denied::invalid(path, constraints, detail));
    }
    Ok(())
}

/// The CRD's bounds on static weights.
fn validate_static_weights(scheduling: &ReplicaScheduling, path: &str) -> Result<(), Denied> {
    let weights = scheduling.weight_preference.iter().flat_map(|preference| &preference.static_weight_list);
    for (index, weight) in weights.enumerate() {
        if weight.weight < 1 {
            let detail = "should be greater than or equal to 1";
            return Err(Denied::invalid(format!("{path}[{index}].weight"), weight.weight, detail));
        }
        validate_affinity(&weight.target_cluster, &format!("{path}[{index}].targetCluster"))?;
    }
    Ok(())
}

fn validate_workload_affinity(affinity: &Value, path: &str) -> Result<(), Denied> {
    let mut keys = BTreeSet::new();
    for part in ["affinity", "antiAffinity"] {
        let Some(part_value) = affinity.get(part).filter(|value| !value.is_null()) else { continue };
        let path = format!("{path}.{part}.groupByLabelKey");
        let Some(key) = part_value.get("groupByLabelKey").and_then(Value::as_str) else {
            return Err(Denied::required(path, ""));
        };
        label::check_key(key).map_err(|detail| Denied::invalid(&path, key, detail))?;
        if !keys.insert(key) {
            return Err(Denied::invalid(path, key, "affinity and antiAffinity must not use the same label key"));
        }
    }
    Ok(())
}
