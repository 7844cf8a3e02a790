//! Defaults and validation of propagation policies
//! (Karmada: `pkg/webhook/{propagationpolicy,clusterpropagationpolicy}`,
//! `pkg/util/validation/validation.go:ValidatePropagationSpec`).
//!
//! Defaults of the CRD schema are applied here too. Cluster tolerations are added only if the options set them, as in
//! Karmada before 1.15. No finalizer is added, because nothing here would remove it.

use bulkhead_core::model::{List, TaintEffect, Toleration};
use bulkhead_core::names::keys;

use super::denied::Denied;
use super::{AdmissionOptions, failover, placement};
use crate::policy::{PreemptionBehavior, PropagationSpec};

const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Applies defaults. `namespace` is the policy's own; absent for a `ClusterPropagationPolicy`.
pub(super) fn default_spec(spec: &mut PropagationSpec, namespace: Option<&str>, options: AdmissionOptions) {
    spec.priority.get_or_insert(0);
    if spec.scheduler_name.is_empty() {
        DEFAULT_SCHEDULER.clone_into(&mut spec.scheduler_name);
    }
    if let Some(namespace) = namespace {
        for selector in spec
            .resource_selectors
            .iter_mut()
            .filter(|selector| selector.namespace.is_empty())
        {
            namespace.clone_into(&mut selector.namespace);
        }
    }
    placement::default_spread_constraints(&mut spec.placement.spread_constraints);
    if spec
        .resource_selectors
        .iter()
        .any(|selector| selector.kind == "ServiceImport")
    {
        spec.propagate_deps = true;
    }
    if let Some(scheduling) = &mut spec.placement.replica_scheduling {
        placement::default_replica_scheduling(scheduling);
    }
    if let Some(application) = spec
        .failover
        .as_mut()
        .and_then(|failover| failover.application.as_mut())
    {
        failover::default_application(application);
    }
    for (key, seconds) in [
        (keys::NOT_READY_TAINT, options.default_not_ready_toleration_seconds),
        (keys::UNREACHABLE_TAINT, options.default_unreachable_toleration_seconds),
    ] {
        if let Some(seconds) = seconds {
            default_toleration(&mut spec.placement.cluster_tolerations, key, seconds);
        }
    }
}

/// Adds a toleration, unless one exists that differs only in its seconds.
fn default_toleration(tolerations: &mut List<Toleration>, key: &str, seconds: i64) {
    let added = Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        value: String::new(),
        effect: Some(TaintEffect::NoExecute),
        toleration_seconds: Some(seconds),
    };
    let same = |existing: &Toleration| {
        Toleration {
            toleration_seconds: Some(seconds),
            ..existing.clone()
        } == added
    };
    if !tolerations.iter().any(same) {
        *tolerations = tolerations.iter().cloned().chain([added]).collect();
    }
}

/// Validates a spec after [`default_spec`].
pub(super) fn validate_spec(
    spec: &PropagationSpec,
    namespace: Option<&str>,
    options: AdmissionOptions,
) -> Result<(), Denied> {
    validate_selectors(spec, namespace)?;
    placement::validate(&spec.placement, "spec.placement")?;
    if let Some(failover) = &spec.failover {
        if failover.application.is_some() && !spec.propagate_deps {
            let detail = "propagateDeps must be true when application failover is set";
            return Err(Denied::invalid("spec.propagateDeps", spec.propagate_deps, detail));
        }
        failover::validate(failover, "spec.failover", options)?;
    }
    validate_suspension(spec)?;
    if !matches!(spec.activation_preference.as_str(), "" | "Lazy") {
        let field = "spec.activationPreference";
        return Err(Denied::not_supported(field, &spec.activation_preference, &["Lazy"]));
    }
    match &spec.schedule_priority {
        Some(priority) if priority.priority_class_source != "KubePriorityClass" => {
            let field = "spec.schedulePriority.priorityClassSource";
            Err(Denied::not_supported(
                field,
                &priority.priority_class_source,
                &["KubePriorityClass"],
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that immutable fields are unchanged.
pub(super) fn validate_update(new: &PropagationSpec, old: &PropagationSpec) -> Result<(), Denied> {
    let name = |spec: &PropagationSpec| match spec.scheduler_name.as_str() {
        "" => DEFAULT_SCHEDULER.to_owned(),
        name => name.to_owned(),
    };
    if name(new) == name(old) {
        Ok(())
    } else {
        Err(Denied::invalid(
            "spec.schedulerName",
            &new.scheduler_name,
            "the schedulerName should not be updated",
        ))
    }
}

fn validate_selectors(spec: &PropagationSpec, namespace: Option<&str>) -> Result<(), Denied> {
    if spec.resource_selectors.is_empty() {
        return Err(Denied::required("spec.resourceSelectors", "at least one is needed"));
    }
    for (index, selector) in spec.resource_selectors.iter().enumerate() {
        let at = |name: &str| format!("spec.resourceSelectors[{index}].{name}");
        if namespace.is_some_and(|namespace| namespace != selector.namespace) {
            let detail = "the resource selector must be in the namespace of the policy";
            return Err(Denied::invalid(at("namespace"), &selector.namespace, detail));
        }
        if spec.preemption == PreemptionBehavior::Always && selector.name.is_empty() {
            let detail = "name cannot be empty if preemption is Always, the empty name may cause unexpected \
                          resources preemption";
            return Err(Denied::invalid(at("name"), &selector.name, detail));
        }
    }
    Ok(())
}

/// Validates the suspension. The path of the error repeats `suspension`, as in Karmada.
fn validate_suspension(spec: &PropagationSpec) -> Result<(), Denied> {
    let Some(suspension) = &spec.suspension else {
        return Ok(());
    };
    let lists_clusters = suspension
        .dispatching_on_clusters
        .as_ref()
        .is_some_and(|clusters| !clusters.cluster_names.is_empty());
    if suspension.dispatching == Some(true) && lists_clusters {
        let detail = "dispatching on all clusters and on some clusters cannot be suspended together";
        return Err(Denied::invalid("spec.suspension.suspension", suspension, detail));
    }
    Ok(())
}
