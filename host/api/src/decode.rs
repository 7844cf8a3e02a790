//! Decoding with field paths in errors.
//!
//! `serde_json` reports the problem with a value but not its path, and silently drops unknown fields. An API server
//! reports both. The deserializer here adds the path while an error propagates. Unknown fields are those that are
//! missing after the object is serialized again.

use std::fmt;
use std::slice;

use bulkhead_core::unknown_fields;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::Value;

/// Value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Path of the value, for example `spec.taints[0].effect`; empty for the object itself.
    pub path: String,
    /// Description of the problem.
    pub message: String,
}

impl FieldError {
    fn within(mut self, segment: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{segment}{separator}{}", self.path);
        self
    }
}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: String::new(),
            message: message.to_string(),
        }
    }
}

/// Field that the type does not have; an API server with a schema drops it and warns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Path of the field.
    pub path: String,
    /// Path that was probably meant.
    pub suggestion: Option<String>,
}

impl UnknownField {
    /// Describes the problem without the path, with the field that was probably meant.
    pub fn cause(&self) -> String {
        let suggestion = self.suggestion.as_ref();
        suggestion.map_or_else(
            || "unknown field".to_owned(),
            |suggestion| format!("unknown field, did you mean {suggestion}?"),
        )
    }
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.cause())
    }
}

/// Decoded object with its unknown fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<K> {
    /// The object.
    pub object: K,
    /// Fields that were dropped, in the order of the document.
    pub unknown: Vec<UnknownField>,
}

/// Decodes a typed object, and finds all unknown fields. An error has the path of the first value that does not fit.
///
/// Types that preserve unknown fields (the specs of bindings and clusters) have no unknown fields below them. Fields
/// with a zero value (null, false, 0 or empty) are not reported, because Go does not distinguish them from absent
/// ones.
pub fn decode_strict<K: DeserializeOwned + Serialize>(value: &Value) -> Result<Decoded<K>, FieldError> {
    let object: K = decode(value)?;
    let written = serde_json::to_value(&object).map_err(de::Error::custom)?;
    let unknown = unknown_fields::paths(value, &written).into_iter();
    let unknown = unknown
        .map(|path| UnknownField {
            suggestion: suggestion(&path),
            path,
        })
        .collect();
    Ok(Decoded { object, unknown })
}

/// Decodes any value. An error has the path of the first part that does not fit.
///
/// # Errors
///
/// A part of the value does not fit its type.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, FieldError> {
    T::deserialize(Node(value))
}

/// Suggests a path for a field that Karmada's documents, or users, often put one level too high.
fn suggestion(path: &str) -> Option<String> {
    let field = path.strip_prefix("spec.")?;
    let parent = match field {
        "clusterAffinity" | "clusterAffinities" | "clusterTolerations" | "spreadConstraints" | "replicaScheduling"
        | "workloadAffinity" => "placement",
        "retention"
        | "replicaResource"
        | "componentResource"
        | "replicaRevision"
        | "statusReflection"
        | "statusAggregation"
        | "healthInterpretation"
        | "dependencyInterpretation" => "customizations",
        _ => return None,
    };
    Some(format!("spec.{parent}.{field}"))
}

/// Deserializer of a JSON value, which adds each path segment to a propagating error.
struct Node<'de>(&'de Value);

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(Items {
                rest: items.iter(),
                index: 0,
            }),
            Value::Object(fields) => visitor.visit_map(Fields {
                rest: fields.iter(),
                current: None,
            }),
            leaf => leaf.deserialize_any(visitor).map_err(de::Error::custom),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    /// Leaves newtypes to `serde_json`, which alone can read raw values. No type of an object has fields within one.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let read = self.0.deserialize_newtype_struct(name, visitor);
        read.map_err(de::Error::custom)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.0
            .deserialize_enum(name, variants, visitor)
            .map_err(de::Error::custom)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    rest: slice::Iter<'de, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, FieldError> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Node(item))
            .map(Some)
            .map_err(|error| error.within(&format!("[{index}]")))
    }
}

struct Fields<'de> {
    rest: serde_json::map::Iter<'de>,
    current: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.current = Some((key, value));
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        match self.current.take() {
            Some((key, value)) => seed.deserialize(Node(value)).map_err(|error| error.within(key)),
            None => Err(de::Error::custom("value asked for before its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Cluster, ClusterTaintPolicy, PropagationPolicy, ResourceBinding, ResourceInterpreterCustomization};

    fn unknown<K: DeserializeOwned + Serialize>(spec: &Value, expected: &[&str]) {
        let object = json!({
            "metadata": {"name": "n", "creationTimestamp": null, "labels": {"a": "b"}},
            "spec": spec,
        });
        let decoded = decode_strict::<K>(&object).unwrap();
        let found: Vec<_> = decoded.unknown.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn unknown_fields_are_found_with_their_path() {
        let check = unknown::<PropagationPolicy>;
        let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}]);
        let toleration = json!({
            "effect": "NoExecute", "key": "cluster.karmada.io/not-ready", "operator": "Exists",
            "tolerationSeconds": 600,
        });
        check(
            &json!({"resourceSelectors": selectors, "placement": {"clusterTolerations": [toleration]}}),
            &[],
        );
        check(
            &json!({"resourceSelectors": selectors, "clusterTolerations": [toleration]}),
            &["spec.clusterTolerations: unknown field, did you mean spec.placement.clusterTolerations?"],
        );
        check(
            &json!({"resourceSelectors": selectors, "failover": {"application": {
                "activeGates": [{"healthyState": "Unhealthy"}],
                "decisionConditions": {"tolerationSeconds": 200, "healthState": ["Unhealthy"]},
            }}}),
            &[
                "spec.failover.application.activeGates: unknown field",
                "spec.failover.application.decisionConditions.healthState: unknown field",
            ],
        );
        check(
            &json!({"resourceSelectors": selectors, "placement": {"clusterAffinities": [
                {"affinityName": "a", "clusterNames": ["m1"], "clusterName": "m1"},
            ]}}),
            &["spec.placement.clusterAffinities[0].clusterName: unknown field"],
        );
        check(
            &json!({"resourceSelectors": selectors, "zero": 0, "empty": [], "propagateDeps": false}),
            &[],
        );
    }

    #[test]
    fn types_that_keep_everything_have_no_unknown_fields() {
        unknown::<Cluster>(
            &json!({"syncMode": "Push", "proxyURL": "http://p", "later": {"a": 1}}),
            &[],
        );
        let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"});
        unknown::<ResourceBinding>(&json!({"resource": resource, "later": 1}), &[]);
    }

    #[test]
    fn a_rule_beside_the_target_is_pointed_out() {
        unknown::<ResourceInterpreterCustomization>(
            &json!({
                "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
                "healthInterpretation": {"luaScript": "x"},
            }),
            &["spec.healthInterpretation: unknown field, did you mean spec.customizations.healthInterpretation?"],
        );
    }

    #[test]
    fn errors_name_the_place() {
        let check = |spec: Value, expected: &str| {
            let error = decode_strict::<ClusterTaintPolicy>(&json!({"spec": spec})).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        let conditions = json!({"addOnConditions": [{"conditionType": "Ready"}]});
        check(conditions, "spec.addOnConditions[0]: missing field `operator`");
        check(
            json!({"taints": 7}),
            "spec.taints: invalid type: integer `7`, expected a sequence",
        );
        check(
            json!({"taints": [{"effect": "NoSchedule"}]}),
            "spec.taints[0]: missing field `key`",
        );
        check(
            json!({"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": 7}]}),
            "spec.taints[1].effect: data did not match any variant of untagged enum TaintEffect",
        );
    }
}
