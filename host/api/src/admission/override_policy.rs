//! Defaults and validation of override policies (Karmada: `pkg/webhook/{overridepolicy,clusteroverridepolicy}`,
//! `pkg/util/validation/validation.go:ValidateOverrideSpec`).
//!
//! As in Karmada, the overriders of a rule are validated, and those in the deprecated fields are not. A `fieldOverrider`
//! in the deprecated fields beside rules is refused, because it would have no effect; Karmada admits it.

use std::collections::BTreeMap;

use bulkhead_core::label;
use bulkhead_core::model::{FieldOverrider, FieldPatchOperation, OverrideRule, OverriderOperator, Overriders};

use super::denied::Denied;
use super::placement;
use crate::override_policy::OverrideSpec;

/// Maximum size of the annotations of an object: keys and values, in bytes (Kubernetes: `TotalAnnotationSizeLimitB`).
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
const POINTER: &str = "a JSON pointer must be empty or start with a \"/\"";

/// Sets the namespace of selectors that have none. `namespace` is the policy's own; absent for a ClusterOverridePolicy.
pub(super) fn default_spec(spec: &mut OverrideSpec, namespace: Option<&str>) {
    let Some(namespace) = namespace else { return };
    for selector in &mut spec.resource_selectors {
        if selector.namespace.is_empty() {
            namespace.clone_into(&mut selector.namespace);
        }
    }
}

/// Validates a spec after [`default_spec`].
pub(super) fn validate_spec(spec: &OverrideSpec, namespace: Option<&str>) -> Result<(), Denied> {
    let mut denied = Vec::new();
    if let Some(target) = &spec.target_cluster {
        denied.extend(placement::check_affinity(target, "spec.targetCluster"));
        if spec.override_rules.is_some() {
            let detail = "overrideRules and targetCluster cannot co-exist";
            denied.push(Denied::invalid("spec.targetCluster", target, detail));
        }
    }
    if spec.override_rules.is_some() && !spec.overriders.is_empty() {
        let detail = "overrideRules and overriders cannot co-exist";
        denied.push(Denied::invalid("spec.overriders", &spec.overriders, detail));
    }
    for (index, rule) in spec.override_rules.iter().flatten().enumerate() {
        check_rule(rule, &format!("spec.overrideRules[{index}]"), &mut denied);
    }
    for (index, selector) in spec.resource_selectors.iter().enumerate() {
        if namespace.is_some_and(|namespace| namespace != selector.namespace) {
            let field = format!("spec.resourceSelectors[{index}].namespace");
            let detail = "the resource selector must be in the namespace of the policy";
            denied.push(Denied::invalid(field, &selector.namespace, detail));
        }
    }
    denied.into_iter().next().map_or(Ok(()), Err)
}

fn check_rule(rule: &OverrideRule, path: &str, denied: &mut Vec<Denied>) {
    let Overriders {
        image_overrider,
        labels_overrider,
        annotations_overrider,
        field_overrider,
        ..
    } = &rule.overriders;
    let at = |list: &str, index: usize| format!("{path}.overriders.{list}[{index}]");
    for (index, overrider) in annotations_overrider.iter().enumerate() {
        let field = format!("{}.value", at("annotationsOverrider", index));
        check_annotations(&overrider.value, &field, denied);
    }
    for (index, overrider) in labels_overrider.iter().enumerate() {
        let field = format!("{}.value", at("labelsOverrider", index));
        check_labels(&overrider.value, &field, denied);
    }
    for (index, overrider) in image_overrider.iter().enumerate() {
        if let Some(predicate) = &overrider.predicate {
            let field = format!("{}.predicate.path", at("imageOverrider", index));
            denied.extend(check_pointer(field, &predicate.path));
        }
    }
    for (index, overrider) in field_overrider.iter().enumerate() {
        check_field(overrider, &at("fieldOverrider", index), denied);
    }
    if let Some(target) = &rule.target_cluster {
        denied.extend(placement::check_affinity(target, &format!("{path}.targetCluster")));
    }
}

/// Checks annotations (Kubernetes: `apimachinery/pkg/api/validation:ValidateAnnotations`). The case of keys is free.
fn check_annotations(annotations: &BTreeMap<String, String>, field: &str, denied: &mut Vec<Denied>) {
    for key in annotations.keys() {
        let problems = label::key_problems(&key.to_lowercase());
        denied.extend(problems.into_iter().map(|detail| Denied::invalid(field, key, detail)));
    }
    let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATION_BYTES_MAX {
        denied.push(Denied::too_long(field, ANNOTATION_BYTES_MAX));
    }
}

/// Checks labels (Kubernetes: `apimachinery/pkg/apis/meta/v1/validation:ValidateLabels`).
fn check_labels(labels: &BTreeMap<String, String>, field: &str, denied: &mut Vec<Denied>) {
    for (key, value) in labels {
        let problems = label::key_problems(key);
        denied.extend(problems.into_iter().map(|detail| Denied::invalid(field, key, detail)));
        let problem = label::check_value(value).err();
        denied.extend(problem.map(|detail| Denied::invalid(field, value, detail)));
    }
}

fn check_field(overrider: &FieldOverrider, path: &str, denied: &mut Vec<Denied>) {
    match (overrider.json.is_empty(), overrider.yaml.is_empty()) {
        (true, true) => denied.push(Denied::required(path, "one of json and yaml must be set")),
        (false, false) => denied.push(Denied::invalid(path, overrider, "only one of json and yaml may be set")),
        _ => {}
    }
    denied.extend(check_pointer(format!("{path}.fieldPath"), &overrider.field_path));
    for (list, operations) in [("json", &overrider.json), ("yaml", &overrider.yaml)] {
        for (index, operation) in operations.iter().enumerate() {
            check_operation(operation, &format!("{path}.{list}[{index}]"), denied);
        }
    }
}

fn check_operation(operation: &FieldPatchOperation, path: &str, denied: &mut Vec<Denied>) {
    denied.extend(check_pointer(format!("{path}.subPath"), &operation.sub_path));
    let (value, field) = (&operation.value, format!("{path}.value"));
    match operation.operator {
        OverriderOperator::Add | OverriderOperator::Replace if value.is_null() => {
            let detail = "a value is required for add and replace";
            denied.push(Denied::invalid(field, value, detail));
        }
        OverriderOperator::Remove if !value.is_null() => {
            denied.push(Denied::invalid(field, value, "a value is not allowed for remove"));
        }
        _ => {}
    }
}

fn check_pointer(field: String, pointer: &str) -> Option<Denied> {
    let is_valid = pointer.is_empty() || pointer.starts_with('/');
    (!is_valid).then(|| Denied::invalid(field, pointer, POINTER))
}
