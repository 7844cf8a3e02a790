//! Validation of bindings: the rules of Karmada's CRD schema and of its webhook
//! (`pkg/apis/work/v1alpha2/binding_types.go`, `pkg/webhook/resourcebinding`).
//!
//! Negative numbers pass Karmada's schema. They are refused here, because no program writes them intentionally.

use bulkhead_core::model::{BindingSpec, GracefulEvictionTask};
use bulkhead_core::names::keys::DEPENDENCIES;
use serde_json::Value;

use super::denied::Denied;

const REASON_BYTES_MAX: usize = 32;
const MESSAGE_BYTES_MAX: usize = 1024;

pub(super) fn validate(object: &Value, spec: &BindingSpec) -> Result<(), Denied> {
    validate_dependencies(object)?;
    if spec.replicas < 0 {
        return Err(Denied::invalid(
            "spec.replicas",
            spec.replicas,
            "must be greater than or equal to 0",
        ));
    }
    for (index, target) in spec.clusters.iter().enumerate() {
        if target.name.is_empty() {
            return Err(Denied::required(format!("spec.clusters[{index}].name"), ""));
        }
        if target.replicas < 0 {
            let field = format!("spec.clusters[{index}].replicas");
            return Err(Denied::invalid(
                field,
                target.replicas,
                "must be greater than or equal to 0",
            ));
        }
    }
    let mut tasks = spec.graceful_eviction_tasks.iter().enumerate();
    tasks.try_for_each(|(index, task)| validate_task(task, &format!("spec.gracefulEvictionTasks[{index}]")))
}

fn validate_dependencies(object: &Value) -> Result<(), Denied> {
    let annotation = object
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(DEPENDENCIES));
    let Some(text) = annotation.and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    match serde_json::from_str::<Vec<Value>>(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let field = format!("metadata.annotations[{DEPENDENCIES}]");
            Err(Denied::invalid(field, text, format!("must be a JSON list: {error}")))
        }
    }
}

fn validate_task(task: &GracefulEvictionTask, path: &str) -> Result<(), Denied> {
    for (field, value) in [
        ("fromCluster", &task.from_cluster),
        ("reason", &task.reason),
        ("producer", &task.producer),
    ] {
        if value.is_empty() {
            return Err(Denied::required(format!("{path}.{field}"), ""));
        }
    }
    if let Some(mode) = task.foreign_purge_mode() {
        return Err(Denied::not_supported(
            format!("{path}.purgeMode"),
            mode,
            &["Directly", "Gracefully", "Never"],
        ));
    }
    if !is_reason(&task.reason) {
        let detail = "must be at most 32 letters, digits, '_', ',' and ':', with a letter first and a letter, digit or \
                      '_' last";
        return Err(Denied::invalid(format!("{path}.reason"), &task.reason, detail));
    }
    if task.message.len() > MESSAGE_BYTES_MAX {
        let detail = format!("must be at most {MESSAGE_BYTES_MAX} bytes");
        return Err(Denied::invalid(format!("{path}.message"), &task.message, detail));
    }
    let negative = [
        ("replicas", task.replicas),
        ("gracePeriodSeconds", task.grace_period_seconds),
    ];
    match negative
        .into_iter()
        .find_map(|(field, value)| value.filter(|value| *value < 0).map(|value| (field, value)))
    {
        None => Ok(()),
        Some((field, value)) => Err(Denied::invalid(
            format!("{path}.{field}"),
            value,
            "must be greater than or equal to 0",
        )),
    }
}

fn is_reason(reason: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    reason.len() <= REASON_BYTES_MAX
        && reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.chars().all(inner)
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}
