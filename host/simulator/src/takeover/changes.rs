//! Differences between the objects before and after a rehearsal, by effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bulkhead_apiserver::Content;
use bulkhead_apiserver::json::{HasFields, array, text};
use bulkhead_core::journal::{Difference, Subject, differences};
use serde_json::{Value, json};

use super::writers::writers;
use super::{Change, Effect, FieldChange};

/// Metadata that every write changes, or that no controller may change.
const NOT_COMPARED: [&str; 5] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "uid",
    "creationTimestamp",
];

/// Identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    subject: Subject,
    api_version: String,
}

impl ObjectId {
    /// Returns the identity of an object with `apiVersion` and `kind`.
    pub(super) fn of(object: &impl HasFields) -> Self {
        Self {
            subject: subject(object),
            api_version: text(object, "/apiVersion").to_owned(),
        }
    }
}

/// Returns kind, namespace and name of an object.
fn subject(object: &impl HasFields) -> Subject {
    let text = |pointer| text(object, pointer);
    Subject::new(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// Returns the changes, in order of effect, kind and object.
pub(super) fn compare(before: &BTreeMap<ObjectId, Content>, after: &BTreeMap<ObjectId, Content>) -> Vec<Change> {
    let ids: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut changes = Vec::new();
    for id in ids {
        match (before.get(id), after.get(id)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if is_terminating(new) && !is_terminating(old) => {
                changes.push(change(id, Effect::Deleted, old, Vec::new()));
            }
            (Some(old), Some(new)) => changes.extend(changed(id, &old.to_value(), &new.to_value())),
            (Some(old), None) => changes.push(change(id, Effect::Deleted, old, Vec::new())),
            (None, Some(new)) => changes.push(change(id, Effect::Created, new, Vec::new())),
            (None, None) => {}
        }
    }
    changes.sort_by_cached_key(|change| (change.effect, change.kind.clone(), change.object.clone()));
    changes
}

fn is_terminating(object: &Content) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn change(id: &ObjectId, effect: Effect, object: &impl HasFields, fields: Vec<FieldChange>) -> Change {
    let manifest = array(object, "/spec/workload/manifests").first();
    let manifest = manifest.filter(|_| id.subject.kind == "Work");
    Change {
        effect,
        kind: id.subject.kind.clone(),
        object: id.subject.key(),
        manifest: manifest
            .map(|manifest| subject(manifest).to_string())
            .unwrap_or_default(),
        fields,
        writers: Vec::new(),
    }
}

/// Returns the changes of an object that exists before and after, at most one for each effect.
fn changed(id: &ObjectId, old: &Value, new: &Value) -> Vec<Change> {
    let mut found: BTreeMap<Effect, Vec<FieldChange>> = BTreeMap::new();
    let (mut rest_old, mut rest_new) = (old.clone(), new.clone());
    if id.subject.is_binding() {
        for rest in [&mut rest_old, &mut rest_new] {
            remove(rest, "/spec", "clusters");
            remove(rest, "/spec", "gracefulEvictionTasks");
            remove(rest, "/spec/resource", "resourceVersion");
        }
        of_binding(old, new, &mut found);
    }
    if id.subject.kind == "Cluster" {
        remove(&mut rest_old, "/spec", "taints");
        remove(&mut rest_new, "/spec", "taints");
        let taint = |taint: &Value| format!("{}:{}", text(taint, "/key"), text(taint, "/effect"));
        let (old, new) = (array(old, "/spec/taints"), array(new, "/spec/taints"));
        of_list(
            "spec.taints",
            (old, new),
            taint,
            (Effect::Tainted, Effect::Tainted),
            &mut found,
        );
    }
    for rest in [&mut rest_old, &mut rest_new] {
        for field in NOT_COMPARED {
            remove(rest, "/metadata", field);
        }
    }
    let is_secret = |manifest: Option<&Value>| manifest.is_some_and(|manifest| manifest["kind"] == "Secret");
    for difference in differences(&rest_old, &rest_new) {
        let (index, path) = in_manifest(&id.subject.kind, &difference.path);
        let manifest = index.and_then(|index| array(old, "/spec/workload/manifests").get(index));
        let effect = effect(index.is_some(), path);
        let secret = is_secret(manifest) || is_secret(Some(old));
        let field = field(path, &difference, secret);
        found.entry(effect).or_default().push(field);
    }
    let with_writers = |(effect, fields): (Effect, Vec<FieldChange>)| {
        let writers = if effect == Effect::Rewritten {
            writers(old, std::iter::once("spec.workload.manifests"))
        } else {
            writers(old, fields.iter().map(|field| field.path.as_str()))
        };
        Change {
            writers,
            ..change(id, effect, old, fields)
        }
    };
    found.into_iter().map(with_writers).collect()
}

fn remove(object: &mut Value, pointer: &str, field: &str) {
    if let Some(Value::Object(fields)) = object.pointer_mut(pointer) {
        fields.remove(field);
    }
}

/// Splits a JSON pointer into a Work into the index of the manifest and the pointer in the manifest.
fn in_manifest<'a>(kind: &str, pointer: &'a str) -> (Option<usize>, &'a str) {
    let inside = pointer
        .strip_prefix("/spec/workload/manifests/")
        .filter(|_| kind == "Work");
    let Some(inside) = inside else { return (None, pointer) };
    let (index, path) = inside.split_at(inside.find('/').unwrap_or(inside.len()));
    index.parse().map_or((None, pointer), |index| (Some(index), path))
}

/// Returns the effect of a changed field. A manifest without its labels and annotations is what the member gets.
fn effect(in_manifest: bool, path: &str) -> Effect {
    let is_below = |part: &str| path == part || path.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'));
    let bookkeeping: &[&str] = if in_manifest {
        &["/metadata/labels", "/metadata/annotations"]
    } else {
        &["/metadata", "/status"]
    };
    if bookkeeping.iter().any(|part| is_below(part)) {
        Effect::Bookkeeping
    } else if in_manifest {
        Effect::Rewritten
    } else {
        Effect::Field
    }
}

fn field(path: &str, difference: &Difference, secret: bool) -> FieldChange {
    let is_content = path.starts_with("/data") || path.starts_with("/stringData") || path.is_empty();
    let shown = |value: &Option<Value>| {
        let value = value.clone()?;
        let hidden = || json!(format!("({} bytes)", value.to_string().len()));
        Some(if secret && is_content { hidden() } else { value })
    };
    FieldChange {
        path: dotted(path),
        before: shown(&difference.recorded),
        after: shown(&difference.again),
    }
}

/// Converts a JSON pointer to a path such as `spec.containers[0].image`. Names with dots or slashes are quoted.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let _ = if part.bytes().all(|byte| byte.is_ascii_digit()) {
            write!(path, "[{part}]")
        } else if part.contains(['.', '/']) {
            write!(path, "[\"{part}\"]")
        } else {
            let dot = if path.is_empty() { "" } else { "." };
            write!(path, "{dot}{part}")
        };
    }
    path
}

