//! Ownership of objects in member clusters, derived from the labels and annotations on them and on their Works.

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
    read(
        LABELS.map(|key| object.labels().get(key).cloned()),
        ANNOTATIONS.map(|key| object.annotations().get(key).cloned()),
    )
}

/// Reads the owner that is recorded on a cached object of a member.
pub(crate) fn recorded_on_cached(object: &KeptObject) -> OwnershipMetadata {
    read(object.some_labels(LABELS), object.some_annotations(ANNOTATIONS))
}

/// Labels that name the owner of an object.
const LABELS: [&str; 2] = [keys::MANAGED, keys::WORK_ID];
/// Annotations that name the owner of an object.
const ANNOTATIONS: [&str; 3] = [keys::WORK_NAMESPACE, keys::WORK_NAME, keys::TEMPLATE_UID];

fn read(labels: [Option<String>; 2], annotations: [Option<String>; 3]) -> OwnershipMetadata {
    let [managed, work_id] = labels.map(Option::unwrap_or_default);
    let [work_namespace, work_name, template_uid] = annotations.map(Option::unwrap_or_default);
    OwnershipMetadata {
        managed: managed == "true",
        work_id,
        work: (work_namespace, work_name),
        template_uid,
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
