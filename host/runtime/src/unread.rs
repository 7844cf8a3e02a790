//! Objects that are parsed only if they are needed: a watch repeats each write of its own process.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{self, DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::key::Key;

/// Object in a list or a watch, as the text that was received.
#[derive(Clone)]
pub struct Unread<K> {
    /// Name, namespace, uid and resourceVersion; nothing else.
    metadata: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

/// Identity and version of an object.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    uid: Option<String>,
}

impl Identity {
    /// Reads the identity of an object, which must be well-formed. API servers write it first, and nothing after it is read.
    fn read(object: &str) -> Result<Self, serde_json::Error> {
        struct Fields<'a>(&'a mut Option<Identity>);

        impl<'de> Visitor<'de> for Fields<'_> {
            type Value = ();

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while let Some(name) = map.next_key::<String>()? {
                    if name == "metadata" {
                        *self.0 = Some(map.next_value()?);
                        // The reader returns an error for an unfinished map, which does not count.
                        break;
                    }
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(())
            }
        }

        let mut identity = None;
        let read = serde_json::Deserializer::from_str(object).deserialize_map(Fields(&mut identity));
        identity.map_or_else(|| read.map(|()| Self::default()), Ok)
    }
}

impl<K: Resource + DeserializeOwned> Unread<K> {
    /// Parses the object.
    ///
    /// # Errors
    ///
    /// The name of the object, and the field that does not have the expected type.
    pub fn read(&self) -> Result<K, String> {
        let read = serde_json::from_str(self.text.get());
        read.map_err(|error| format!("{}: {error}", Key::of(self)))
    }
}

/// The text is left out: it may be that of a Secret.
impl<K: Resource> fmt::Debug for Unread<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Unread").field(&Key::of(self)).finish()
    }
}

impl<'de, K> Deserialize<'de> for Unread<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let metadata = Identity::read(text.get()).map_err(de::Error::custom)?;
        Ok(Self {
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata.resource_version,
                uid: metadata.uid,
                ..ObjectMeta::default()
            },
            text,
            kind: PhantomData,
        })
    }
}

impl<K: Resource> Resource for Unread<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(resource: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(resource)
    }

    fn group(resource: &Self::DynamicType) -> Cow<'_, str> {
        K::group(resource)
    }

    fn version(resource: &Self::DynamicType) -> Cow<'_, str> {
        K::version(resource)
    }

    fn plural(resource: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn the_identity_of_an_object_is_read_in_any_order_of_its_fields() {
        let read = |text: &str| serde_json::from_str::<Unread<ConfigMap>>(text);
        for text in [
            r#"{"kind": "ConfigMap", "metadata": {"labels": {"a": "b"}, "name": "a", "uid": "u", "resourceVersion": "7"}, "data": {"k": "v"}}"#,
            r#"{"data": {"k": "v"}, "metadata": {"uid": "u", "resourceVersion": "7", "name": "a"}}"#,
        ] {
            let unread = read(text).unwrap();
            let ObjectMeta {
                uid, resource_version, ..
            } = unread.meta();
            assert_eq!(
                (uid.as_deref(), resource_version.as_deref()),
                (Some("u"), Some("7")),
                "{text}"
            );
            assert_eq!(Key::of(&unread), Key::new("", "a"));
            assert_eq!(unread.read().unwrap().data.unwrap()["k"], "v");
        }
        assert_eq!(Key::of(&read(r#"{"data": {}}"#).unwrap()), Key::new("", ""));
        for malformed in [
            "[]",
            r#"{"metadata": {"name": "a"}, "data": }"#,
            r#"{"metadata": {"name": 5}}"#,
        ] {
            assert!(read(malformed).is_err(), "{malformed}");
        }
        let secret = read(r#"{"metadata": {"name": "a"}, "data": {"k": "secret"}}"#).unwrap();
        assert!(!format!("{secret:?}").contains("secret"));
    }
}
