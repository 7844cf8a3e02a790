//! Validation of `WorkloadRebalancer` (Karmada: `apps.karmada.io_workloadrebalancers.yaml`).

use bulkhead_core::model::WorkloadRebalancerSpec;

use super::denied::Denied;

/// Refuses an empty list, as Karmada's schema does, and requests that can only fail: without kind or name, and with a
/// lifetime that would delete the object before its end.
pub(super) fn validate(spec: &WorkloadRebalancerSpec) -> Result<(), Denied> {
    if spec.workloads.is_empty() {
        return Err(Denied::required("spec.workloads", "at least one workload"));
    }
    for (index, workload) in spec.workloads.iter().enumerate() {
        for (field, value) in [("kind", &workload.kind), ("name", &workload.name)] {
            if value.is_empty() {
                let field = format!("spec.workloads[{index}].{field}");
                return Err(Denied::required(field, "the workload to schedule again"));
            }
        }
    }
    match spec.ttl_seconds_after_finished {
        Some(ttl_s) if ttl_s < 0 => {
            let detail = "must be 0 (deleted at its end) or a positive number of seconds";
            Err(Denied::invalid("spec.ttlSecondsAfterFinished", ttl_s, detail))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(spec: Value) -> Option<String> {
        validate(&serde_json::from_value(spec).unwrap())
            .err()
            .map(|denied| denied.to_string())
    }

    #[test]
    fn requests_that_can_only_fail_are_refused() {
        let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
        assert_eq!(refused(json!({"workloads": [workload]})), None);
        let zero = json!({"workloads": [workload], "ttlSecondsAfterFinished": 0});
        assert_eq!(refused(zero), None);
        for (spec, field) in [
            (json!({"workloads": []}), "spec.workloads: "),
            (
                json!({"workloads": [workload, {"apiVersion": "v1", "kind": "", "name": "web"}]}),
                "spec.workloads[1].kind: ",
            ),
            (
                json!({"workloads": [{"apiVersion": "v1", "kind": "Secret", "name": ""}]}),
                "spec.workloads[0].name: ",
            ),
            (
                json!({"workloads": [workload], "ttlSecondsAfterFinished": -1}),
                "spec.ttlSecondsAfterFinished: ",
            ),
        ] {
            let message = refused(spec).unwrap_or_default();
            assert!(message.starts_with(field), "{field}: {message}");
        }
    }
}
