//! Defaults and validation of `spec.placement`
//! (Karmada: `pkg/util/helper/policy.go`, `pkg/util/validation/validation.go:ValidatePlacement`).

use std::collections::BTreeSet;

use bulkhead_core::label;
use bulkhead_core::model::{
    ClusterAffinity, ClusterAffinityTerm, Placement, ReplicaDivisionPreference, ReplicaScheduling,
    ReplicaSchedulingType, SelectorOperator, SpreadConstraint, TaintEffect, Toleration, WorkloadAffinity,
};

use super::denied::Denied;
use crate::decode::decode;

const AFFINITY_NAME_BYTES_MAX: usize = 32;
const CLUSTER: &str = "cluster";
const SPREAD_FIELDS: [&str; 4] = [CLUSTER, "region", "zone", "provider"];

/// Defaults constraints without field and label to the field `cluster`, and `minGroups` to 1.
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

/// Defaults the preference of divided scheduling to `Weighted`.
pub(super) fn default_replica_scheduling(scheduling: &mut ReplicaScheduling) {
    if scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided {
        scheduling
            .replica_division_preference
            .get_or_insert(ReplicaDivisionPreference::Weighted);
    }
}

/// Returns the first problem that the CRD's schema or Karmada's webhook finds, those of the schema first.
pub(super) fn validate(placement: &Placement, path: &str) -> Result<(), Denied> {
    validate_schema(placement, path)?;
    validate_placement(placement, path)
        .into_iter()
        .next()
        .map_or(Ok(()), Err)
}

/// Returns all problems that Karmada's webhook finds, in its order (Karmada: `validation.go:ValidatePlacement`).
pub fn validate_placement(placement: &Placement, path: &str) -> Vec<Denied> {
    let mut denied = Vec::new();
    if placement.cluster_affinity.is_some() && placement.cluster_affinities.is_some() {
        denied.push(Denied::invalid(
            path,
            placement,
            "clusterAffinities cannot co-exist with clusterAffinity",
        ));
    }
    let terms_path = format!("{path}.clusterAffinities");
    let terms = placement.cluster_affinities.as_deref().unwrap_or_default();
    for (index, term) in terms.iter().enumerate() {
        if has_overflow(term) && !divides_by_availability(placement) {
            let detail = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling";
            let field = format!("{terms_path}[{index}].overflowAffinities");
            denied.push(Denied::invalid(field, &term.overflow_affinities, detail));
        }
    }
    if let Some(affinity) = &placement.cluster_affinity {
        denied.extend(check_affinity(affinity, &format!("{path}.clusterAffinity")));
    }
    check_terms(terms, &terms_path, &mut denied);
    check_spread_constraints(
        &placement.spread_constraints,
        &format!("{path}.spreadConstraints"),
        &mut denied,
    );
    if let Some(affinity) = &placement.workload_affinity {
        check_workload_affinity(affinity, &format!("{path}.workloadAffinity"), &mut denied);
    }
    check_tolerations(
        &placement.cluster_tolerations,
        &format!("{path}.clusterTolerations"),
        &mut denied,
    );
    denied
}

/// Returns the first problem of a field selector: an unknown key, or an operator other than `In` and `NotIn`.
pub(super) fn check_affinity(affinity: &ClusterAffinity, path: &str) -> Option<Denied> {
    let selector = affinity.field_selector.as_ref()?;
    let problem = selector.match_expressions.iter().find_map(|expression| {
        if !matches!(expression.key.as_str(), "provider" | "region" | "zone") {
            return Some(format!(
                "unsupported key {:?}, must be provider, region, or zone",
                expression.key
            ));
        }
        let is_set = matches!(expression.operator, SelectorOperator::In | SelectorOperator::NotIn);
        (!is_set).then(|| format!("unsupported operator \"{}\", must be In or NotIn", expression.operator))
    });
    problem.map(|detail| Denied::invalid(format!("{path}.fieldSelector"), selector, detail))
}

