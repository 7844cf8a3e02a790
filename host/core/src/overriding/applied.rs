//! Record of the rules that changed an object (Karmada: `pkg/util/overridemanager/shadow.go`).

use serde_json::{Value, json};

use crate::model::Overriders;

/// Rule that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Namespace of the policy; empty for a ClusterOverridePolicy.
    pub namespace: String,
    /// Name of the policy.
    pub name: String,
    /// Overriders of the rule.
    pub overriders: Overriders,
}

/// Returns the value of the annotation that records rules: a JSON list of `policyName` and `overriders`, by name of the
/// policy and, for one policy, in the order of application. `None` without rules.
///
/// As in Karmada, operations without a value are written with a null.
pub fn record<'a>(applied: impl IntoIterator<Item = &'a Applied>) -> Option<String> {
    let mut applied: Vec<_> = applied.into_iter().collect();
    applied.sort_by(|one, other| one.name.cmp(&other.name));
    let items = applied.iter().map(|rule| {
        let mut overriders = serde_json::to_value(&rule.overriders).unwrap_or_default();
        add_nulls(overriders.get_mut("plaintext"));
        for field in list(overriders.get_mut("fieldOverrider")) {
            add_nulls(field.get_mut("json"));
            add_nulls(field.get_mut("yaml"));
        }
        json!({"policyName": rule.name, "overriders": overriders})
    });
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then(|| Value::Array(items).to_string())
}

fn list(items: Option<&mut Value>) -> &mut [Value] {
    items
        .and_then(Value::as_array_mut)
        .map(Vec::as_mut_slice)
        .unwrap_or_default()
}

fn add_nulls(operations: Option<&mut Value>) {
    for operation in list(operations) {
        if let Some(fields) = operation.as_object_mut() {
            fields.entry("value").or_insert(Value::Null);
        }
    }
}
