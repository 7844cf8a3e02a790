//! Shape of an object, and the fields of it that a client can change.

use serde_json::{Map, Value, json};

use crate::content::Content;
use crate::json::{HasFields, array, text};
use crate::kind::ResourceKind;
use crate::object::{Object, is_terminating};
use crate::status_error::StatusError;

/// Metadata that only the server sets.
pub(crate) const SERVER_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// Part of an object that an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything, except the status of kinds with a status subresource.
    Main,
    /// Only the status.
    Status,
}

impl Part {
    /// Returns the name of the subresource; empty for the main resource.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// Increases the generation in the metadata of an object.
pub(crate) fn bump_generation(metadata: &mut Value) {
    let generation = metadata["generation"].as_u64().unwrap_or_default();
    metadata["generation"] = json!(generation + 1);
}

/// Fields of an object that an update of its status reads.
pub(crate) const STATUS_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Returns `old` with the status of `object`.
pub(crate) fn with_status_of(old: &Content, mut object: Value) -> Content {
    let mut new = old.clone();
    new.set("status", object.get_mut("status").map(Value::take));
    new
}

/// Returns true if an update of this part changes nothing.
pub(crate) fn is_same(part: Part, old: &Content, new: &Content) -> bool {
    match part {
        Part::Main => old == new,
        Part::Status => ["metadata", "status"].iter().all(|field| new.has_field_of(old, field)),
    }
}

/// Removes everything except the status and the object's identity.
pub(crate) fn keep_only_status(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|field, _| STATUS_FIELDS.contains(&field.as_str()));
    }
    metadata_mut(object).retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
}

/// Sets missing `apiVersion`, `kind` and namespace. Returns an error if the object contradicts its path.
pub(crate) fn check_shape(kind: &ResourceKind, namespace: &str, object: &mut Value) -> Result<(), StatusError> {
    let Some(fields) = object.as_object_mut() else {
        return Err(StatusError::bad_request("the body is not a JSON object"));
    };
    set_type(
        fields,
        "apiVersion",
        |given| kind.has_api_version(given),
        || kind.api_version(),
    )?;
    set_type(fields, "kind", |given| given == kind.kind, || kind.kind.to_string())?;
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
    if !kind.is_namespaced() {
        metadata.remove("namespace");
    } else if given.is_empty() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    Ok(())
}

/// Sets a missing `apiVersion` or `kind`. Returns an error for another one.
fn set_type(
    fields: &mut Map<String, Value>,
    field: &str,
    is_expected: impl Fn(&str) -> bool,
    expected: impl Fn() -> String,
) -> Result<(), StatusError> {
    match fields.get(field).and_then(Value::as_str) {
        None | Some("") => drop(fields.insert(field.to_owned(), json!(expected()))),
        Some(given) if is_expected(given) => {}
        Some(given) => {
            return Err(StatusError::bad_request(format!(
                "{field} \"{given}\" in the body does not match \"{}\" expected by the path",
                expected()
            )));
        }
    }
    Ok(())
}

/// Rejects an update of a different object or a different version of it.
pub(crate) fn check_identity(kind: &ResourceKind, old: &Object, object: &Value) -> Result<(), StatusError> {
    let name = text(object, "/metadata/name");
    if name != old.name() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            old.name()
        )));
    }
    let uid = text(object, "/metadata/uid");
    if !uid.is_empty() && uid != old.uid() {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.uid()
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    let version = text(object, "/metadata/resourceVersion");
    if !matches!(version, "" | "0") && version != old.resource_version().to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(StatusError::conflict(kind, name, why));
    }
    Ok(())
}

/// Copies the fields that a client cannot change with the main resource.
pub(crate) fn keep_server_fields(kind: &ResourceKind, old: &Content, new: &mut Value) {
    let metadata = metadata_mut(new);
    for field in SERVER_METADATA {
        match old["metadata"].get(field) {
            Some(kept) => metadata.insert(field.to_owned(), kept.clone()),
            None => metadata.remove(field),
        };
    }
    if kind.status_subresource {
        match old.field("status") {
            Some(status) => new["status"] = status.clone(),
            None => remove(new, "status"),
        }
    }
}

pub(crate) fn check_new_finalizers(kind: &ResourceKind, old: &Content, new: &Value) -> Result<(), StatusError> {
    let known = array(old, "/metadata/finalizers");
    let adds = array(new, "/metadata/finalizers")
        .iter()
        .any(|finalizer| !known.contains(finalizer));
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

pub(crate) fn differs_outside_metadata_and_status(old: &Content, new: &Content) -> bool {
    let mut names = old.names().chain(new.names());
    names.any(|name| !matches!(name, "metadata" | "status") && !new.has_field_of(old, name))
}

/// Returns the metadata of an object that passed [`check_shape`].
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]
        .as_object_mut()
        .expect("metadata was just made an object")
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