fn check_terms(terms: &[ClusterAffinityTerm], path: &str, denied: &mut Vec<Denied>) {
    let mut names = BTreeSet::new();
    for (index, term) in terms.iter().enumerate() {
        let term_path = format!("{path}[{index}]");
        let invalid = |detail| Denied::invalid(&term_path, &term.affinity_name, detail);
        denied.extend(label::key_problems(&term.affinity_name).into_iter().map(invalid));
        if !names.insert(&term.affinity_name) {
            let detail = "each affinity term in a policy must have a unique name";
            denied.push(Denied::invalid(path, terms, detail));
        }
        denied.extend(check_affinity(&term.affinity, &term_path));
        if has_overflow(term) {
            check_overflow(term, &format!("{term_path}.overflowAffinities"), denied);
        }
    }
}

fn has_overflow(term: &ClusterAffinityTerm) -> bool {
    term.overflow_affinities
        .as_ref()
        .is_some_and(|overflow| !overflow.is_null())
}

fn check_overflow(term: &ClusterAffinityTerm, path: &str, denied: &mut Vec<Denied>) {
    if selects_nothing_in_particular(&term.affinity) {
        let detail = "overflowAffinities can only be used together with the inline ClusterAffinity";
        denied.push(Denied::invalid(path, &term.overflow_affinities, detail));
    }
    let overflow = term.overflow();
    let mut names = BTreeSet::from([&term.affinity_name]);
    for (index, entry) in overflow.iter().enumerate() {
        let entry_path = format!("{path}[{index}]");
        let invalid =
            |detail: String| Denied::invalid(format!("{entry_path}.affinityName"), &entry.affinity_name, detail);
        denied.extend(label::key_problems(&entry.affinity_name).into_iter().map(invalid));
        if !names.insert(&entry.affinity_name) {
            let detail =
                "overflow affinity name must be unique and must not duplicate the primary group's affinityName";
            denied.push(invalid(detail.to_owned()));
        }
        denied.extend(check_affinity(&entry.affinity, &entry_path));
    }
}

fn selects_nothing_in_particular(affinity: &ClusterAffinity) -> bool {
    let ClusterAffinity {
        label_selector,
        field_selector,
        cluster_names,
        exclude,
    } = affinity;
    label_selector.is_none() && field_selector.is_none() && cluster_names.is_empty() && exclude.is_empty()
}

fn divides_by_availability(placement: &Placement) -> bool {
    let Some(scheduling) = &placement.replica_scheduling else {
        return false;
    };
    let dynamic = || {
        scheduling
            .weight_preference
            .as_ref()
            .is_some_and(|weights| !weights.dynamic_weight.is_empty())
    };
    scheduling.replica_scheduling_type == ReplicaSchedulingType::Divided
        && match scheduling.replica_division_preference {
            Some(ReplicaDivisionPreference::Aggregated) => true,
            Some(ReplicaDivisionPreference::Weighted) => dynamic(),
            None => false,
        }
}

/// Refuses Kubernetes' numeric operators `Lt` and `Gt`, and unknown effects, which Karmada admits although they never
/// match. Seconds are not validated.
fn check_tolerations(tolerations: &[Toleration], path: &str, denied: &mut Vec<Denied>) {
    for (index, toleration) in tolerations.iter().enumerate() {
        if matches!(toleration.operator.as_str(), "Lt" | "Gt") {
            let field = format!("{path}[{index}].operator");
            denied.push(Denied::not_supported(
                field,
                &toleration.operator,
                &["", "Exists", "Equal"],
            ));
        }
        if let Some(effect) = toleration.effect.as_ref().filter(|effect| effect.is_foreign()) {
            denied.push(Denied::not_supported(
                format!("{path}[{index}].effect"),
                effect,
                &TaintEffect::KNOWN,
            ));
        }
    }
}

