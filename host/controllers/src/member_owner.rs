//! Ownership of objects in member clusters, derived from the labels and annotations on them and on their Works.

use std::collections::BTreeMap;

use bulkhead_api::Work;
use bulkhead_core::decide::ownership::{Ownership, OwnershipMetadata, ownership};
use bulkhead_core::names::keys;
use bulkhead_runtime::dynamic::KeptObject;
use bulkhead_runtime::key::Key;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::stores::Stores;

/// Reads the owner that is recorded on an object in a member.
pub(crate) fn recorded(object: &DynamicObject) -> OwnershipMetadata {
    read(object.labels(), object.annotations())
}

/// Reads the owner that is recorded on a cached object of a member.
pub(crate) fn recorded_on_cached(object: &KeptObject) -> OwnershipMetadata {
    let (labels, annotations) = object.labels_and_annotations();
    read(&labels, &annotations)
}

fn read(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> OwnershipMetadata {
    let label = |key| labels.get(key).cloned().unwrap_or_default();
    let annotation = |key| annotations.get(key).cloned().unwrap_or_default();
    OwnershipMetadata {
        managed: label(keys::MANAGED) == "true",
        work_id: label(keys::WORK_ID),
        work: (annotation(keys::WORK_NAMESPACE), annotation(keys::WORK_NAME)),
        template_uid: annotation(keys::TEMPLATE_UID),
    }
}

/// Returns the relation of an object in a member to a Work and its manifest.
pub(crate) fn of(stores: &Stores, work: &Work, manifest: &Value, object: &OwnershipMetadata) -> Ownership {
    let template_uid = &manifest["metadata"]["annotations"][keys::TEMPLATE_UID];
    let template_uid = template_uid.as_str().unwrap_or_default();
    let key = Key::of(work);
    let ours = OwnershipMetadata {
        managed: true,
        work_id: work.labels().get(keys::WORK_ID).cloned().unwrap_or_default(),
        work: (key.namespace, key.name),
        template_uid: template_uid.to_owned(),
    };
    ownership(object, &ours, |(namespace, name)| {
        stores.works.get(&Key::new(namespace, name)).is_some()
    })
}
