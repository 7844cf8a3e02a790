//! `metadata.managedFields`: the manager that last set each field, and the changes that an apply may make.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::merge::{compare, fields, merge, remove};
use super::set::FieldSet;
use crate::clock::rfc3339;
use crate::kind::ResourceKind;
use crate::kubectl::topology::Place;
use crate::status_error::StatusError;

/// Maximum number of `Update` entries. If there are more, the oldest ones are merged, as in Kubernetes.
const UPDATERS_MAX: usize = 10;

/// Author and time of a write.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    /// Name of the field manager.
    pub(crate) manager: String,
    /// Subresource that is written; empty for the main resource.
    pub(crate) subresource: &'static str,
    /// Time of the server's clock.
    pub(crate) now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Apply,
    Update,
}

/// Owner of a set of fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Manager {
    name: String,
    operation: Operation,
    api_version: String,
    subresource: String,
}

#[derive(Clone, Debug)]
struct Owned {
    set: FieldSet,
    time: String,
}

type Managers = BTreeMap<Manager, Owned>;

/// Result of an apply.
pub(crate) enum Applied {
    /// Object to be written in place of the live one.
    Changed(Value),
    /// No change.
    Unchanged,
}

/// Sets the managed fields of a new object.
pub(crate) fn created(kind: &ResourceKind, object: &mut Value, author: &Author) {
    let set = all_fields(Place::root(kind), &owned_part(object));
    let mut managers = Managers::new();
    own(&mut managers, author.updater(kind), set, author);
    write(object, &managers);
}

/// Updates the managed fields of a changed object. `given` are the managed fields sent by the client, which may edit
/// them.
pub(crate) fn updated(kind: &ResourceKind, old: &Value, new: &mut Value, given: Option<&Value>, author: &Author) {
    let place = Place::root(kind);
    let mut managers = match given.filter(|_| author.subresource.is_empty()) {
        Some(given) if is_reset(given) => Managers::new(),
        Some(given) if given.as_array().is_some_and(|entries| !entries.is_empty()) => read(given),
        _ => read(&old["metadata"]["managedFields"]),
    };
    let difference = compare(place, &owned_part(old), &owned_part(new));
    let me = author.updater(kind);
    let touched = difference.changed.union(&difference.removed);
    for (_, owned) in managers.iter_mut().filter(|(manager, _)| **manager != me) {
        owned.set = owned.set.without(&touched);
    }
    let before = managers.get(&me).map(|owned| owned.set.clone()).unwrap_or_default();
    let after = before.union(&difference.changed).without(&difference.removed);
    own(&mut managers, me, after, author);
    managers.retain(|_, owned| !owned.set.is_empty());
    bound(&mut managers);
    write(new, &managers);
}

/// Applies a configuration to an object; `live` is absent if the object does not exist.
///
/// # Errors
///
/// 409 if another manager owns a field that would change, unless `force` is set.
pub(crate) fn apply(
    kind: &ResourceKind,
    live: Option<&Value>,
    configuration: &Value,
    author: &Author,
    force: bool,
) -> Result<Applied, StatusError> {
    let place = Place::root(kind);
    let empty = json!({});
    let mut managers = live
        .map(|live| read(&live["metadata"]["managedFields"]))
        .unwrap_or_default();
    let live_part = live.map_or_else(|| empty.clone(), owned_part);
    if live.is_some() && managers.is_empty() {
        // The managed fields were removed, so the owner of the existing fields is unknown.
        let unknown = Manager {
            name: "before-first-apply".to_owned(),
            ..author.updater(kind)
        };
        own(&mut managers, unknown, all_fields(place, &live_part), author);
    }
    let me = Manager {
        operation: Operation::Apply,
        ..author.updater(kind)
    };
    let wanted = owned_part(configuration);
    let set = all_fields(place, &wanted);
    let mut merged = merge(place, &live_part, &wanted);
    let before = managers.get(&me).map(|owned| owned.set.clone()).unwrap_or_default();
    let others = managers.iter().filter(|(manager, _)| **manager != me);
    let given_up = others.fold(before.without(&set), |left, (_, owned)| left.without(&owned.set));
    remove(place, &mut merged, &given_up);

    let difference = compare(place, &live_part, &merged);
    let mut conflicts = Vec::new();
    for (manager, owned) in managers.iter_mut().filter(|(manager, _)| **manager != me) {
        let common = owned.set.common(&difference.changed);
        conflicts.extend(common.paths().into_iter().map(|path| (manager.shown(), path)));
        owned.set = owned.set.without(&common).without(&difference.removed);
    }
    if !force && !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    own(&mut managers, me, set, author);
    managers.retain(|_, owned| !owned.set.is_empty());

    let mut object = live.map_or_else(|| configuration.clone(), Value::clone);
    put_owned_part(&mut object, merged);
    write(&mut object, &managers);
    Ok(if live.is_some_and(|live| *live == object) {
        Applied::Unchanged
    } else {
        Applied::Changed(object)
    })
}

impl Author {
    fn updater(&self, kind: &ResourceKind) -> Manager {
        Manager {
            name: self.manager.clone(),
            operation: Operation::Update,
            api_version: kind.api_version(),
            subresource: self.subresource.to_owned(),
        }
    }
}

