//! Labels and annotations that tie templates and bindings to the policy that claims them (Karmada:
//! `pkg/detector/claim.go`).

use std::collections::BTreeMap;

use bulkhead_core::names::keys;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::kinds::ObjectKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Dependencies;
use super::claim::Claim;

/// Marks of the policies of one scope.
pub(super) struct Marks {
    /// Label with the permanent ID of the policy.
    pub(super) id: &'static str,
    /// Annotations with its name.
    annotations: &'static [&'static str],
}

/// Marks of PropagationPolicies.
pub(super) const NAMESPACED: Marks = Marks {
    id: keys::PROPAGATION_POLICY_ID,
    annotations: &[keys::PROPAGATION_POLICY_NAMESPACE, keys::PROPAGATION_POLICY_NAME],
};

/// Marks of ClusterPropagationPolicies.
pub(super) const CLUSTER_WIDE: Marks = Marks {
    id: keys::CLUSTER_PROPAGATION_POLICY_ID,
    annotations: &[keys::CLUSTER_PROPAGATION_POLICY_NAME],
};

impl Marks {
    /// Returns the metadata of a merge patch that removes the marks.
    pub(super) fn removal(&self) -> Value {
        let annotations: Value = self
            .annotations
            .iter()
            .map(|key| ((*key).to_owned(), Value::Null))
            .collect();
        json!({"labels": {self.id: null}, "annotations": annotations})
    }
}

/// Returns the metadata of a merge patch that sets the marks of a claim, and removes those of the other scope.
fn metadata(claim: &Claim) -> Value {
    let (marks, other) = if claim.policy.namespace.is_empty() {
        (CLUSTER_WIDE, NAMESPACED)
    } else {
        (NAMESPACED, CLUSTER_WIDE)
    };
    let mut metadata = other.removal();
    metadata["labels"][marks.id] = json!(claim.permanent_id);
    let annotations = &mut metadata["annotations"];
    if claim.policy.namespace.is_empty() {
        annotations[keys::CLUSTER_PROPAGATION_POLICY_NAME] = json!(claim.policy.name);
    } else {
        annotations[keys::PROPAGATION_POLICY_NAMESPACE] = json!(claim.policy.namespace);
        annotations[keys::PROPAGATION_POLICY_NAME] = json!(claim.policy.name);
    }
    metadata
}

/// Marks a template as claimed. Returns the patched template, or `None` if it was marked before.
pub(super) async fn claim_template(
    deps: &Dependencies,
    kind: &ObjectKind,
    template: &KeptObject,
    claim: &Claim,
) -> Result<Option<KeptObject>, Error> {
    let wanted = metadata(claim);
    let (labels, annotations) = (template.labels(), template.annotations());
    if has(&wanted["labels"], &labels) && has(&wanted["annotations"], &annotations) {
        return Ok(None);
    }
    let api = deps
        .templates
        .api(kind, &template.namespace().unwrap_or_default())
        .await?;
    let patch = Patch::Merge(json!({"metadata": wanted}));
    let operation = format!("claiming {} {}", kind.kind, template.name_any());
    let claimed = api.patch(&template.name_any(), &PatchParams::default(), &patch).await;
    claimed.map(Some).map_err(Error::api(operation))
}

/// True if a merge patch changes nothing.
fn has(wanted: &Value, existing: &BTreeMap<String, String>) -> bool {
    wanted
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| existing.get(key).map(String::as_str) == value.as_str())
}

/// Sets the marks of a claim in the metadata of a binding.
pub(super) fn claim_binding(claim: &Claim, binding: &mut ObjectMeta) {
    let wanted = metadata(claim);
    merge(binding.labels.get_or_insert_default(), &wanted["labels"]);
    merge(binding.annotations.get_or_insert_default(), &wanted["annotations"]);
}

fn merge(into: &mut BTreeMap<String, String>, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(value) => drop(into.insert(key.clone(), value.to_owned())),
            None => drop(into.remove(key)),
        }
    }
}
