//! Validation of `ClusterTaintPolicy` (Karmada: `pkg/webhook/clustertaintpolicy/validating.go`).
//!
//! The operators of conditions are not checked, as in Karmada: any other text just never matches.

use bulkhead_core::model::{ClusterTaintPolicySpec, PolicyTaint, TaintEffect};

use super::AdmissionOptions;
use super::denied::Denied;

pub(super) fn validate_spec(spec: &ClusterTaintPolicySpec, options: AdmissionOptions) -> Result<(), Denied> {
    if spec.taints.is_empty() {
        return Err(Denied::required("spec.taints", "at least one is needed"));
    }
    if !spec.add_on_conditions.is_empty() && spec.add_on_conditions == spec.remove_on_conditions {
        let detail = "are those of addOnConditions, so the taints would be removed whenever they are added";
        return Err(Denied::invalid("spec.removeOnConditions", &spec.remove_on_conditions, detail));
    }
    for (index, taint) in spec.taints.iter().enumerate() {
        let field = format!("spec.taints[{index}]");
        if taint.effect == TaintEffect::NoExecute && !options.allow_no_execute_taint_policy {
            let detail = "NoExecute taints are not allowed unless --allow-no-execute-taint-policy is set";
            return Err(Denied::forbidden(field, detail));
        }
        let repeats = |other: &PolicyTaint| other.key == taint.key && other.effect == taint.effect;
        if spec.taints[index + 1..].iter().any(repeats) {
            let value = format!("taint({}:{}) already exist", taint.key, taint.effect.as_str());
            return Err(Denied::duplicate(field, value));
        }
    }
    Ok(())
}
