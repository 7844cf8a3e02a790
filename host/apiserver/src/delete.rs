//! Rules of deletion: preconditions, finalizers, garbage collection, namespaces.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::definition;
use crate::json::{array, text};
use crate::object::{Object, ObjectKey, has_finalizers, owner_uids};
use crate::shape::bump_generation;
use crate::status_error::StatusError;
use crate::write::Writer;

/// Namespaces that cannot be deleted (Kubernetes: `plugin/pkg/admission/namespace/lifecycle`).
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];
/// Finalizer of an object that waits for the deletion of its dependents.
const FOREGROUND: &str = "foregroundDeletion";

/// Propagation policy: the treatment of objects that name the deleted one as an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted after the owner, before the request returns.
    #[default]
    Background,
    /// The owner stays, terminating, until the dependents that block its deletion are gone.
    Foreground,
    /// Dependents stay and lose the owner reference.
    Orphan,
}

/// The part of `metav1.DeleteOptions` that this server honours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Precondition: uid of the object.
    pub uid: Option<String>,
    /// Precondition: resourceVersion of the object.
    pub resource_version: Option<String>,
    /// Treatment of dependents.
    pub propagation: Propagation,
}

impl DeleteOptions {
    /// Parses a `metav1.DeleteOptions` object; an absent field means no precondition.
    pub(crate) fn parse(value: &Value) -> Self {
        let precondition = |pointer| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            uid: precondition("/preconditions/uid"),
            resource_version: precondition("/preconditions/resourceVersion"),
            propagation: Propagation::parse(text(value, "/propagationPolicy")),
        }
    }
}

impl Propagation {
    pub(crate) fn parse(policy: &str) -> Self {
        match policy {
            "Orphan" => Self::Orphan,
            "Foreground" => Self::Foreground,
            _ => Self::Background,
        }
    }
}

/// Result of a deletion.
#[derive(Clone, Debug)]
pub enum Deletion {
    /// The object was removed; carries its last state.
    Removed(Arc<Object>),
    /// The object stays, terminating, until its finalizers are removed or, for a namespace, its contents are gone.
    Terminating(Arc<Object>),
}

