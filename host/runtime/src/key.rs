//! Names of objects.

use std::fmt;

use kube::{Resource, ResourceExt};

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace; empty for cluster scope.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// Creates a key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.meta().namespace.clone().unwrap_or_default(), object.name_any())
    }

    /// Returns the name of the object of this kind, for spans.
    pub fn named<'a>(&'a self, kind: &'a str) -> ObjectName<'a> {
        ObjectName {
            kind,
            namespace: &self.namespace,
            name: &self.name,
        }
    }
}

/// Formats a key as `namespace/name`, or as the name alone.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named("").fmt(f)
    }
}

/// Kind, namespace and name of an object, borrowed from a key. Spans contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// Kind.
    pub kind: &'a str,
    /// Namespace; empty for cluster scope.
    pub namespace: &'a str,
    /// Name; empty if the key stands for all objects of the kind.
    pub name: &'a str,
}

impl<'a> ObjectName<'a> {
    /// Returns the name of all objects of a kind.
    pub fn all(kind: &'a str) -> Self {
        Self {
            kind,
            namespace: "",
            name: "",
        }
    }
}

/// Formats namespace and name as a [`Key`] does, without the kind.
impl fmt::Display for ObjectName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
