//! Defaults and validation of Works: ids on manifests, and a check that manifests can be applied (Karmada:
//! `pkg/webhook/work/mutating.go`; the check for names is Bulkhead's own).

use bulkhead_core::names::keys;
use serde_json::Value;

use super::denied::Denied;
use super::{label, labels, text};

/// Refuses manifests without API version, kind or name: they could not be applied or identified.
pub(super) fn validate(work: &Value) -> Result<(), Denied> {
    let manifests = work.pointer("/spec/workload/manifests").and_then(Value::as_array);
    for (index, manifest) in manifests.into_iter().flatten().enumerate() {
        for (field, pointer) in [
            ("apiVersion", "/apiVersion"),
            ("kind", "/kind"),
            ("metadata.name", "/metadata/name"),
        ] {
            if text(manifest, pointer).is_none_or(str::is_empty) {
                return Err(Denied::required(
                    format!("spec.workload.manifests[{index}].{field}"),
                    "",
                ));
            }
        }
    }
    Ok(())
}

/// Sets the Work's permanent id on its manifests, and updates their annotation of managed labels.
pub(super) fn label_manifests(work: &mut Value) {
    let Some(id) = label(work, keys::WORK_ID).map(str::to_owned) else {
        return;
    };
    let manifests = work
        .pointer_mut("/spec/workload/manifests")
        .and_then(Value::as_array_mut);
    for manifest in manifests.into_iter().flatten() {
        let Ok(labels) = labels(manifest) else { continue };
        labels.insert(keys::WORK_ID.to_owned(), id.clone().into());
        let mut managed: Vec<_> = labels.keys().cloned().collect();
        managed.sort();
        let noted = manifest
            .pointer_mut("/metadata/annotations")
            .and_then(|all| all.get_mut(keys::MANAGED_LABELS));
        if let Some(noted) = noted {
            *noted = managed.join(",").into();
        }
    }
}
