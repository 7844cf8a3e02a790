//! The rules of creating and updating an object.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::admission::{Admission, AdmissionRequest, DenialReason, Operation};
use crate::clock::{Clock, rfc3339};
use crate::kind::{KindId, ResourceKind};
use crate::object::{Object, ObjectKey, array, has_finalizers, is_terminating, text};
use crate::state::State;
use crate::status_error::StatusError;

/// What the rules need besides the state.
pub(crate) struct Rules {
    pub(crate) clock: Clock,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) auto_create_namespaces: bool,
}

/// Which part of an object an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything, except the status of kinds with a status subresource.
    Main,
    /// The status and nothing else.
    Status,
}

/// A write transaction: the locked state and the rules to apply.
pub(crate) struct Writer<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) rules: &'a Rules,
}

/// Metadata that only the server sets.
const SERVER_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

impl Writer<'_> {
    pub(crate) fn create(
        &mut self,
        kind_id: KindId,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, StatusError> {
        let kind = self.state.kind(kind_id);
        let name = self.prepare_new(&kind, namespace, &mut object)?;
        self.check_namespace(&kind, namespace, &name)?;
        if self.state.get(kind_id, namespace, &name).is_some() {
            return Err(StatusError::already_exists(&kind, &name));
        }
        if kind.status_subresource {
            remove(&mut object, "status");
        }
        if kind.is_namespace() {
            object["status"] = json!({"phase": "Active"});
        }
        self.admit(&kind, namespace, None, &mut object)?;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(self.state.rng.uuid());
        object["metadata"]["creationTimestamp"] = json!(rfc3339(self.rules.clock.now()));
        object["metadata"]["generation"] = json!(1);
        Ok(self.state.put(ObjectKey::new(kind_id, namespace, &name), object))
    }

    /// Checks what a client may write and returns the new object's name.
    fn prepare_new(&mut self, kind: &ResourceKind, namespace: &str, object: &mut Value) -> Result<String, StatusError> {
        check_shape(kind, namespace, object)?;
        if !text(object, "/metadata/resourceVersion").is_empty() {
            return Err(StatusError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let metadata = metadata_mut(object);
        for field in SERVER_METADATA {
            metadata.remove(field);
        }
        let given = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        let name = if !given.is_empty() {
            given.to_owned()
        } else if !prefix.is_empty() {
            format!("{prefix}{}", self.state.rng.name_suffix())
        } else {
            return Err(StatusError::invalid(kind, "", "metadata.name", "name or generateName is required"));
        };
        let is_path_segment = !matches!(name.as_str(), "." | "..") && !name.contains(['/', '%']);
        if name.len() > 253 || !is_path_segment {
            return Err(StatusError::invalid(
                kind,
                &name,
                "metadata.name",
                "must be a path segment of at most 253 characters",
            ));
        }
        Ok(name)
    }

    fn check_namespace(&mut self, kind: &ResourceKind, namespace: &str, name: &str) -> Result<(), StatusError> {
        // A server without the Namespace kind has nothing to check against.
        let Some(namespaces) = self.state.kind_by_path("", "v1", "namespaces") else {
            return Ok(());
        };
        if !kind.is_namespaced() {
            return Ok(());
        }
        match self.state.get(namespaces, "", namespace) {
            Some(found) if found.is_terminating() => Err(StatusError::forbidden(
                kind,
                name,
                &format!("unable to create new content in namespace {namespace} because it is being terminated"),
            )),
            Some(_) => Ok(()),
            None if self.rules.auto_create_namespaces => {
                self.create(namespaces, "", json!({"metadata": {"name": namespace}})).map(|_| ())
            }
            None => Err(StatusError::not_found(&self.state.kind(namespaces), namespace)),
        }
    }

    pub(crate) fn update(
        &mut self,
        key: &ObjectKey,
        part: Part,
        mut object: Value,
    ) -> Result<Arc<Object>, StatusError> {
        let kind = self.state.kind(key.kind);
        let old = self.existing(key)?;
        check_shape(&kind, &key.namespace, &mut object)?;
        check_identity(&kind, &old, &object)?;
        let mut new = match part {
            Part::Main => object,
            Part::Status => with_status_of(old.value(), &object),
        };
        keep_server_fields(&kind, part, old.value(), &mut new);
        if part == Part::Main {
            self.admit(&kind, &key.namespace, Some(old.value()), &mut new)?;
            check_new_finalizers(&kind, old.value(), &new)?;
        }
        if new == **old.value() {
            return Ok(old);
        }
        if differs_outside_metadata_and_status(old.value(), &new) {
            bump_generation(&mut new);
        }
        let stored = self.state.put(key.clone(), new);
        if stored.is_terminating() && !has_finalizers(stored.value()) {
            return Ok(self.finish_deletion(key).unwrap_or(stored));
        }
        Ok(stored)
    }

    pub(crate) fn existing(&self, key: &ObjectKey) -> Result<Arc<Object>, StatusError> {
        self.state.get_key(key).cloned().ok_or_else(|| StatusError::not_found(&self.state.kind(key.kind), &key.name))
    }

    fn admit(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), StatusError> {
        let Some(admission) = &self.rules.admission else {
            return Ok(());
        };
        let name = text(object, "/metadata/name").to_owned();
        let (rng, table) = self.state.rng_and_table(kind);
        let objects = || table.into_iter().flat_map(|table| table.scan(None, None));
        admission
            .admit(AdmissionRequest {
                operation: if old.is_some() { Operation::Update } else { Operation::Create },
                kind,
                namespace: kind.is_namespaced().then_some(namespace),
                old,
                object,
                others: &|| objects().map(|object| Value::clone(object.value())).collect(),
                ids: &mut || rng.uuid(),
                now: self.rules.clock.now(),
            })
            .map_err(|denied| match denied.reason {
                DenialReason::Forbidden => StatusError::forbidden(kind, &name, &denied.message),
                DenialReason::Invalid => StatusError::invalid(kind, &name, "object", &denied.message),
            })
    }
}

/// Increases `metadata.generation`.
pub(crate) fn bump_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_u64().unwrap_or_default();
    object["metadata"]["generation"] = json!(generation + 1);
}

/// `old` with the status of `object`.
fn with_status_of(old: &Value, object: &Value) -> Value {
    let mut new = old.clone();
    match object.get("status") {
        Some(status) => new["status"] = status.clone(),
        None => remove(&mut new, "status"),
    }
    new
}

/// Completes apiVersion, kind and namespace, and refuses an object that contradicts its path.
fn check_shape(kind: &ResourceKind, namespace: &str, object: &mut Value) -> Result<(), StatusError> {
    let Some(fields) = object.as_object_mut() else {
        return Err(StatusError::bad_request("the body is not a JSON object"));
    };
    for (field, expected) in [("apiVersion", kind.api_version()), ("kind", kind.kind.to_string())] {
        match fields.get(field).and_then(Value::as_str) {
            None | Some("") => {
                fields.insert(field.to_owned(), json!(expected));
            }
            Some(given) if given == expected => {}
            Some(given) => {
                return Err(StatusError::bad_request(format!(
                    "{field} \"{given}\" in the body does not match \"{expected}\" expected by the path"
                )));
            }
        }
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(StatusError::bad_request("metadata is not a JSON object"));
    };
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != namespace {
        return Err(StatusError::bad_request(format!(
            "the namespace of the object ({given}) does not match the namespace on the URL ({namespace})"
        )));
    }
    if kind.is_namespaced() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    } else {
        metadata.remove("namespace");
    }
    Ok(())
}

