//! The priority of a binding, from the PriorityClass that its policy names
//! (Karmada: `pkg/detector/detector.go:BuildResourceBinding`, `pkg/util/helper/priorityclass.go`).
//!
//! It orders the scheduler's queue and the evictions that wait. The class is looked up when the binding is written,
//! as in Karmada: a later change of its value takes effect with the next change of the template or the policy.
//! Bindings of cluster-scoped templates have no priority.

use bulkhead_api::policy::PropagationSpec;
use bulkhead_core::model::BindingSpec;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::kinds::ObjectKind;
use kube::ResourceExt;
use serde_json::json;

use crate::flags::{FeatureGate, Flags};
use crate::templates::Templates;

const FIELD: &str = "schedulePriority";

/// Writes the priority into the spec of a namespaced binding, or removes one that the policy no longer requests.
/// Fails if the PriorityClass does not exist, because the order would be unknown.
pub(crate) async fn describe(
    templates: &Templates,
    flags: &Flags,
    policy: &PropagationSpec,
    spec: &mut BindingSpec,
) -> Result<(), Error> {
    if !flags.gate(FeatureGate::PriorityBasedScheduling) {
        return Ok(());
    }
    let Some(wanted) = &policy.schedule_priority else {
        spec.rest.remove(FIELD);
        return Ok(());
    };
    let name = &wanted.priority_class_name;
    let kind = ObjectKind::new("scheduling.k8s.io/v1", "PriorityClass");
    let api = templates.api(&kind, "").await?;
    let class = api
        .get_opt(name)
        .await
        .map_err(Error::api(format!("reading PriorityClass {name}")))?;
    let Some(class) = class else {
        let resource = &spec.resource;
        return Err(Error::NotYet(format!(
            "{resource} is not bound: PriorityClass {name} of its policy does not exist"
        )));
    };
    let value = class.to_value(&kind)?["value"]
        .as_i64()
        .and_then(|value| i32::try_from(value).ok());
    let value =
        value.ok_or_else(|| Error::Undecided(format!("PriorityClass {}: value is not a number", class.name_any())))?;
    spec.rest.insert(FIELD.to_owned(), json!({"priority": value}));
    Ok(())
}
