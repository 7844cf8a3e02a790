//! Inputs that no host sends on purpose.
//!
//! The contract guarantees a plugin the types of the model but nothing about objects, whose fields may have any type.
//! Bindings and clusters therefore get odd values of the right type, and objects get values of any type.

use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Seeded, federation};
use crate::owned_call::Eviction;

/// Number of randomly corrupted objects, in addition to those with one corrupted part.
const SPOILED_OBJECTS: u64 = 24;
/// Number of corrupted bindings, clusters and evictions of each type.
const SPOILED: u64 = 12;
/// Maximum number of attempts to corrupt a value such that it still parses as its type.
const ATTEMPTS_MAX: u64 = 64;

/// Returns odd values of every JSON type.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("junk"),
        json!("\u{0}\u{1b}[31m\u{202e}\u{10ffff}"),
        json!([]),
        json!([null, [[]], "junk", -1]),
        json!({}),
        json!({"": null, "junk": [{"": ""}]}),
    ]
}

/// Returns an odd value of the same type; a value of any type replaces a null.
fn odd_of_the_same_type(value: &Value, seeded: &mut Seeded) -> Value {
    let candidates: Vec<_> = match value {
        Value::Null => odd_values(),
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(_) => [0, -1, i64::from(i32::MIN), i64::from(i32::MAX)]
            .map(Value::from)
            .to_vec(),
        Value::String(_) => odd_values().into_iter().filter(Value::is_string).collect(),
        Value::Array(elements) => {
            vec![
                json!([]),
                Value::Array(elements.iter().chain(elements).cloned().collect()),
            ]
        }
        Value::Object(_) => vec![json!({})],
    };
    candidates
        .get(seeded.below(candidates.len()))
        .cloned()
        .unwrap_or_default()
}

/// Counts the values in a document, including the document itself. [`numbered`] numbers them from 0.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum::<usize>(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the value with this number, in depth-first order; the document itself is 0.
fn numbered<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(elements) => elements.iter_mut().find_map(|element| numbered(element, number)),
        Value::Object(members) => members.values_mut().find_map(|member| numbered(member, number)),
        _ => None,
    }
}

/// Replaces one to four values below the top level.
fn spoil(value: &mut Value, seeded: &mut Seeded, replacement: impl Fn(&Value, &mut Seeded) -> Value) {
    for _ in 0..=seeded.below(4) {
        let mut number = 1 + seeded.below(count(value).saturating_sub(1));
        if let Some(place) = numbered(value, &mut number) {
            *place = replacement(place, seeded);
        }
    }
}

/// Corrupts a value of the model such that it still parses as that type.
fn spoiled<T: Serialize + DeserializeOwned + Clone>(of: &T, seed: u64) -> T {
    let attempt = |attempt: u64| {
        let mut value = serde_json::to_value(of).ok()?;
        spoil(
            &mut value,
            &mut Seeded::new(seed * ATTEMPTS_MAX + attempt),
            odd_of_the_same_type,
        );
        serde_json::from_value(value).ok()
    };
    (0..ATTEMPTS_MAX).find_map(attempt).unwrap_or_else(|| of.clone())
}

/// Returns objects with junk in place of their parts, and a description of each. `apiVersion` and `kind` stay
/// unchanged.
pub(super) fn objects(plain: &Value) -> Vec<(String, Value)> {
    let mut junk = Vec::new();
    for part in ["metadata", "spec", "status"] {
        for odd in odd_values() {
            let mut object = plain.clone();
            let what = format!("whose {part} is {odd}");
            object[part] = odd;
            junk.push((what, object));
        }
    }
    for seed in 0..SPOILED_OBJECTS {
        let mut object = plain.clone();
        let odd = |_: &Value, seeded: &mut Seeded| {
            let values = odd_values();
            values.get(seeded.below(values.len())).cloned().unwrap_or_default()
        };
        spoil(&mut object, &mut Seeded::new(seed), odd);
        for identity in ["apiVersion", "kind"] {
            object[identity] = plain.get(identity).cloned().unwrap_or_default();
        }
        junk.push((format!("spoiled with seed {seed}"), object));
    }
    junk
}

/// Returns clusters with odd values.
pub(super) fn clusters() -> Vec<(String, Cluster)> {
    let cluster = |seed: u64| {
        let mut cluster = spoiled(&federation::cluster(seed as usize), seed);
        cluster.status.rest.insert("junk".to_owned(), json!(odd_values()));
        (format!("a cluster spoiled with seed {seed}"), cluster)
    };
    (0..SPOILED).map(cluster).collect()
}

/// Returns bindings with odd values.
pub(super) fn bindings() -> Vec<(String, Binding)> {
    let binding = |seed| {
        (
            format!("a binding spoiled with seed {seed}"),
            spoiled(&federation::binding(3), seed),
        )
    };
    (0..SPOILED).map(binding).collect()
}

/// Returns evictions with odd values.
pub(super) fn evictions() -> Vec<(String, Eviction)> {
    let (_, usual) = federation::eviction(3);
    let eviction = |seed: u64| {
        let odd = odd_values();
        let report = |(index, item): (usize, &AggregatedStatusItem)| AggregatedStatusItem {
            status: odd.get((seed as usize + index) % odd.len()).cloned(),
            ..spoiled(item, seed + index as u64)
        };
        let observed = usual.observed.iter().enumerate().map(report).collect();
        let task: GracefulEvictionTask = spoiled(&usual.task, seed);
        let eviction = Eviction {
            binding: spoiled(&usual.binding, seed),
            task,
            observed,
        };
        (format!("an eviction spoiled with seed {seed}"), eviction)
    };
    (0..SPOILED + odd_values().len() as u64).map(eviction).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::inputs::objects::settled;

    #[test]
    fn spoiled_values_differ_from_what_they_were_and_from_each_other() {
        let usual = federation::binding(3);
        let bindings = bindings();
        assert!(bindings.iter().all(|(_, binding)| *binding != usual));
        let clusters = clusters()
            .into_iter()
            .map(|(_, cluster)| serde_json::to_string(&cluster).unwrap());
        assert!(clusters.collect::<BTreeSet<_>>().len() > 8);
    }

    #[test]
    fn spoiled_objects_stay_of_their_kind() {
        let plain = settled(("apps/v1", "Deployment"));
        let objects = objects(&plain);
        assert!(
            objects
                .iter()
                .all(|(_, object)| object["kind"] == "Deployment" && object["apiVersion"] == "apps/v1")
        );
        assert!(objects.iter().filter(|(_, object)| *object != plain).count() > 60);
    }

    #[test]
    fn every_value_has_a_number() {
        let mut value = json!({"a": [1, 2], "b": {"c": 3}});
        assert_eq!(count(&value), 6);
        let at = |value: &mut Value, number: usize| numbered(value, &mut number.clone()).map(|value| value.to_string());
        assert_eq!(at(&mut value, 2).as_deref(), Some("1"));
        assert_eq!(at(&mut value, 5).as_deref(), Some("3"));
        assert_eq!(at(&mut value, 6), None);
    }
}
