//! What a Work gets before it is stored: ids on its manifests, and a look at whether those can be applied at all
//! (Karmada: `pkg/webhook/work/mutating.go`; that the manifests have names is checked here only).

use bulkhead_core::names::keys;
use serde_json::Value;

use super::denied::Denied;
use super::{label, labels, text};

/// A manifest without kind or name could never be applied, nor could anybody say which one it is.
pub(super) fn validate(work: &Value) -> Result<(), Denied> {
    let manifests = work.pointer("/spec/workload/manifests").and_then(Value::as_array);
    for (index, manifest) in manifests.into_iter().flatten().enumerate() {
        for (field, pointer) in [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")]
        {
            if text(manifest, pointer).is_none_or(str::is_empty) {
                return Err(Denied::required(format!("spec.workload.manifests[{index}].{field}"), ""));
            }
        }
    }
    Ok(())
}

/// Puts the Work's permanent id on its manifests, and into their notes of managed labels.
pub(super) fn label_manifests(work: &mut Value) {
    let Some(id) = label(work, keys::WORK_ID).map(str::to_owned) else { return };
    let manifests = work.pointer_mut("/spec/workload/manifests").and_then(Value::as_array_mut);
    for manifest in manifests.into_iter().flatten() {
        let Ok(labels) = labels(manifest) else { continue };
        labels.insert(keys::WORK_ID.to_owned(), id.clone().into());
        let mut managed: Vec<_> = labels.keys().cloned().collect();
        managed.sort();
        let noted = manifest.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(keys::MANAGED_LABELS));
        if let Some(noted) = noted {
            *noted = managed.join(",").into();
        }
    }
}