fn check_spread_constraints(constraints: &[SpreadConstraint], path: &str, denied: &mut Vec<Denied>) {
    let (mut fields, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    for (index, constraint) in constraints.iter().enumerate() {
        let SpreadConstraint {
            spread_by_field: field,
            spread_by_label: label,
            min_groups,
            max_groups,
        } = constraint;
        let problems = [
            (
                !field.is_empty() && !label.is_empty(),
                "spreadByLabel should not co-exist with spreadByField",
            ),
            (*min_groups < 0, "minGroups lower than 0 is not allowed"),
            (*max_groups < 0, "maxGroups lower than 0 is not allowed"),
            (
                *max_groups > 0 && max_groups < min_groups,
                "maxGroups lower than minGroups is not allowed",
            ),
        ];
        let holding = problems.into_iter().filter(|(holds, _)| *holds);
        denied.extend(holding.map(|(_, detail)| Denied::invalid(format!("{path}[{index}]"), constraint, detail)));
        if !field.is_empty() && !fields.insert(field.as_str()) && repeated.insert(field.as_str()) {
            let detail = format!("multiple {field} spread constraints are not allowed");
            denied.push(Denied::invalid(path, constraints, detail));
        }
    }
    if !fields.is_empty() && !fields.contains(CLUSTER) {
        let detail = "the cluster spread constraint must be enabled in one of the constraints in case of \
                      SpreadByField is enabled";
        denied.push(Denied::invalid(path, constraints, detail));
    }
}

fn check_workload_affinity(affinity: &WorkloadAffinity, path: &str, denied: &mut Vec<Denied>) {
    let own = affinity.affinity.as_ref().map(|term| &term.group_by_label_key);
    let anti = affinity.anti_affinity.as_ref().map(|term| &term.group_by_label_key);
    for (part, key) in [("affinity", own), ("antiAffinity", anti)] {
        let Some(key) = key else { continue };
        let invalid = |detail| Denied::invalid(format!("{path}.{part}.groupByLabelKey"), key, detail);
        denied.extend(label::key_problems(key).into_iter().map(invalid));
    }
    if own.is_some() && own == anti {
        let detail = "affinity and antiAffinity must not use the same groupByLabelKey";
        denied.push(Denied::invalid(path, affinity, detail));
    }
}

/// Checks the rules of the CRD's schema, which apply before the webhook.
fn validate_schema(placement: &Placement, path: &str) -> Result<(), Denied> {
    let terms = placement.cluster_affinities.as_deref().unwrap_or_default();
    for (index, term) in terms.iter().enumerate() {
        let term_path = format!("{path}.clusterAffinities[{index}]");
        validate_affinity_name(&term.affinity_name, &term_path)?;
        if let Some(overflow) = term.overflow_affinities.as_ref().filter(|overflow| !overflow.is_null()) {
            let overflow_path = format!("{term_path}.overflowAffinities");
            let entries: Vec<ClusterAffinityTerm> =
                decode(overflow).map_err(|error| Denied::undecodable(&overflow_path, error))?;
            for (index, entry) in entries.iter().enumerate() {
                validate_affinity_name(&entry.affinity_name, &format!("{overflow_path}[{index}]"))?;
            }
        }
    }
    for (index, constraint) in placement.spread_constraints.iter().enumerate() {
        let field = &constraint.spread_by_field;
        if !field.is_empty() && !SPREAD_FIELDS.contains(&field.as_str()) {
            let field_path = format!("{path}.spreadConstraints[{index}].spreadByField");
            return Err(Denied::not_supported(field_path, field, &SPREAD_FIELDS));
        }
    }
    if let Some(scheduling) = &placement.replica_scheduling {
        validate_static_weights(
            scheduling,
            &format!("{path}.replicaScheduling.weightPreference.staticWeightList"),
        )?;
    }
    Ok(())
}

fn validate_affinity_name(name: &str, path: &str) -> Result<(), Denied> {
    if name.len() > AFFINITY_NAME_BYTES_MAX {
        let detail = format!("may not be longer than {AFFINITY_NAME_BYTES_MAX}");
        return Err(Denied::invalid(format!("{path}.affinityName"), name, detail));
    }
    Ok(())
}

fn validate_static_weights(scheduling: &ReplicaScheduling, path: &str) -> Result<(), Denied> {
    let weights = scheduling
        .weight_preference
        .iter()
        .flat_map(|preference| &preference.static_weight_list);
    for (index, weight) in weights.enumerate() {
        if weight.weight < 1 {
            let detail = "should be greater than or equal to 1";
            return Err(Denied::invalid(
                format!("{path}[{index}].weight"),
                weight.weight,
                detail,
            ));
        }
    }
    Ok(())
}
