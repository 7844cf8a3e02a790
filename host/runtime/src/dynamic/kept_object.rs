//! Objects of any kind as informers keep them.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::any_kind::resource_of_any_kind;
use crate::controller::Error;
use crate::kinds::ObjectKind;

/// Object of any kind as informers keep it. Name and version are parsed. The rest is the text that was received until it
/// is needed, because a parsed tree takes several times as much memory, and most objects are never read twice.
#[derive(Clone, Debug)]
pub struct KeptObject {
    /// Metadata without labels and annotations, which have methods of their own, and without managed fields.
    pub metadata: ObjectMeta,
    labels: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
    /// An object with everything but `apiVersion`, `kind`, `metadata` and `status`.
    content: Box<str>,
    status: Option<Box<RawValue>>,
}

/// `metadata` of an object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    annotations: Option<Box<RawValue>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<Box<RawValue>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    self_link: Option<String>,
    uid: Option<String>,
}

/// Labels and annotations of an object. They are part of the digest of templates in this form.
#[derive(Default, PartialEq, Serialize)]
struct LabelsAndAnnotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
}

impl KeptObject {
    fn new(metadata: Metadata, content: String, status: Option<Box<RawValue>>) -> Self {
        Self {
            metadata: ObjectMeta {
                annotations: None,
                creation_timestamp: metadata.creation_timestamp,
                deletion_grace_period_seconds: metadata.deletion_grace_period_seconds,
                deletion_timestamp: metadata.deletion_timestamp,
                finalizers: metadata.finalizers,
                generate_name: metadata.generate_name,
                generation: metadata.generation,
                labels: None,
                managed_fields: None,
                name: metadata.name,
                namespace: metadata.namespace,
                owner_references: metadata.owner_references,
                resource_version: metadata.resource_version,
                self_link: metadata.self_link,
                uid: metadata.uid,
            },
            labels: metadata.labels,
            annotations: metadata.annotations,
            content: content.into(),
            status,
        }
    }

    /// Returns the object as plain JSON, the form that policies get.
    ///
    /// # Errors
    ///
    /// [`Error::Undecided`] if the object has more than 127 levels or a number beyond the range of a 64-bit float.
    pub fn to_value(&self, kind: &ObjectKind) -> Result<Value, Error> {
        let unreadable = |error| {
            let (kind, name) = (&kind.kind, self.name_any());
            Error::Undecided(format!("{kind} {name} cannot be read: {error}"))
        };
        let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(unreadable);
        let mut value = parsed(&self.content)?;
        if let Some(status) = &self.status {
            value["status"] = parsed(status.get())?;
        }
        let mut metadata = json!(self.metadata);
        for (field, map) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if let Some(map) = map {
                metadata[field] = parsed(map.get())?;
            }
        }
        Ok(identified(kind, value, metadata))
    }

    /// Returns the texts of which the object consists, without its status and the bookkeeping of the API server, in
    /// canonical form. Equal texts mean that nothing else changed.
    pub fn canonical_texts(&self) -> [String; 2] {
        let labels_and_annotations = LabelsAndAnnotations {
            labels: self.labels.as_deref().map(strings),
            annotations: self.annotations.as_deref().map(strings),
        };
        // Maps of strings and values can always be serialized.
        let labels_and_annotations = if labels_and_annotations == LabelsAndAnnotations::default() {
            String::new()
        } else {
            serde_json::to_string(&labels_and_annotations).unwrap_or_default()
        };
        let content = serde_json::from_str::<Value>(&self.content).and_then(|value| serde_json::to_string(&value));
        // An object that cannot be read has no other form.
        let content = content.unwrap_or_else(|_| self.content.to_string());
        [labels_and_annotations, content]
    }

    /// True if the other object was received with the same labels, annotations and content.
    pub(super) fn has_texts_of(&self, other: &Self) -> bool {
        self.content == other.content && texts(self) == texts(other)
    }

    /// Returns the labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.as_deref().map(strings).unwrap_or_default()
    }

    /// Returns the annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.annotations.as_deref().map(strings).unwrap_or_default()
    }

    /// Returns the values of some labels, in the order of their names.
    pub fn some_labels<const N: usize>(&self, names: [&str; N]) -> [Option<String>; N] {
        some(self.labels.as_deref(), names)
    }

    /// Returns the values of some annotations, in the order of their names.
    pub fn some_annotations<const N: usize>(&self, names: [&str; N]) -> [Option<String>; N] {
        some(self.annotations.as_deref(), names)
    }
}

/// Returns labels and annotations, as they were received.
fn texts(object: &KeptObject) -> [Option<&str>; 2] {
    [&object.labels, &object.annotations].map(|map| map.as_deref().map(RawValue::get))
}

/// Returns a map of strings. API servers send no others.
fn strings(map: &RawValue) -> BTreeMap<String, String> {
    serde_json::from_str(map.get()).unwrap_or_default()
}

/// Returns some values of a map of strings without building the map.
fn some<const N: usize>(map: Option<&RawValue>, names: [&str; N]) -> [Option<String>; N] {
    let mut values = [const { None }; N];
    if let Some(map) = map {
        let search = Search {
            names: &names,
            values: &mut values,
        };
        // API servers send maps of strings. Values before an error count.
        let _ = serde_json::Deserializer::from_str(map.get()).deserialize_map(search);
    }
    values
}

