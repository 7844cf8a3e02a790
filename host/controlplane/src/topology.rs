//! How lists and maps are merged: as a whole, or element by element.
//!
//! Kinds with a schema say it there. Kubernetes' own kinds say it in tags of their Go types, which `k8s-openapi` does not
//! have; they are told apart by the names of their fields here.

use serde_json::Value;

use crate::kind::ResourceKind;
use crate::schema::Schema;

/// How the elements of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// They are not: the list is replaced as a whole.
    Atomic,
    /// By their value.
    Set,
    /// By these fields of theirs.
    Map(Vec<String>),
}

/// Lists of Kubernetes' own kinds that are merged by key, with the keys that may tell their elements apart. The same
/// field name means container ports in a pod and service ports in a service.
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

/// The keys of a list of Kubernetes' own, if it is one that is merged by key.
pub(crate) fn builtin_keys(field: &str, elements: &[Value]) -> Option<&'static [&'static str]> {
    let (_, candidates) = KEYED.iter().find(|(known, _)| *known == field)?;
    // A protocol is TCP unless it is said.
    let has = |element: &Value, keys: &[&str]| keys.first().is_some_and(|key| element.get(key).is_some());
    let tells_apart = |keys: &&&'static [&'static str]| {
        elements.iter().all(|element| has(element, keys) || element.get("$patch").is_some())
    };
    candidates.iter().find(tells_apart).copied()
}

/// A place in an object.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The schema here; absent where there is none, or it says nothing of merging.
    schema: Option<Schema<'a>>,
    /// The name of the field.
    field: &'a str,
    /// Whether names of fields tell how to merge.
    is_builtin: bool,
}

impl<'a> Place<'a> {
    /// The whole of an object of a kind.
    pub(crate) fn root(kind: &'a ResourceKind) -> Self {
        let schema = kind.schema.as_ref().map(|schema| Schema::new(schema));
        Self { schema, field: "", is_builtin: kind.schema.is_none() && kind.is_builtin() }
    }

    pub(crate) fn is_root(self) -> bool {
        self.field.is_empty()
    }

    /// The place of a field.
    pub(crate) fn field(self, name: &'a str) -> Self {
        if self.is_root() && name == "metadata" {
            return Self { schema: None, field: name, is_builtin: true };
        }
        Self { schema: self.schema.and_then(|schema| schema.field(name)), field: name, is_builtin: self.is_builtin }
    }

    /// The place of an element of a list.
    pub(crate) fn element(self) -> Self {
        Self { schema: self.schema.and_then(Schema::items), field: "[]", is_builtin: self.is_builtin }
    }

    /// Whether a map is owned as a whole here.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self.schema {
            Some(schema) => schema.is_atomic_map(),
            None => self.is_builtin && ATOMIC_MAPS.contains(&self.field),
        }
    }

    /// How a list with these elements is merged here.
    pub(crate) fn list_type(self, elements: &[Value]) -> ListType {
        let told = match self.schema {
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
        match &told {
            ListType::Map(keys) if elements.iter().any(|element| key_of(element, keys).is_none()) => ListType::Atomic,
            _ => told,
        }
    }
}

/// What tells an element of a list apart, as the path element of field ownership: `k:{"name":"a"}`.
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
