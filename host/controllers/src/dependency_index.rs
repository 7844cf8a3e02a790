//! Index of bindings by their dependencies and their dependants.

use bulkhead_api::ResourceBinding;
use bulkhead_core::decide::dependencies;
use bulkhead_core::model::DependentObjectReference;
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::kinds::ObjectKind;
use kube::ResourceExt;

/// Returns the index values of a binding: its dependencies and its dependants. No cluster has such a name.
pub(crate) fn of(binding: &ResourceBinding) -> impl Iterator<Item = String> {
    let needs = references(binding).into_iter();
    let needs = needs.map(|it| need(&ObjectKind::new(it.api_version, it.kind), &it.namespace));
    let dependants = dependencies::dependants(&binding.spec).into_iter();
    needs.chain(dependants.map(|(namespace, name)| names::depended_by_label(&namespace, &name)))
}

/// Returns the index value of the bindings that need objects of a kind in a namespace.
pub(crate) fn need(kind: &ObjectKind, namespace: &str) -> String {
    format!("needs {kind} {namespace}")
}

/// Returns the recorded dependencies of a binding.
pub(crate) fn references(binding: &ResourceBinding) -> Vec<DependentObjectReference> {
    let text = binding.annotations().get(keys::DEPENDENCIES);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}
