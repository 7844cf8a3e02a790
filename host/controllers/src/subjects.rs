//! Objects as subjects of records and of events.

use bulkhead_api::AnyBinding;
use bulkhead_core::journal::{Input, Subject};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};

use crate::flags::Flags;

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

/// Returns the subjects of an event about a step of a failover: the template, and the binding too unless a
/// FailoverRecord has its steps.
pub(crate) fn subjects_of_step<B: AnyBinding>(binding: &B, flags: &Flags) -> Vec<ObjectReference> {
    let template = template_of(binding);
    if flags.failover_records {
        vec![template]
    } else {
        vec![about(binding), template]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::binding_of_web;

    #[test]
    fn a_step_has_no_event_at_a_binding_with_a_record() {
        let (binding, mut flags) = (binding_of_web(&json!({})), Flags::default());
        let kinds = |flags: &Flags| {
            let subjects = subjects_of_step(&binding, flags).into_iter();
            subjects.filter_map(|about| about.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&flags), ["Deployment"]);
        flags.failover_records = false;
        assert_eq!(kinds(&flags), ["ResourceBinding", "Deployment"]);
    }
}
