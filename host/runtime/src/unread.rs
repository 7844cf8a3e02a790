//! Objects that are parsed only if they are needed: a watch repeats each write of its own process.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::key::Key;

/// Object in a list or a watch, as the text that was received.
pub struct Unread<K> {
    /// Name, namespace, uid and resourceVersion; nothing else.
    metadata: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

/// Identity and version of an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Identified {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    uid: Option<String>,
}

impl<K: DeserializeOwned> Unread<K> {
    /// Parses the object.
    ///
    /// # Errors
    ///
    /// The name of the object, and the field that does not have the expected type.
    pub fn read(&self) -> Result<K, String> {
        let read = serde_json::from_str(self.text.get());
        read.map_err(|error| format!("{}: {error}", self.key()))
    }
}

impl<K> Unread<K> {
    /// Returns namespace and name of the object.
    pub fn key(&self) -> Key {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Key::new(text(&self.metadata.namespace), text(&self.metadata.name))
    }
}

impl<K> Clone for Unread<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            text: self.text.clone(),
            kind: PhantomData,
        }
    }
}

/// The text is left out: it may be that of a Secret.
impl<K> fmt::Debug for Unread<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Unread").field(&self.key()).finish()
    }
}

impl<'de, K> Deserialize<'de> for Unread<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Identified { metadata } = serde_json::from_str(text.get()).map_err(de::Error::custom)?;
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