/// Search for some values of a map of strings.
struct Search<'a> {
    names: &'a [&'a str],
    values: &'a mut [Option<String>],
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.names.iter().position(|name| *name == key) {
                Some(position) => self.values[position] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl From<DynamicObject> for KeptObject {
    fn from(DynamicObject { metadata, data, .. }: DynamicObject) -> Self {
        let ObjectMeta {
            labels, annotations, ..
        } = &metadata;
        // Maps of strings and values can always be serialized.
        let raw = |map: &Option<BTreeMap<String, String>>| {
            map.as_ref().and_then(|map| serde_json::value::to_raw_value(map).ok())
        };
        let (labels, annotations) = (raw(labels), raw(annotations));
        let mut data = match data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        let status = data.remove("status");
        Self {
            metadata: ObjectMeta {
                labels: None,
                annotations: None,
                managed_fields: None,
                ..metadata
            },
            labels,
            annotations,
            content: Value::Object(data).to_string().into(),
            status: status.and_then(|status| serde_json::value::to_raw_value(&status).ok()),
        }
    }
}

impl<'de> Deserialize<'de> for KeptObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = KeptObject;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeptObject, A::Error> {
                let (mut metadata, mut status) = (None, None);
                let mut content = String::from("{");
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "apiVersion" | "kind" => drop(map.next_value::<IgnoredAny>()?),
                        "metadata" => metadata = map.next_value()?,
                        "status" => status = map.next_value()?,
                        name => {
                            let value: Box<RawValue> = map.next_value()?;
                            push(&mut content, name, &value).map_err(de::Error::custom)?;
                        }
                    }
                }
                content.push('}');
                Ok(KeptObject::new(metadata.unwrap_or_default(), content, status))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Appends a field to the text of an object.
fn push(object: &mut String, name: &str, value: &RawValue) -> Result<(), serde_json::Error> {
    if object.len() > 1 {
        object.push(',');
    }
    object.push_str(&serde_json::to_string(name)?);
    object.push(':');
    object.push_str(value.get());
    Ok(())
}

resource_of_any_kind!(KeptObject);

/// Returns an object that was just read as plain JSON.
pub fn live_value(kind: &ObjectKind, object: &DynamicObject) -> Value {
    let data = Some(&object.data).filter(|data| data.is_object());
    identified(kind, data.cloned().unwrap_or_else(|| json!({})), json!(object.metadata))
}

fn identified(kind: &ObjectKind, mut value: Value, metadata: Value) -> Value {
    value["apiVersion"] = Value::from(kind.api_version.as_str());
    value["kind"] = Value::from(kind.kind.as_str());
    value["metadata"] = metadata;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(object: &Value) -> KeptObject {
        serde_json::from_str(&object.to_string()).unwrap()
    }

    #[test]
    fn what_is_kept_as_text_is_what_was_read() {
        let kind = ObjectKind::new("apps/v1", "Deployment");
        let metadata = json!({"name": "a", "labels": {"b": "c"}, "annotations": {}});
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 3, "ratio": 0.5, "z": null, "template": {"spec": {"containers": []}}},
            "status": {"readyReplicas": 2},
        });
        assert_eq!(kept(&object).to_value(&kind).unwrap(), object);
        let as_json = |map: BTreeMap<String, String>| json!(map);
        let (labels, annotations) = (as_json(kept(&object).labels()), as_json(kept(&object).annotations()));
        assert_eq!((labels, annotations), (json!({"b": "c"}), json!({})));
        object.as_object_mut().unwrap().remove("status");
        assert_eq!(kept(&object).to_value(&kind).unwrap(), object);
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let read: DynamicObject = serde_json::from_value(config.clone()).unwrap();
        let kind = ObjectKind::new("v1", "ConfigMap");
        assert_eq!(
            (
                live_value(&kind, &read),
                KeptObject::from(read).to_value(&kind).unwrap()
            ),
            (config.clone(), config)
        );
    }

    #[test]
    fn the_same_object_has_the_same_canonical_texts_in_any_form() {
        let read = |text: &str| serde_json::from_str::<KeptObject>(text).unwrap();
        let sorted =
            read(r#"{"data":{"a":"\u003c","b":1.50},"metadata":{"annotations":{"a":"b","c":"d"},"labels":{}}}"#);
        let other = read(
            r#" {"metadata": {"labels": {}, "annotations": {"c": "d", "a": "b"}}, "data": {"b": 1.5, "a": "<"}, "kind": "X"} "#,
        );
        assert!(!sorted.has_texts_of(&other));
        assert_eq!(sorted.canonical_texts(), other.canonical_texts());
        let expected = [
            r#"{"labels":{},"annotations":{"a":"b","c":"d"}}"#,
            r#"{"data":{"a":"<","b":1.5}}"#,
        ];
        assert_eq!(other.canonical_texts(), expected);
        assert_eq!(read("{}").canonical_texts(), ["", "{}"]);
        let from_tree: KeptObject = serde_json::from_value(json!({"data": {"a": "<", "b": 1.5}})).unwrap();
        assert_eq!(from_tree.canonical_texts(), ["", expected[1]]);
    }

    #[test]
    fn some_labels_and_annotations_are_found() {
        let object = kept(&json!({"metadata": {"labels": {"a": "1", "b/c.d": "\"2\""}, "annotations": null}}));
        let two = Some("\"2\"".to_owned());
        assert_eq!(
            object.some_labels(["b/c.d", "x", "a"]),
            [two, None, Some("1".to_owned())]
        );
        assert_eq!(object.some_annotations(["a"]), [None]);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_kept_and_named_in_the_error() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let object: KeptObject =
            serde_json::from_str(&format!(r#"{{"metadata": {{"name": "a"}}, "spec": {deep}}}"#)).unwrap();
        let error = object
            .to_value(&ObjectKind::new("v1", "Tower"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("Tower a cannot be read: recursion limit exceeded"),
            "{error}"
        );
    }
}
