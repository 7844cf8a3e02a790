//! Validation of `ClusterTaintPolicy` (Karmada: `pkg/webhook/clustertaintpolicy/validating.go`).
//!
//! Operators of Karmada's conditions are not validated, as in Karmada: an unknown one never matches. Those of the
//! proposal's `matchConditions` are. Unknown effects are
//! refused; Karmada admits them and then fails on every cluster that the policy matches. Unknown fields are refused
//! independent of the field validation that the client asks for: without `targetCluster` a policy selects all clusters.

use bulkhead_core::model::{ClusterTaintPolicySpec, MatchCondition, PolicyTaint, TaintEffect};

use super::AdmissionOptions;
use super::denied::Denied;

pub(super) fn validate_spec(spec: &ClusterTaintPolicySpec, options: AdmissionOptions) -> Result<(), Denied> {
    if let Some((field, detail)) = spec.faults().first().and_then(|fault| fault.split_once(": ")) {
        return Err(Denied::forbidden(format!("spec.{field}"), detail));
    }
    let (ours, proposed) = (&spec.taints, &spec.taints_to_add);
    let in_karmadas_shape =
        !ours.is_empty() || !spec.add_on_conditions.is_empty() || !spec.remove_on_conditions.is_empty();
    let in_the_proposals = !proposed.is_empty() || !spec.match_conditions.is_empty();
    match (in_karmadas_shape, in_the_proposals) {
        (true, true) => {
            let detail =
                "matchConditions and taintsToAdd cannot be combined with addOnConditions, removeOnConditions or taints";
            Err(Denied::forbidden("spec".to_owned(), detail))
        }
        (false, true) if proposed.is_empty() => Err(Denied::required("spec.taintsToAdd", "at least one is needed")),
        (false, true) => {
            validate_operators(&spec.match_conditions)?;
            validate_taints("spec.taintsToAdd", proposed, options)
        }
        _ if ours.is_empty() => Err(Denied::required("spec.taints", "at least one is needed")),
        _ if !spec.add_on_conditions.is_empty() && spec.add_on_conditions == spec.remove_on_conditions => {
            let detail = "must differ from addOnConditions, or the taints would be removed whenever they are added";
            Err(Denied::invalid(
                "spec.removeOnConditions",
                &spec.remove_on_conditions,
                detail,
            ))
        }
        _ => validate_taints("spec.taints", ours, options),
    }
}

/// Checks the operators of the proposal's conditions. A condition that never matches would remove the taint.
fn validate_operators(conditions: &[MatchCondition]) -> Result<(), Denied> {
    let known = ["In", "NotIn"];
    let unknown = conditions
        .iter()
        .enumerate()
        .find(|(_, condition)| !known.contains(&condition.operator.as_str()));
    unknown.map_or(Ok(()), |(index, condition)| {
        Err(Denied::not_supported(
            format!("spec.matchConditions[{index}].operator"),
            &condition.operator,
            &known,
        ))
    })
}

fn validate_taints(list: &str, taints: &[PolicyTaint], options: AdmissionOptions) -> Result<(), Denied> {
    for (index, taint) in taints.iter().enumerate() {
        let field = format!("{list}[{index}]");
        for (name, seconds) in [
            ("addOnMatchSeconds", taint.add_on_match_seconds),
            ("removeOnMismatchSeconds", taint.remove_on_mismatch_seconds),
        ] {
            if let Some(seconds) = seconds.filter(|seconds| *seconds < 1) {
                return Err(Denied::invalid(
                    format!("{field}.{name}"),
                    seconds,
                    "must be greater than 0",
                ));
            }
        }
        if taint.effect.is_foreign() {
            return Err(Denied::not_supported(
                format!("{field}.effect"),
                &taint.effect,
                &TaintEffect::KNOWN,
            ));
        }
        if taint.effect == TaintEffect::PreferNoExecute && !options.allow_prefer_no_execute {
            let detail = "PreferNoExecute taints are not allowed unless the feature gate PreferNoExecute is on";
            return Err(Denied::forbidden(field, detail));
        }
        if taint.effect == TaintEffect::NoExecute && !options.allow_no_execute_taint_policy {
            let detail = "NoExecute taints are not allowed unless --allow-no-execute-taint-policy is set";
            return Err(Denied::forbidden(field, detail));
        }
        let repeats = |other: &PolicyTaint| other.key == taint.key && other.effect == taint.effect;
        if taints.iter().skip(index + 1).any(repeats) {
            let value = format!("taint({}:{}) already exist", taint.key, taint.effect.as_str());
            return Err(Denied::duplicate(field, value));
        }
    }
    Ok(())
}