impl Manager {
    fn shown(&self) -> String {
        let Self {
            name,
            subresource,
            api_version,
            ..
        } = self;
        let of = if subresource.is_empty() {
            String::new()
        } else {
            format!(" with subresource \"{subresource}\"")
        };
        let using = if self.operation == Operation::Update {
            format!(" using {api_version}")
        } else {
            String::new()
        };
        format!("\"{name}\"{of}{using}")
    }
}

/// Makes a manager the owner of a set. The entry's time changes only if the set does.
fn own(managers: &mut Managers, manager: Manager, set: FieldSet, author: &Author) {
    if managers.get(&manager).is_none_or(|owned| owned.set != set) {
        managers.insert(
            manager,
            Owned {
                set,
                time: rfc3339(author.now),
            },
        );
    }
}

/// Merges the entries of the oldest updaters if there are too many.
fn bound(managers: &mut Managers) {
    loop {
        let mut updaters: Vec<(String, Manager)> = managers
            .iter()
            .filter(|(manager, _)| manager.operation == Operation::Update && manager.subresource.is_empty())
            .map(|(manager, owned)| (owned.time.clone(), manager.clone()))
            .collect();
        if updaters.len() <= UPDATERS_MAX {
            return;
        }
        updaters.sort();
        let (first, second) = (&updaters[0].1, &updaters[1].1);
        let ancient = Manager {
            name: "ancient-changes".to_owned(),
            ..second.clone()
        };
        let sets = [first, second].map(|manager| managers.remove(manager));
        let time = updaters[1].0.clone();
        let set = sets
            .into_iter()
            .flatten()
            .fold(FieldSet::default(), |all, owned| all.union(&owned.set));
        managers.insert(ancient, Owned { set, time });
    }
}

/// Returns the part of an object that can be owned: without type, identity and server-set metadata.
fn owned_part(object: &Value) -> Value {
    let mut part = object.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.retain(|field, _| is_owned_metadata(field));
            if metadata.is_empty() {
                fields.remove("metadata");
            }
        }
    }
    part
}

fn is_owned_metadata(field: &str) -> bool {
    matches!(
        field,
        "labels" | "annotations" | "finalizers" | "ownerReferences" | "generateName"
    )
}

/// Replaces the part of an object that can be owned.
fn put_owned_part(object: &mut Value, part: Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata"));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !is_owned_metadata(field));
    }
    let Value::Object(part) = part else { return };
    for (field, value) in part {
        match (fields.get_mut(&field).and_then(Value::as_object_mut), value) {
            (Some(metadata), Value::Object(owned)) if field == "metadata" => metadata.extend(owned),
            (_, value) => drop(fields.insert(field, value)),
        }
    }
}

/// Returns all fields of an object. The root itself has no owner.
fn all_fields(place: Place<'_>, part: &Value) -> FieldSet {
    FieldSet {
        is_member: false,
        ..fields(place, part)
    }
}

/// Returns true if a client resets the managed fields: a list with one empty entry.
fn is_reset(given: &Value) -> bool {
    given
        .as_array()
        .is_some_and(|entries| entries.len() == 1 && entries[0].as_object().is_some_and(|entry| entry.is_empty()))
}

fn read(managed_fields: &Value) -> Managers {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| {
        let operation = if entry["operation"] == "Apply" {
            Operation::Apply
        } else {
            Operation::Update
        };
        let manager = Manager {
            name: text(entry, "manager"),
            operation,
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
        };
        (
            manager,
            Owned {
                set: FieldSet::parse(&entry["fieldsV1"]),
                time: text(entry, "time"),
            },
        )
    };
    managed_fields.as_array().into_iter().flatten().map(entry).collect()
}

fn write(object: &mut Value, managers: &Managers) {
    // Order as in Kubernetes: appliers first, then by time.
    let mut sorted: Vec<_> = managers.iter().collect();
    sorted.sort_by(|(a, a_owned), (b, b_owned)| (a.operation, &a_owned.time, a).cmp(&(b.operation, &b_owned.time, b)));
    let entry = |(manager, owned): (&Manager, &Owned)| {
        let mut entry = json!({
            "manager": manager.name,
            "operation": format!("{:?}", manager.operation),
            "apiVersion": manager.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": owned.set.to_value(),
        });
        if !manager.subresource.is_empty() {
            entry["subresource"] = json!(manager.subresource);
        }
        entry
    };
    let entries: Vec<Value> = sorted.into_iter().map(entry).collect();
    if entries.is_empty() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    } else {
        object["metadata"]["managedFields"] = Value::Array(entries);
    }
}

fn conflict(conflicts: &[(String, String)]) -> StatusError {
    let message = if let [(manager, path)] = conflicts {
        format!("Apply failed with 1 conflict: conflict with {manager}: {path}")
    } else {
        let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (manager, path) in conflicts {
            by_manager.entry(manager).or_default().push(path);
        }
        let mut lines = Vec::new();
        for (manager, paths) in by_manager {
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(paths.into_iter().map(|path| format!("- {path}")));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    };
    let cause = |(manager, path): &(String, String)| json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path});
    StatusError::apply_conflict(message, conflicts.iter().map(cause).collect())
}
