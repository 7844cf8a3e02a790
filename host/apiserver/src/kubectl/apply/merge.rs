//! Comparison and merge of objects, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::set::FieldSet;
use crate::kubectl::topology::{ListType, Place, key_of};

/// Returns the fields that a value sets.
pub(super) fn fields(place: Place<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match value {
        Value::Object(members) if !members.is_empty() && !place.is_atomic_map() => {
            for (name, inner) in members {
                set.insert(format!("f:{name}"), fields(place.field(name), inner));
            }
        }
        Value::Array(items) if !items.is_empty() => match place.list_type(items) {
            ListType::Atomic => return FieldSet::leaf(),
            ListType::Set => {
                for item in items {
                    set.insert(format!("v:{item}"), FieldSet::leaf());
                }
            }
            ListType::Map(keys) => {
                for item in items {
                    let mut below = fields(place.element(), item);
                    below.is_member = true;
                    set.insert(key_of(item, &keys).unwrap_or_default(), below);
                }
            }
        },
        _ => return FieldSet::leaf(),
    }
    set
}

/// Difference between two objects.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Fields that were added or changed.
    pub(super) changed: FieldSet,
    /// Fields that were removed.
    pub(super) removed: FieldSet,
}

/// Compares two versions of a value.
pub(super) fn compare(place: Place<'_>, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    match (old, new) {
        _ if old == new => {}
        (Value::Object(before), Value::Object(after))
            if !place.is_atomic_map() && !before.is_empty() && !after.is_empty() =>
        {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let inner = one_sided(place.field(name), before.get(name), after.get(name));
                difference.changed.insert(format!("f:{name}"), inner.changed);
                difference.removed.insert(format!("f:{name}"), inner.removed);
            }
        }
        (Value::Array(before), Value::Array(after)) if !before.is_empty() && !after.is_empty() => {
            let (of_old, of_new) = (place.list_type(before), place.list_type(after));
            if of_old == ListType::Atomic || of_old != of_new {
                difference.changed = FieldSet::leaf();
                return difference;
            }
            let (before, after) = (by_element(&of_new, before), by_element(&of_new, after));
            let elements: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for element in elements {
                let sides = (before.get(element).copied(), after.get(element).copied());
                let mut inner = one_sided(place.element(), sides.0, sides.1);
                if matches!(of_new, ListType::Map(_)) {
                    inner.changed.is_member |= sides.0.is_none();
                    inner.removed.is_member |= sides.1.is_none();
                }
                difference.changed.insert(element.clone(), inner.changed);
                difference.removed.insert(element.clone(), inner.removed);
            }
        }
        _ => {
            let of = |value: &Value| {
                if value.as_object().is_some_and(Map::is_empty) && place.is_root() {
                    FieldSet::default()
                } else {
                    fields(place, value)
                }
            };
            difference.changed = of(new);
            difference.removed = of(old).without(&difference.changed);
        }
    }
    difference
}

fn one_sided(place: Place<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    match (old, new) {
        (Some(old), Some(new)) => compare(place, old, new),
        (Some(old), None) => Difference {
            removed: fields(place, old),
            ..Difference::default()
        },
        (None, Some(new)) => Difference {
            changed: fields(place, new),
            ..Difference::default()
        },
        (None, None) => Difference::default(),
    }
}

/// Indexes the elements of a list that is not atomic by their key or value.
fn by_element<'a>(list: &ListType, items: &'a [Value]) -> BTreeMap<String, &'a Value> {
    items.iter().map(|item| (element_of(list, item), item)).collect()
}

fn element_of(list: &ListType, item: &Value) -> String {
    match list {
        ListType::Map(keys) => key_of(item, keys).unwrap_or_default(),
        ListType::Atomic | ListType::Set => format!("v:{item}"),
    }
}

/// Merges an applied configuration into the live value.
pub(super) fn merge(place: Place<'_>, live: &Value, applied: &Value) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) if !place.is_atomic_map() => {
            let mut merged = live.clone();
            for (name, inner) in applied {
                let value = match live.get(name) {
                    Some(live) => merge(place.field(name), live, inner),
                    None => inner.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(applied)) => {
            let list = place.list_type(applied);
            if list == ListType::Atomic || place.list_type(live) != list && !live.is_empty() {
                return Value::Array(applied.clone());
            }
            merge_lists(place, &list, live, applied)
        }
        _ => applied.clone(),
    }
}

/// Merges two lists in the order of the applied one. Elements only in the live list keep their place before the
/// element that follows them.
fn merge_lists(place: Place<'_>, list: &ListType, live: &[Value], applied: &[Value]) -> Value {
    let wanted: BTreeSet<String> = applied.iter().map(|item| element_of(list, item)).collect();
    let known = by_element(list, live);
    let mut rest = live.iter().peekable();
    let mut merged = Vec::new();
    let mut done = BTreeSet::new();
    for item in applied {
        let element = element_of(list, item);
        while let Some(next) = rest.next_if(|live| {
            let live = element_of(list, live);
            !wanted.contains(&live) || done.contains(&live)
        }) {
            if !wanted.contains(&element_of(list, next)) {
                merged.push(next.clone());
            }
        }
        rest.next_if(|live| element_of(list, live) == element);
        merged.push(
            known
                .get(&element)
                .map_or_else(|| item.clone(), |live| merge(place.element(), live, item)),
        );
        done.insert(element);
    }
    merged.extend(rest.filter(|live| !wanted.contains(&element_of(list, live))).cloned());
    Value::Array(merged)
}

/// Removes fields from a value, and fields that become empty as a result.
pub(super) fn remove(place: Place<'_>, value: &mut Value, set: &FieldSet) {
    match value {
        Value::Object(members) => remove_members(place, members, set),
        Value::Array(items) => {
            let list = place.list_type(items);
            if list == ListType::Atomic {
                return;
            }
            items.retain_mut(|item| match set.children.get(&element_of(&list, item)) {
                None => true,
                Some(below) if below.is_member => false,
                Some(below) => {
                    remove(place.element(), item, below);
                    true
                }
            });
        }
        _ => {}
    }
}

fn remove_members(place: Place<'_>, members: &mut Map<String, Value>, set: &FieldSet) {
    for (element, below) in &set.children {
        let Some(name) = element.strip_prefix("f:") else {
            continue;
        };
        let Some(inner) = members.get_mut(name) else { continue };
        let is_gone = if below.children.is_empty() {
            below.is_member
        } else {
            remove(place.field(name), inner, below);
            inner.as_object().is_some_and(Map::is_empty) || inner.as_array().is_some_and(Vec::is_empty)
        };
        if is_gone {
            members.remove(name);
        }
    }
}
