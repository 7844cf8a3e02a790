//! Merge strategy of lists and maps: as a whole or by element.
//!
//! Kinds with a schema declare the strategy there. Kubernetes' own kinds declare it in tags of their Go types, which
//! `k8s-openapi` does not have; here it is derived from the field name.

use serde_json::Value;

use crate::kind::ResourceKind;
use crate::kubectl::schema::Schema;

/// Identification of the elements of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// None: the list is replaced as a whole.
    Atomic,
    /// By value.
    Set,
    /// By these key fields.
    Map(Vec<String>),
}

/// Lists of Kubernetes' own kinds that are merged by key, with their possible keys. The same field name has different
/// keys in different kinds: `ports` are container ports in a pod and service ports in a service.
const KEYED: &[(&str, &[&[&str]])] = &[
    ("conditions", &[&["type"]]),
    ("containers", &[&["name"]]),
    ("env", &[&["name"]]),
    ("ephemeralContainers", &[&["name"]]),
    ("hostAliases", &[&["ip"]]),
    ("imagePullSecrets", &[&["name"]]),
    ("initContainers", &[&["name"]]),
    ("ownerReferences", &[&["uid"]]),
    ("podIPs", &[&["ip"]]),
    ("ports", &[&["containerPort", "protocol"], &["port", "protocol"]]),
    ("resourceClaims", &[&["name"]]),
    ("topologySpreadConstraints", &[&["topologyKey", "whenUnsatisfiable"]]),
    ("volumeDevices", &[&["devicePath"]]),
    ("volumeMounts", &[&["mountPath"]]),
    ("volumes", &[&["name"]]),
];

/// Maps of Kubernetes' own kinds that are replaced as a whole.
const ATOMIC_MAPS: &[&str] = &[
    "configMapKeyRef",
    "fieldRef",
    "labelSelector",
    "namespaceSelector",
    "nodeSelector",
    "resourceFieldRef",
    "roleRef",
    "secretKeyRef",
    "selector",
];

/// Returns the keys of a list of a built-in kind, if the list is merged by key.
pub(crate) fn builtin_keys(field: &str, elements: &[Value]) -> Option<&'static [&'static str]> {
    let (_, candidates) = KEYED.iter().find(|(known, _)| *known == field)?;
    // Only the first key must be present: the protocol defaults to TCP.
    let has = |element: &Value, keys: &[&str]| keys.first().is_some_and(|key| element.get(key).is_some());
    let tells_apart = |keys: &&&'static [&'static str]| {
        elements
            .iter()
            .all(|element| has(element, keys) || element.get("$patch").is_some())
    };
    candidates.iter().find(tells_apart).copied()
}

/// Position in an object.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Schema of this position; absent if there is none or if it does not declare a merge strategy (`metadata`).
    schema: Option<Schema<'a>>,
    /// Name of the field.
    field: &'a str,
    /// True if the merge strategy is derived from field names.
    is_builtin: bool,
}

impl<'a> Place<'a> {
    /// Returns the root of an object.
    pub(crate) fn root(kind: &'a ResourceKind) -> Self {
        let schema = kind.schema.as_ref().map(|schema| Schema::new(schema));
        Self {
            schema,
            field: "",
            is_builtin: kind.schema.is_none() && kind.is_builtin(),
        }
    }

    pub(crate) fn is_root(self) -> bool {
        self.field.is_empty()
    }

    /// Returns the position of a field.
    pub(crate) fn field(self, name: &'a str) -> Self {
        if self.is_root() && name == "metadata" {
            return Self {
                schema: None,
                field: name,
                is_builtin: true,
            };
        }
        Self {
            schema: self.schema.and_then(|schema| schema.field(name)),
            field: name,
            is_builtin: self.is_builtin,
        }
    }

    /// Returns the position of an element of a list.
    pub(crate) fn element(self) -> Self {
        Self {
            schema: self.schema.and_then(Schema::items),
            field: "[]",
            is_builtin: self.is_builtin,
        }
    }

    /// Returns true if a map at this position is atomic.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self.schema {
            Some(schema) => schema.is_atomic_map(),
            None => self.is_builtin && ATOMIC_MAPS.contains(&self.field),
        }
    }

    /// Returns the merge strategy of a list with these elements.
    pub(crate) fn list_type(self, elements: &[Value]) -> ListType {
        let found = match self.schema {
            Some(schema) => match schema.list_type() {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(schema.list_keys().into_iter().map(str::to_owned).collect()),
                _ => ListType::Atomic,
            },
            None if !self.is_builtin => ListType::Atomic,
            None if self.field == "finalizers" => ListType::Set,
            None => match builtin_keys(self.field, elements) {
                Some(keys) => ListType::Map(keys.iter().map(|&key| key.to_owned()).collect()),
                None => ListType::Atomic,
            },
        };
        match &found {
            ListType::Map(keys) if elements.iter().any(|element| key_of(element, keys).is_none()) => ListType::Atomic,
            _ => found,
        }
    }
}

/// Returns the key of a list element as a path element of field ownership: `k:{"name":"a"}`.
pub(crate) fn key_of(element: &Value, keys: &[String]) -> Option<String> {
    let mut key = serde_json::Map::new();
    for name in keys {
        match element.get(name) {
            Some(value) => key.insert(name.clone(), value.clone()),
            None if name == "protocol" => key.insert(name.clone(), Value::from("TCP")),
            None => return None,
        };
    }
    (!key.is_empty()).then(|| format!("k:{}", Value::Object(key)))
}
