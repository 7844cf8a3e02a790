//! Owner of a binding or a Work. Their names include neither the group nor the exact name of the template, so two
//! templates can derive the same one. The first keeps it; the second is refused and retried when the name is free.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bulkhead_api::{AnyBinding, Work};
use bulkhead_core::model::ObjectReference;
use bulkhead_core::names::split_api_version;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::key::Key;
use kube::ResourceExt;

use crate::works::binding_of;

/// Relation of an existing binding to the object that derives its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It is the binding of that object.
    Same,
    /// It is the binding of an earlier object of the same kind and name. Garbage collection deletes it.
    Earlier,
    /// It is the binding of another object, described here.
    Other(String),
}

impl Owner {
    /// Compares the controller reference of a binding with an object, as Karmada does (`pkg/detector`, "different owner
    /// reference UID"). A binding without one was orphaned, or its object is in another namespace: group, kind,
    /// namespace and name decide.
    pub(crate) fn of<B: AnyBinding>(binding: &B, object: &ObjectReference) -> Self {
        let (owners, resource) = (binding.owner_references(), &binding.spec().resource);
        let Some(owner) = owners.iter().find(|owner| owner.controller == Some(true)) else {
            let existing = (
                &resource.namespace,
                group_kind_name(&resource.api_version, &resource.kind, &resource.name),
            );
            let wanted = (
                &object.namespace,
                group_kind_name(&object.api_version, &object.kind, &object.name),
            );
            return if existing == wanted {
                Self::Same
            } else {
                Self::Other(described(resource))
            };
        };
        if owner.uid == object.uid {
            return Self::Same;
        }
        let existing = group_kind_name(&owner.api_version, &owner.kind, &owner.name);
        if existing == group_kind_name(&object.api_version, &object.kind, &object.name) {
            return Self::Earlier;
        }
        Self::Other(described(&ObjectReference {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            ..resource.clone()
        }))
    }
}

/// Returns the fields that identify an object within a namespace. The version of its API group is not one of them.
pub(crate) fn group_kind_name<'a>(api_version: &'a str, kind: &'a str, name: &'a str) -> (&'a str, &'a str, &'a str) {
    (split_api_version(api_version).0, kind, name)
}

/// Returns kind with group, namespace and name of an object.
pub(crate) fn described(object: &ObjectReference) -> String {
    let key = Key::new(&object.namespace, &object.name);
    match split_api_version(&object.api_version).0 {
        "" => format!("{} {key}", object.kind),
        group => format!("{}.{group} {key}", object.kind),
    }
}

/// Refuses a Work that another binding made.
///
/// # Errors
///
/// If the Work belongs to another binding. The error names the Work and both bindings.
pub(crate) fn check_work<B: AnyBinding>(work: &Work, binding: &B) -> Result<(), Error> {
    let (owner, wanted) = (binding_of(work), Key::of(binding));
    if owner.name.is_empty() || owner == wanted {
        return Ok(());
    }
    let work = Key::of(work);
    Err(Error::Undecided(format!(
        "Work {work} belongs to the binding {owner}, not to {wanted}; rename one of the objects"
    )))
}

/// Names that are taken, with the keys that wait for each.
pub(crate) struct Contested<K>(Mutex<BTreeMap<Key, BTreeSet<K>>>);

impl<K> Default for Contested<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Contested<K> {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<K>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that `waiter` waits for a name.
    pub(crate) fn add(&self, name: Key, waiter: K) {
        self.waiting().entry(name).or_default().insert(waiter);
    }

    /// Removes and returns the keys that wait for a name.
    pub(crate) fn take(&self, name: &Key) -> BTreeSet<K> {
        self.waiting().remove(name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_api::ResourceBinding;
    use serde_json::{Value, json};

    use super::*;

    fn gateway(group: &str, uid: &str) -> ObjectReference {
        ObjectReference {
            api_version: format!("{group}/v1"),
            kind: "Gateway".to_owned(),
            namespace: "default".to_owned(),
            name: "public".to_owned(),
            uid: uid.to_owned(),
            resource_version: String::new(),
        }
    }

    fn binding(owners: &Value) -> ResourceBinding {
        serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "public-gateway", "namespace": "default", "ownerReferences": owners},
            "spec": {"resource": gateway("networking.istio.io", "u1")},
        }))
        .unwrap()
    }

    #[test]
    fn a_binding_belongs_to_one_object_of_one_group() {
        let owner = |uid: &str| {
            json!([{
                "apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway", "name": "public", "uid": uid,
                "controller": true,
            }])
        };
        let istio = Owner::Other("Gateway.networking.istio.io default/public".to_owned());
        let check = |owners: Value, group: &str, uid: &str, expected: &Owner| {
            assert_eq!(
                Owner::of(&binding(&owners), &gateway(group, uid)),
                *expected,
                "{owners} {group} {uid}"
            );
        };
        check(owner("u1"), "networking.istio.io", "u1", &Owner::Same);
        check(owner("u1"), "networking.istio.io", "u2", &Owner::Earlier);
        check(owner("u1"), "gateway.networking.k8s.io", "u2", &istio);
        // An object that is served in two groups has one UID.
        check(owner("u1"), "gateway.networking.k8s.io", "u1", &Owner::Same);
        // Orphaned: the same object under a new UID may take it.
        check(json!([]), "networking.istio.io", "u2", &Owner::Same);
        check(json!([]), "gateway.networking.k8s.io", "u2", &istio);
    }
}
