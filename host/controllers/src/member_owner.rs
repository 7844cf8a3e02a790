//! Ownership of objects in member clusters, derived from the marks on them and on their Works.

use std::collections::BTreeMap;

use bulkhead_api::Work;
use bulkhead_core::decide::ownership::{Ownership, OwnershipMetadata, ownership};
use bulkhead_core::names::keys;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::context::Stores;
use crate::dynamic::KeptObject;
use crate::store::Key;

/// Returns the marks of an object in a member.
pub(crate) fn marks(object: &DynamicObject) -> OwnershipMetadata {
    marked(object.labels(), object.annotations())
}

/// Returns the marks of a cached object of a member.
pub(crate) fn marks_of_kept(object: &KeptObject) -> OwnershipMetadata {
    let (labels, annotations) = object.labels_and_annotations();
    marked(&labels, &annotations)
}

fn marked(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> OwnershipMetadata {
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
    let annotations = manifest.pointer("/metadata/annotations");
    let template_uid = annotations.and_then(|all| all.get(keys::TEMPLATE_UID)?.as_str()).unwrap_or_default();
    let key = Key::of(work);
    let ours = OwnershipMetadata {
        managed: true,
        work_id: work.labels().get(keys::WORK_ID).cloned().unwrap_or_default(),
        work: (key.namespace, key.name),
        template_uid: template_uid.to_owned(),
    };
    ownership(object, &ours, |(namespace, name)| stores.works.get(&Key::new(namespace, name)).is_some())
}