/// Refuses an update that is meant for another object or another version of it.
fn check_identity(kind: &ResourceKind, old: &Object, object: &Value) -> Result<(), StatusError> {
    let name = text(object, "/metadata/name");
    if name != old.name() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            old.name()
        )));
    }
    let uid = text(object, "/metadata/uid");
    if !uid.is_empty() && uid != old.uid() {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid());
        return Err(StatusError::conflict(kind, name, &why));
    }
    let version = text(object, "/metadata/resourceVersion");
    if !matches!(version, "" | "0") && version != text(old.value(), "/metadata/resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(StatusError::conflict(kind, name, why));
    }
    Ok(())
}

/// Carries over what a client cannot change.
fn keep_server_fields(kind: &ResourceKind, part: Part, old: &Value, new: &mut Value) {
    let metadata = metadata_mut(new);
    for field in SERVER_METADATA.into_iter().chain(["resourceVersion"]) {
        match old["metadata"].get(field) {
            Some(kept) => metadata.insert(field.to_owned(), kept.clone()),
            None => metadata.remove(field),
        };
    }
    if part == Part::Main && kind.status_subresource {
        match old.get("status") {
            Some(status) => new["status"] = status.clone(),
            None => remove(new, "status"),
        }
    }
}

fn check_new_finalizers(kind: &ResourceKind, old: &Value, new: &Value) -> Result<(), StatusError> {
    let known = array(old, "/metadata/finalizers");
    let adds = array(new, "/metadata/finalizers").iter().any(|finalizer| !known.contains(finalizer));
    if is_terminating(old) && adds {
        return Err(StatusError::invalid(
            kind,
            text(old, "/metadata/name"),
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted",
        ));
    }
    Ok(())
}

fn differs_outside_metadata_and_status(old: &Value, new: &Value) -> bool {
    let counted = |value: &Value, other: &Value| {
        value.as_object().is_some_and(|fields| {
            fields.iter().any(|(field, content)| {
                !matches!(field.as_str(), "metadata" | "status") && other.get(field) != Some(content)
            })
        })
    };
    counted(old, new) || counted(new, old)
}

/// The metadata of an object that passed [`check_shape`].
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("metadata was just made an object")
}

fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
