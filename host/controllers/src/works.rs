//! Relations of Works: to their binding, their cluster and their objects.

use std::sync::LazyLock;

use bulkhead_api::Work;
use bulkhead_api::work::Manifest;
use bulkhead_core::journal::Subject;
use bulkhead_core::names::{self, keys};
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::excerpt::Fields;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use kube::ResourceExt;
use serde_json::Value;

/// Returns the binding that a Work names as its own.
pub(crate) fn binding_of(work: &Work) -> Key {
    let annotation = |key| work.annotations().get(key).cloned();
    match annotation(keys::RESOURCE_BINDING_NAME) {
        Some(name) => Key::new(annotation(keys::RESOURCE_BINDING_NAMESPACE).unwrap_or_default(), name),
        None => Key::new("", annotation(keys::CLUSTER_RESOURCE_BINDING_NAME).unwrap_or_default()),
    }
}

/// Returns the cluster that a Work is for.
pub(crate) fn cluster_of(work: &Work) -> String {
    let namespace = work.namespace().unwrap_or_default();
    names::cluster_of_execution_namespace(&namespace)
        .unwrap_or_default()
        .to_owned()
}

/// Returns the binding that a Work belongs to, as the subject of a decision.
pub(crate) fn binding_subject(work: &Work) -> Subject {
    let binding = binding_of(work);
    let kind = if binding.namespace.is_empty() {
        "ClusterResourceBinding"
    } else {
        "ResourceBinding"
    };
    Subject::new(kind, &binding.namespace, &binding.name)
}

/// Returns the object of a manifest.
pub(crate) fn object_of(manifest: &Manifest) -> Result<Value, Error> {
    manifest.value().map_err(unreadable)
}

/// Returns the fields of the object of a manifest that [`identify`] and [`crate::member_owner::of`] read.
pub(crate) fn identity_of(manifest: &Manifest) -> Result<Value, Error> {
    static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&["apiVersion", "kind", "metadata.annotations"]));
    FIELDS.read(manifest.text()).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::Undecided(format!("a manifest of the Work cannot be read: {error}"))
}

/// Returns kind and key of a manifest.
pub(crate) fn identify(manifest: &Value) -> (ObjectKind, Key) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &manifest["metadata"];
    (
        ObjectKind::new(text(&manifest["apiVersion"]), text(&manifest["kind"])),
        Key::new(text(&metadata["namespace"]), text(&metadata["name"])),
    )
}

/// Returns the Work that a managed object in a member cluster came from.
pub(crate) fn work_of(object: &KeptObject) -> Option<Key> {
    let [namespace, name] = object.some_annotations([keys::WORK_NAMESPACE, keys::WORK_NAME]);
    Some(Key::new(namespace?, name?))
}
