//! Defaults and validation of `spec.failover`
//! (Karmada: `pkg/webhook/propagationpolicy/mutating.go`, `pkg/util/validation/validation.go`).

use bulkhead_core::model::{ApplicationFailover, ClusterFailover, FailoverBehavior, PurgeMode, StatePreservation};

use super::denied::Denied;
use super::label;

const TOLERATION_SECONDS_DEFAULT: i32 = 300;
const GRACE_PERIOD_SECONDS_DEFAULT: i32 = 600;

/// The CRD's default toleration, and the webhook's grace period for a graceful purge.
pub(super) fn default_application(application: &mut ApplicationFailover) {
    application.decision_conditions.toleration_seconds.get_or_insert(TOLERATION_SECONDS_DEFAULT);
    if application.purge_mode == PurgeMode::Gracefully {
        application.grace_period_seconds.get_or_insert(GRACE_PERIOD_SECONDS_DEFAULT);
    }
}

pub(super) fn validate(failover: &FailoverBehavior, path: &str) -> Result<(), Denied> {
    if let Some(application) = &failover.application {
        validate_application(application, &format!("{path}.application"))?;
    }
    match &failover.cluster {
        Some(cluster) => validate_cluster(cluster, &format!("{path}.cluster")),
        None => Ok(()),
    }
}

fn validate_application(application: &ApplicationFailover, path: &str) -> Result<(), Denied> {
    if let Some(seconds @ ..0) = application.decision_conditions.toleration_seconds {
        let field = format!("{path}.decisionConditions.tolerationSeconds");
        return Err(Denied::invalid(field, seconds, "must be greater than or equal to 0"));
    }
    let detail = match (application.purge_mode, application.grace_period_seconds) {
        (PurgeMode::Gracefully, None) => Some("should not be empty when purgeMode is Gracefully"),
        (PurgeMode::Directly | PurgeMode::Never, Some(_)) => Some("only takes effect when purgeMode is Gracefully"),
        (PurgeMode::Gracefully, Some(..=0)) => Some("must be greater than 0"),
        _ => None,
    };
    if let Some(detail) = detail {
        let field = format!("{path}.gracePeriodSeconds");
        return Err(Denied::invalid(field, application.grace_period_seconds, detail));
    }
    validate_state_preservation(application.state_preservation.as_ref(), path)
}

fn validate_cluster(cluster: &ClusterFailover, path: &str) -> Result<(), Denied> {
    if cluster.purge_mode == PurgeMode::Never {
        let field = format!("{path}.purgeMode");
        return Err(Denied::not_supported(field, cluster.purge_mode, &["Directly", "Gracefully"]));
    }
    validate_state_preservation(cluster.state_preservation.as_ref(), path)
}

/// The syntax of `jsonPath` is not looked at, as in Karmada.
fn validate_state_preservation(state: Option<&StatePreservation>, path: &str) -> Result<(), Denied> {
    for (index, rule) in state.iter().flat_map(|state| &state.rules).enumerate() {
        label::check_key(&rule.alias_label_name).map_err(|detail| {
            let field = format!("{path}.statePreservation.rules[{index}].aliasLabelName");
            Denied::invalid(field, &rule.alias_label_name, detail)
        })?;
    }
    Ok(())
}
