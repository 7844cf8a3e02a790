//! Defaults and validation of `spec.failover`
//! (Karmada: `pkg/webhook/propagationpolicy/mutating.go`, `pkg/util/validation/validation.go`).

use bulkhead_core::jsonpath::Template;
use bulkhead_core::label;
use bulkhead_core::model::{
    ApplicationFailover, ClusterFailover, FailoverBehavior, Health, PurgeMode, StatePreservation,
};

use super::AdmissionOptions;
use super::denied::Denied;

const TOLERATION_SECONDS_DEFAULT: i32 = 300;
const GRACE_PERIOD_SECONDS_DEFAULT: i32 = 600;
/// Maximum of durations: ten years. A larger value means "no limit" or has the wrong unit.
const SECONDS_MAX: i32 = 10 * 365 * 24 * 3600;

/// Applies the CRD's default toleration, and the webhook's default grace period for a graceful purge.
pub(super) fn default_application(application: &mut ApplicationFailover) {
    application
        .decision_conditions
        .toleration_seconds
        .get_or_insert(TOLERATION_SECONDS_DEFAULT);
    if application.purge_mode == PurgeMode::Gracefully {
        application
            .grace_period_seconds
            .get_or_insert(GRACE_PERIOD_SECONDS_DEFAULT);
    }
}

pub(super) fn validate(failover: &FailoverBehavior, path: &str, options: AdmissionOptions) -> Result<(), Denied> {
    if let Some(application) = &failover.application {
        validate_application(application, &format!("{path}.application"))?;
    }
    match &failover.cluster {
        Some(cluster) => validate_cluster(cluster, &format!("{path}.cluster"), options),
        None => Ok(()),
    }
}

fn validate_application(application: &ApplicationFailover, path: &str) -> Result<(), Denied> {
    let (before, decision) = (application.pre_conditions.as_ref(), &application.decision_conditions);
    for (field, seconds) in [
        (
            "preConditions.delaySeconds",
            before.and_then(|before| before.delay_seconds),
        ),
        ("decisionConditions.tolerationSeconds", decision.toleration_seconds),
        ("blockPredecessorSeconds", application.block_predecessor_seconds),
    ] {
        validate_seconds(seconds, 0, &format!("{path}.{field}"))?;
    }
    if let Some(state) = before
        .and_then(|before| before.healthy_state)
        .filter(|state| *state != Health::Healthy)
    {
        return Err(Denied::not_supported(
            format!("{path}.preConditions.healthyState"),
            state,
            &["Healthy"],
        ));
    }
    // `Unknown` is not a verdict, and a healthy application has no reason to leave.
    let state = decision
        .healthy_state
        .iter()
        .enumerate()
        .find(|(_, state)| **state != Health::Unhealthy);
    if let Some((index, state)) = state {
        let field = format!("{path}.decisionConditions.healthyState[{index}]");
        return Err(Denied::not_supported(field, state, &["Unhealthy"]));
    }
    let detail = match (application.purge_mode, application.grace_period_seconds) {
        (PurgeMode::Gracefully, None) => Some("should not be empty when purgeMode is Gracefully"),
        (PurgeMode::Directly | PurgeMode::Never, Some(_)) => Some("only takes effect when purgeMode is Gracefully"),
        _ => None,
    };
    if let Some(detail) = detail {
        let field = format!("{path}.gracePeriodSeconds");
        return Err(Denied::invalid(field, application.grace_period_seconds, detail));
    }
    validate_seconds(
        application.grace_period_seconds,
        1,
        &format!("{path}.gracePeriodSeconds"),
    )?;
    validate_state_preservation(application.state_preservation.as_ref(), path)
}

/// Checks the range of a duration. The messages for values below the minimum are Karmada's.
fn validate_seconds(seconds: Option<i32>, least: i32, field: &str) -> Result<(), Denied> {
    let detail = match seconds {
        Some(seconds) if seconds < least && least == 0 => "must be greater than or equal to 0".to_owned(),
        Some(seconds) if seconds < least => format!("must be greater than {}", least - 1),
        Some(seconds) if seconds > SECONDS_MAX => format!("must be at most {SECONDS_MAX}, which is ten years"),
        _ => return Ok(()),
    };
    Err(Denied::invalid(field, seconds, detail))
}

fn validate_cluster(cluster: &ClusterFailover, path: &str, options: AdmissionOptions) -> Result<(), Denied> {
    if cluster.purge_mode == PurgeMode::Never && !options.allow_never_purging_clusters {
        let field = format!("{path}.purgeMode");
        return Err(Denied::not_supported(
            field,
            cluster.purge_mode,
            &["Directly", "Gracefully"],
        ));
    }
    if cluster.grace_period_seconds.is_some() && cluster.purge_mode != PurgeMode::Gracefully {
        let detail = "only takes effect when purgeMode is Gracefully";
        return Err(Denied::invalid(
            format!("{path}.gracePeriodSeconds"),
            cluster.grace_period_seconds,
            detail,
        ));
    }
    validate_seconds(cluster.grace_period_seconds, 1, &format!("{path}.gracePeriodSeconds"))?;
    validate_seconds(cluster.toleration_seconds, 0, &format!("{path}.tolerationSeconds"))?;
    validate_state_preservation(cluster.state_preservation.as_ref(), path)
}

/// Validates the rules of state preservation. Karmada does not check `jsonPath`; a mistake in it would block every
/// eviction during a failover.
fn validate_state_preservation(state: Option<&StatePreservation>, path: &str) -> Result<(), Denied> {
    for (index, rule) in state.iter().flat_map(|state| &state.rules).enumerate() {
        label::check_key(&rule.alias_label_name).map_err(|detail| {
            let field = format!("{path}.statePreservation.rules[{index}].aliasLabelName");
            Denied::invalid(field, &rule.alias_label_name, detail)
        })?;
        rule.json_path.parse::<Template>().map_err(|error| {
            let field = format!("{path}.statePreservation.rules[{index}].jsonPath");
            Denied::invalid(field, &rule.json_path, error.to_string())
        })?;
    }
    Ok(())
}
