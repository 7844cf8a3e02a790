//! Objects of which an informer reads and keeps some fields only: most of a pod is managed fields, volumes and
//! environment.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::any_kind::resource_of_any_kind;

/// Fields of an object that every excerpt has: its identity and its version.
const IDENTITY: [&str; 4] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.resourceVersion",
    "metadata.uid",
];

/// Value that is made of some fields of an object.
pub trait FromFields {
    /// Returns the fields that [`FromFields::read`] needs. They are read of each object, so they should be made once.
    fn fields() -> &'static Fields;

    /// Makes the value of an object that has these fields, and its name, namespace, uid and resourceVersion.
    fn read(object: &Value) -> Self;
}

/// Object in a list or a watch, of which only one value is made.
#[derive(Clone, Debug)]
pub struct Excerpt<T> {
    /// Name, namespace, uid and resourceVersion; nothing else.
    pub metadata: ObjectMeta,
    /// Value that was made of the object.
    pub value: T,
}

impl<'de, T: FromFields> Deserialize<'de> for Excerpt<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = T::fields().deserialize(deserializer)?;
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Ok(Self {
            metadata: ObjectMeta {
                name: text("name"),
                namespace: text("namespace"),
                resource_version: text("resourceVersion"),
                uid: text("uid"),
                ..ObjectMeta::default()
            },
            value: T::read(&object),
        })
    }
}

resource_of_any_kind!(Excerpt<T>, T);

/// Fields of an object, as a tree. A field without fields of its own is read whole. A value that is neither object nor list,
/// but would have to be one to have a field, is read as null.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// Returns the fields of these paths, such as `spec.containers.resources`, and those of the identity of an object.
    /// Lists have no segment: the path goes on in each of their elements.
    pub fn of(paths: &[&str]) -> Self {
        let mut fields = Self::default();
        for path in paths.iter().chain(&IDENTITY) {
            let root = &mut fields;
            path.split('.')
                .fold(root, |fields, name| fields.0.entry(name.to_owned()).or_default());
        }
        fields
    }

    /// Reads these fields of an object that is JSON.
    ///
    /// # Errors
    ///
    /// The text is malformed up to the end of the object.
    pub fn read(&self, object: &str) -> Result<Value, serde_json::Error> {
        self.deserialize(&mut serde_json::Deserializer::from_str(object))
    }
}

/// Name of a field in JSON, which is looked up in these fields.
struct Name<'a>(&'a Fields);

impl<'de, 'a> DeserializeSeed<'de> for Name<'a> {
    type Value = Option<(&'a str, &'a Fields)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Name<'a> {
    type Value = Option<(&'a str, &'a Fields)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let field = self.0.0.get_key_value(name);
        Ok(field.map(|(name, fields)| (name.as_str(), fields)))
    }
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.is_empty() {
            Value::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(field) = map.next_key_seed(Name(self))? {
            match field {
                Some((name, fields)) => drop(object.insert(name.to_owned(), map.next_value_seed(fields)?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_has_the_fields_that_are_asked_for() {
        let fields = Fields::of(&["spec.containers.resources", "spec.node", "status"]);
        let read = |json: &str| fields.read(json);
        let check = |object: Value, expected: Value| {
            assert_eq!(read(&object.to_string()).unwrap(), expected, "{object}");
        };
        check(
            json!({
                "kind": "Pod",
                "metadata": {"name": "a\"b", "managedFields": [{"x": [1, -2, 0.5, null, true]}]},
                "spec": {
                    "containers": [{"image": "app", "resources": {"limits": {"cpu": 1}}}, {"name": "x"}, "odd", 7, null],
                    "node": {"name": "n"},
                },
                "status": [1, {"a": "b"}],
            }),
            json!({
                "metadata": {"name": "a\"b"},
                "spec": {
                    "containers": [{"resources": {"limits": {"cpu": 1}}}, {}, null, null, null], "node": {"name": "n"},
                },
                "status": [1, {"a": "b"}],
            }),
        );
        check(
            json!({"metadata": -1, "spec": 0.5}),
            json!({"metadata": null, "spec": null}),
        );
        check(json!({"metadata": true}), json!({"metadata": null}));
        for malformed in [r#"{"metadata": {"name": }}"#, r#"{"other": [}"#] {
            assert!(read(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn an_excerpt_has_the_identity_of_its_object() {
        #[derive(Debug, PartialEq)]
        struct Phase(Option<String>);

        impl FromFields for Phase {
            fn fields() -> &'static Fields {
                static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&["status.phase"]));
                &FIELDS
            }

            fn read(object: &Value) -> Self {
                Self(object["status"]["phase"].as_str().map(str::to_owned))
            }
        }

        let object = json!({
            "metadata": {
                "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "labels": {"x": "y"}, "managedFields": [{}],
            },
            "spec": {"nodeName": "n"},
            "status": {"phase": "Running"},
        });
        let read: Excerpt<Phase> = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(
            json!(read.metadata),
            json!({"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"})
        );
        assert_eq!(read.value, Phase(Some("Running".to_owned())));
        let odd: Excerpt<Phase> = serde_json::from_str(r#"{"metadata": 3, "status": []}"#).unwrap();
        assert_eq!((odd.metadata, odd.value), (ObjectMeta::default(), Phase(None)));
    }
}