impl Writer<'_> {
    pub(crate) fn delete(&mut self, key: &ObjectKey, options: &DeleteOptions) -> Result<Deletion, StatusError> {
        let kind = self.state.kind(key.kind);
        if kind.is_namespace() && IMMORTAL.contains(&key.name.as_str()) {
            return Err(StatusError::forbidden(
                &kind,
                &key.name,
                "this namespace may not be deleted",
            ));
        }
        let object = self.existing(key)?;
        self.check_preconditions(key, &object, options)?;
        if self.terms.dry_run {
            return Ok(Deletion::Removed(object));
        }
        let mut pending = VecDeque::new();
        match options.propagation {
            Propagation::Background => {}
            Propagation::Orphan => self.orphan_dependents(object.uid()),
            Propagation::Foreground => self.wait_for_dependents(key, &object, &mut pending),
        }
        self.mark_deleted(key);
        pending.push_back(key.clone());
        self.collect(&mut pending);
        Ok(match self.state.get_key(key) {
            Some(kept) => Deletion::Terminating(Arc::clone(kept)),
            None => Deletion::Removed(object),
        })
    }

    fn check_preconditions(
        &self,
        key: &ObjectKey,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        let version = object.resource_version().to_string();
        let checks = [
            ("UID", options.uid.as_deref(), object.uid()),
            ("ResourceVersion", options.resource_version.as_deref(), &version),
        ];
        for (what, expected, actual) in checks {
            if let Some(expected) = expected
                && expected != actual
            {
                let why =
                    format!("Precondition failed: {what} in precondition: {expected}, {what} in object meta: {actual}");
                return Err(StatusError::conflict(&self.state.kind(key.kind), &key.name, &why));
            }
        }
        Ok(())
    }

    /// Completes the deletion of a terminating object whose last finalizer was removed.
    pub(crate) fn finish_deletion(&mut self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.collect(&mut VecDeque::from([key.clone()]));
        match self.state.get_key(key) {
            Some(kept) => Some(Arc::clone(kept)),
            None => None,
        }
    }

    /// Sets `deletionTimestamp` on an object whose deletion is blocked by finalizers or by the contents of a
    /// namespace.
    fn mark_deleted(&mut self, key: &ObjectKey) {
        let Some(object) = self.state.get_key(key).cloned() else {
            return;
        };
        let is_namespace = self.state.kind(key.kind).is_namespace();
        let is_held = has_finalizers(object.content()) || (is_namespace && !self.state.namespace_is_empty(&key.name));
        if object.is_terminating() || !is_held {
            return;
        }
        let mut content = object.content().clone();
        content.edit("metadata", |metadata| {
            metadata["deletionTimestamp"] = json!(rfc3339(self.rules.clock.now()));
            metadata["deletionGracePeriodSeconds"] = json!(0);
            if metadata.get("generation").is_some() {
                bump_generation(metadata);
            }
        });
        if is_namespace {
            content.edit("status", |status| status["phase"] = json!("Terminating"));
        }
        self.state.put(key.clone(), content);
    }

    /// Removes each pending object that nothing blocks any more, then its dependents.
    fn collect(&mut self, pending: &mut VecDeque<ObjectKey>) {
        while let Some(key) = pending.pop_front() {
            let Some(object) = self.state.get_key(&key).cloned() else {
                continue;
            };
            if self.state.kind(key.kind).is_namespace() && !self.state.namespace_is_empty(&key.name) {
                self.empty_namespace(&key.name, pending);
                continue;
            }
            if has_finalizers(object.content()) {
                continue;
            }
            self.state.take(key.clone());
            self.undefine(&key, &object);
            self.release_dependents(object.uid(), pending);
            self.release_owners(&object, pending);
            self.release_namespace(&key.namespace, pending);
        }
    }

    /// Removes the objects of a definition's kinds and stops serving the kinds.
    fn undefine(&mut self, key: &ObjectKey, object: &Object) {
        if !self.state.kind(key.kind).is_definition() {
            return;
        }
        for kind in definition::kinds(object.content()).unwrap_or_default() {
            let Some(id) = self.state.kind_by_path(&kind.group, &kind.version, &kind.plural) else {
                continue;
            };
            let objects = self.state.table(id).scan(None, None);
            let keys: Vec<_> = objects
                .map(|object| ObjectKey::new(id, object.namespace(), object.name()))
                .collect();
            for key in keys {
                self.state.take(key);
            }
            self.state.unregister(id);
        }
    }

    /// Blocks the removal of an object until its dependents are gone, and marks the dependents as deleted.
    fn wait_for_dependents(&mut self, key: &ObjectKey, object: &Object, pending: &mut VecDeque<ObjectKey>) {
        let dependents = self.state.dependents(object.uid());
        if dependents.is_empty() {
            return;
        }
        let mut content = object.content().clone();
        let mut finalizers = array(&content, "/metadata/finalizers").to_vec();
        if !finalizers.iter().any(|known| known == FOREGROUND) {
            finalizers.push(json!(FOREGROUND));
            content.set_metadata("finalizers", finalizers);
            self.state.put(key.clone(), content);
        }
        for dependent in dependents {
            self.mark_deleted(&dependent);
            pending.push_back(dependent);
        }
    }

    /// Resumes the deletion of owners whose last blocking dependent was removed.
    fn release_owners(&mut self, gone: &Object, pending: &mut VecDeque<ObjectKey>) {
        for uid in owner_uids(gone.content()) {
            let Some(key) = self.state.key_of_uid(uid) else {
                continue;
            };
            let Some(owner) = self.state.get_key(&key).cloned() else {
                continue;
            };
            let finalizers = array(owner.content(), "/metadata/finalizers");
            let blocks = |key: &ObjectKey| {
                let references = self
                    .state
                    .get_key(key)
                    .map(|object| array(object.content(), "/metadata/ownerReferences"));
                let mut references = references.unwrap_or_default().iter();
                references.any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
            };
            let waits = finalizers.iter().any(|known| known == FOREGROUND);
            if waits && !self.state.dependents(uid).iter().any(blocks) {
                let remaining: Vec<Value> = finalizers
                    .iter()
                    .filter(|known| **known != FOREGROUND)
                    .cloned()
                    .collect();
                let mut content = owner.content().clone();
                content.set_metadata("finalizers", remaining);
                self.state.put(key.clone(), content);
                pending.push_back(key);
            }
        }
    }

    /// Requests the deletion of all objects in a namespace that are not being deleted yet.
    fn empty_namespace(&mut self, namespace: &str, pending: &mut VecDeque<ObjectKey>) {
        let keys: Vec<ObjectKey> = self
            .state
            .tables()
            .flat_map(|(id, table)| {
                table
                    .scan(Some(namespace), None)
                    .filter(|object| !object.is_terminating())
                    .map(move |object| ObjectKey::new(id, namespace, object.name()))
            })
            .collect();
        for key in keys {
            self.mark_deleted(&key);
            pending.push_back(key);
        }
    }

    /// Removes a terminating namespace after its last object was removed.
    fn release_namespace(&mut self, namespace: &str, pending: &mut VecDeque<ObjectKey>) {
        if namespace.is_empty() || !self.state.namespace_is_empty(namespace) {
            return;
        }
        if let Some(kind) = self.state.kind_by_path("", "v1", "namespaces")
            && self
                .state
                .get(kind, "", namespace)
                .is_some_and(|found| found.is_terminating())
        {
            pending.push_back(ObjectKey::new(kind, "", namespace));
        }
    }

    /// Garbage collection: deletes dependents whose last existing owner was removed.
    fn release_dependents(&mut self, uid: &str, pending: &mut VecDeque<ObjectKey>) {
        for key in self.state.dependents(uid) {
            let Some(dependent) = self.state.get_key(&key).cloned() else {
                continue;
            };
            if owner_uids(dependent.content()).any(|owner| self.state.uid_exists(owner)) {
                self.drop_owner(&key, &dependent, uid);
            } else {
                self.mark_deleted(&key);
                pending.push_back(key);
            }
        }
    }

    fn orphan_dependents(&mut self, uid: &str) {
        for key in self.state.dependents(uid) {
            if let Some(dependent) = self.state.get_key(&key).cloned() {
                self.drop_owner(&key, &dependent, uid);
            }
        }
    }

    fn drop_owner(&mut self, key: &ObjectKey, dependent: &Object, uid: &str) {
        let mut content = dependent.content().clone();
        let owners: Vec<Value> = array(&content, "/metadata/ownerReferences")
            .iter()
            .filter(|owner| owner["uid"] != uid)
            .cloned()
            .collect();
        content.set_metadata("ownerReferences", owners);
        self.state.put(key.clone(), content);
    }
}
