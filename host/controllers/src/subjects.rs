//! Objects as subjects of records and of events.

use bulkhead_api::AnyBinding;
use bulkhead_core::journal::{Input, Subject};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};

/// Returns the version of an object, for the journal.
pub(crate) fn input<K>(object: &K) -> Input
where
    K: Resource<DynamicType = ()>,
{
    Input {
        subject: subject(object),
        resource_version: object.resource_version().unwrap_or_default(),
    }
}

/// Returns an object as the subject of a decision.
pub(crate) fn subject<K>(object: &K) -> Subject
where
    K: Resource<DynamicType = ()>,
{
    Subject::new(
        &K::kind(&()),
        &object.namespace().unwrap_or_default(),
        &object.name_any(),
    )
}

/// Returns an object as the subject of an event.
pub(crate) fn about<K>(object: &K) -> ObjectReference
where
    K: Resource<DynamicType = ()>,
{
    object.object_ref(&())
}

/// Returns the resource template of a binding as the subject of an event.
pub(crate) fn template_of<B: AnyBinding>(binding: &B) -> ObjectReference {
    let resource = &binding.spec().resource;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ObjectReference {
        api_version: some(&resource.api_version),
        kind: some(&resource.kind),
        namespace: some(&resource.namespace),
        name: some(&resource.name),
        uid: some(&resource.uid),
        ..ObjectReference::default()
    }
}