/// Finds begun and ended evictions, and a new placement. A target that an eviction takes away is no placement.
fn of_binding(old: &Value, new: &Value, found: &mut BTreeMap<Effect, Vec<FieldChange>>) {
    let cluster = |task: &Value| text(task, "/fromCluster").to_owned();
    let tasks = (
        array(old, "/spec/gracefulEvictionTasks"),
        array(new, "/spec/gracefulEvictionTasks"),
    );
    of_list(
        "spec.gracefulEvictionTasks",
        tasks,
        cluster,
        (Effect::Evicted, Effect::Ended),
        found,
    );
    let is_evicted = |name: &str| {
        let is_new = |tasks: &[Value]| tasks.iter().any(|task| cluster(task) == name);
        is_new(tasks.1) && !is_new(tasks.0)
    };
    let targets = |binding: &Value| -> BTreeMap<String, Value> {
        let targets = array(binding, "/spec/clusters").iter();
        targets
            .map(|target| (text(target, "/name").to_owned(), target["replicas"].clone()))
            .collect()
    };
    let (old, new) = (targets(old), targets(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        if before == after || (after.is_none() && is_evicted(name)) {
            continue;
        }
        let replicas = |value: Option<&Value>| value.map(|replicas| json!({"replicas": replicas}));
        found.entry(Effect::Placed).or_default().push(FieldChange {
            path: format!("spec.clusters[{name}]"),
            before: replicas(before),
            after: replicas(after),
        });
    }
}

/// Compares lists whose items have a name: new items have the first effect, missing ones the second, and changes of
/// other items are bookkeeping.
fn of_list(
    path: &str,
    (old, new): (&[Value], &[Value]),
    name: impl Fn(&Value) -> String,
    (added, removed): (Effect, Effect),
    found: &mut BTreeMap<Effect, Vec<FieldChange>>,
) {
    let by_name =
        |items: &[Value]| -> BTreeMap<String, Value> { items.iter().map(|item| (name(item), item.clone())).collect() };
    let (old, new) = (by_name(old), by_name(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        let effect = match (before, after) {
            (before, after) if before == after => continue,
            (None, _) => added,
            (_, None) => removed,
            _ => Effect::Bookkeeping,
        };
        found.entry(effect).or_default().push(FieldChange {
            path: format!("{path}[{name}]"),
            before: before.cloned(),
            after: after.cloned(),
        });
    }
}
