//! Content of a stored object: its top-level fields, which the versions of the object share while they are the same.
//!
//! A field that seldom changes is text until it is read, because a tree takes several times as much memory, and most
//! fields, such as the specs of Works, are only sent to clients.

use std::collections::BTreeMap;
use std::ops::{Index, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::HasFields;

const METADATA: &str = "metadata";
const RESOURCE_VERSION: &str = "resourceVersion";

/// Fields that most writes read. The status differs between most versions.
const TREES: [&str; 2] = [METADATA, "status"];

/// Content of an object by top-level field.
///
/// The resourceVersion is not a field of the metadata, so that versions can share the metadata. It is part of all texts,
/// of [`Content::to_value`] and of [`Content::metadata`].
#[derive(Clone, Debug)]
pub struct Content {
    fields: BTreeMap<Arc<str>, Arc<Field>>,
    /// The resourceVersion; 0 if the content is not stored.
    version: u64,
}

/// Value of a field: a tree, its text as canonical JSON, or both.
#[derive(Debug)]
struct Field {
    tree: OnceLock<Value>,
    text: OnceLock<Bytes>,
}

impl Field {
    fn value(&self) -> &Value {
        self.tree.get_or_init(|| self.parsed())
    }

    /// Returns the value. Leaves the field as it is.
    fn to_value(&self) -> Value {
        self.tree.get().cloned().unwrap_or_else(|| self.parsed())
    }

    fn parsed(&self) -> Value {
        let text = self.text.get().map(|text| serde_json::from_slice(text));
        // The text was made from a value.
        text.and_then(Result::ok).unwrap_or_default()
    }

    fn text(&self) -> &Bytes {
        self.text.get_or_init(|| text_of(|text| self.write(text)))
    }

    fn write(&self, text: &mut Vec<u8>) {
        match self.text.get() {
            Some(known) => text.extend_from_slice(known),
            // Values can always be serialized. Their `Display` is slower by half.
            None => drop(serde_json::to_writer(text, self.value())),
        }
    }
}

impl From<Value> for Field {
    fn from(value: Value) -> Self {
        Self {
            tree: OnceLock::from(value),
            text: OnceLock::new(),
        }
    }
}

impl From<Bytes> for Field {
    fn from(text: Bytes) -> Self {
        Self {
            tree: OnceLock::new(),
            text: OnceLock::from(text),
        }
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        match (self.text.get(), other.text.get()) {
            (Some(own), Some(other)) => own == other,
            (_, _) => self.value() == other.value(),
        }
    }
}

impl From<Value> for Content {
    /// Returns the content of a JSON object; of any other value, a content without fields.
    fn from(value: Value) -> Self {
        let mut fields = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        if let Some(metadata) = fields.get_mut(METADATA) {
            remove_version(metadata);
        }
        let shared = |(name, value): (String, _)| (Arc::from(name), Arc::new(Field::from(value)));
        Self {
            fields: fields.into_iter().map(shared).collect(),
            version: 0,
        }
    }
}

impl HasFields for Content {
    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).map(|field| field.value())
    }
}

impl Index<&str> for Content {
    type Output = Value;

    /// Returns a field, and null if it is absent.
    fn index(&self, name: &str) -> &Value {
        self.field(name).unwrap_or(&Value::Null)
    }
}

/// Equal contents may have different resourceVersions.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.fields.len() == other.fields.len() && self.fields.keys().all(|name| self.has_field_of(other, name))
    }
}

impl Content {
    /// Returns the content that [`Content::between`] printed. Fields but the metadata are parsed when they are read.
    pub(crate) fn read(text: &Bytes, version: u64) -> Self {
        // The text was made from a content.
        let fields: BTreeMap<Arc<str>, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
        let part = |value: &RawValue| Arc::new(Field::from(text.slice_ref(value.get().as_bytes())));
        let mut content = Self {
            fields: fields.into_iter().map(|(name, value)| (name, part(value))).collect(),
            version,
        };
        content.edit(METADATA, remove_version);
        content
    }

    /// Returns the content as a JSON object. Copies all fields.
    pub fn to_value(&self) -> Value {
        self.value_of(|_| true)
    }

    /// Returns the fields whose names `wanted` accepts as a JSON object.
    pub(crate) fn value_of(&self, wanted: impl Fn(&str) -> bool) -> Value {
        let wanted = self.fields.iter().filter(|(name, _)| wanted(name));
        let copied = wanted.map(|(name, field)| (name.to_string(), field.to_value()));
        let mut value = Value::Object(copied.collect());
        if let Some(metadata) = value.get_mut(METADATA) {
            self.add_version(metadata);
        }
        value
    }

    /// Returns a copy of the metadata, with the resourceVersion.
    pub fn metadata(&self) -> Value {
        let mut metadata = self[METADATA].clone();
        self.add_version(&mut metadata);
        metadata
    }

    fn add_version(&self, metadata: &mut Value) {
        if self.version != 0 {
            metadata[RESOURCE_VERSION] = Value::from(self.version.to_string());
        }
    }

    /// Sets the resourceVersion.
    pub(crate) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Sets or removes a field.
    pub(crate) fn set(&mut self, name: &str, value: Option<Value>) {
        match value {
            Some(value) => self.fields.insert(Arc::from(name), Arc::new(Field::from(value))),
            None => self.fields.remove(name),
        };
    }

    /// Changes a field; an absent one is null before. Other contents that share it keep their value.
    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let (name, field) = match self.fields.remove_entry(name) {
            Some((name, field)) => (name, Some(field)),
            None => (Arc::from(name), None),
        };
        let own = |field: Arc<Field>| match Arc::try_unwrap(field) {
            Ok(mut own) => own.tree.take().unwrap_or_else(|| own.parsed()),
            Err(shared) => shared.to_value(),
        };
        let mut value = field.map(own).unwrap_or_default();
        change(&mut value);
        self.fields.insert(name, Arc::new(Field::from(value)));
    }

    /// Sets a field of the metadata.
    pub(crate) fn set_metadata(&mut self, field: &str, value: impl Into<Value>) {
        self.edit(METADATA, |metadata| metadata[field] = value.into());
    }

    /// Shares the fields that are the same as those of another content.
    pub(crate) fn share(&mut self, other: &Self) {
        for (name, field) in &mut self.fields {
            let Some(other) = other.fields.get(name).filter(|other| !Arc::ptr_eq(other, field)) else {
                continue;
            };
            if other.tree.get().is_none() {
                field.text();
            }
            if other == field {
                *field = Arc::clone(other);
            }
        }
    }

    /// Returns true if a field is the same in both contents, or absent in both.
    pub(crate) fn has_field_of(&self, other: &Self, name: &str) -> bool {
        match (self.fields.get(name), other.fields.get(name)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own == other,
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Returns the names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(|name| &**name)
    }

    /// Returns the content as JSON between two texts. Drops the trees of fields that seldom change and that no other
    /// content shares.
    pub(crate) fn between(&mut self, before: &str, after: &str) -> Bytes {
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(self.fields.len());
        let text = text_of(|text| {
            text.extend_from_slice(before.as_bytes());
            let mut separator = b'{';
            for (name, field) in &self.fields {
                text.push(separator);
                separator = b',';
                // Names can always be serialized.
                let _ = serde_json::to_writer(&mut *text, name);
                text.push(b':');
                let start = text.len();
                if self.version != 0 && &**name == METADATA {
                    write_versioned(text, field, self.version);
                } else {
                    field.write(text);
                }
                ranges.push(start..text.len());
            }
            let end: &[u8] = if ranges.is_empty() { b"{}" } else { b"}" };
            text.extend_from_slice(end);
            text.extend_from_slice(after.as_bytes());
        });
        for ((name, field), range) in self.fields.iter_mut().zip(ranges) {
            if !TREES.contains(&&**name)
                && let Some(own) = Arc::get_mut(field)
            {
                *own = Field::from(text.slice(range));
            }
        }
        text
    }
}

fn remove_version(metadata: &mut Value) {
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove(RESOURCE_VERSION);
    }
}

/// Writes metadata with a resourceVersion.
fn write_versioned(text: &mut Vec<u8>, metadata: &Field, version: u64) {
    let others = metadata.text().strip_prefix(b"{").unwrap_or(b"}");
    text.extend_from_slice(format!("{{\"{RESOURCE_VERSION}\":\"{version}\"").as_bytes());
    if others != b"}" {
        text.push(b',');
    }
    text.extend_from_slice(others);
}

/// Returns a text without spare capacity: most texts are kept for long.
fn text_of(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut text = Vec::with_capacity(TEXT_CAPACITY);
    write(&mut text);
    Bytes::copy_from_slice(&text)
}

/// Initial capacity for the text of an object, in bytes. Most texts are shorter.
const TEXT_CAPACITY: usize = 8_192;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": ["\"", 0.5]}, "status": {},
        })
    }

    #[test]
    fn a_content_is_the_object_that_it_came_from() {
        for value in [object(), json!({}), json!({"\"quoted\"": null})] {
            let mut content = Content::from(value.clone());
            assert_eq!(content.to_value(), value);
            for _ in 0..2 {
                assert_eq!(content.between("<", ">"), format!("<{value}>"));
                assert_eq!(content.to_value(), value);
            }
        }
        assert_eq!(Content::from(json!([1])).to_value(), json!({}));
        let content = Content::from(object());
        assert_eq!((&content["kind"], &content["data"]), (&json!("Pod"), &Value::Null));
    }

    #[test]
    fn the_text_of_a_stored_object_has_its_version() {
        let mut stored = object();
        stored["metadata"]["resourceVersion"] = json!("7");
        let mut content = Content::from(stored.clone());
        assert_eq!(content.to_value(), object());
        for version in [6, 7] {
            content.set_version(version);
        }
        for _ in 0..2 {
            let text = content.between("", "");
            assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), stored);
            let read = Content::read(&text, 7);
            assert_eq!((read.to_value(), &read), (stored.clone(), &content));
            assert_eq!(content.metadata(), stored["metadata"]);
            assert_eq!(content["metadata"], object()["metadata"]);
        }
        let mut bare = Content::from(json!({"metadata": {}}));
        bare.set_version(1);
        assert_eq!(bare.between("", ""), r#"{"metadata":{"resourceVersion":"1"}}"#);
    }

    #[test]
    fn fields_that_seldom_change_are_text_until_they_are_read() {
        let mut content = Content::from(object());
        let has_tree = |content: &Content, name: &str| content.fields[name].tree.get().is_some();
        let mut shared = content.clone();
        shared.between("", "");
        assert!(has_tree(&shared, "spec"));
        drop(shared);
        content.between("", "");
        assert_eq!(
            (has_tree(&content, "spec"), has_tree(&content, "status")),
            (false, true)
        );
        assert_eq!(content.to_value(), object());
        assert!(!has_tree(&content, "spec"));
        assert_eq!(content["spec"], object()["spec"]);
        assert!(has_tree(&content, "spec"));
    }

    #[test]
    fn a_change_leaves_other_contents_as_they_are() {
        let mut before = Content::from(object());
        let text = before.between("", "");
        let mut after = before.clone();
        after.set_metadata("uid", "2");
        after.set("status", None);
        after.edit("extra", |extra| *extra = json!(1));
        after.edit("spec", |spec| spec["y"] = json!(2));
        let mut expected = object();
        expected["metadata"]["uid"] = json!("2");
        expected["extra"] = json!(1);
        expected["spec"]["y"] = json!(2);
        expected.as_object_mut().unwrap().remove("status");
        assert_eq!(after.to_value(), expected);
        assert_eq!(after.between("", ""), expected.to_string());
        assert_eq!((before.to_value(), before.between("", "")), (object(), text));
    }

    #[test]
    fn equal_fields_are_shared() {
        for is_text in [false, true] {
            let mut old = Content::from(object());
            if is_text {
                old.between("", "");
            }
            let mut changed = object();
            changed["status"]["phase"] = json!("Running");
            changed["kind"] = json!("Job");
            let mut new = Content::from(changed);
            assert_ne!(new, old);
            new.share(&old);
            let is_shared = |name: &str| Arc::ptr_eq(&new.fields[name], &old.fields[name]);
            let shared = ["spec", "metadata", "status", "kind"].map(is_shared);
            assert_eq!(shared, [true, true, false, false]);
            let is_same = |name: &str| new.has_field_of(&old, name);
            assert_eq!(
                ["spec", "status", "kind", "data"].map(is_same),
                [true, false, false, true]
            );
            new.set("status", Some(json!({})));
            new.set("kind", Some(json!("Pod")));
            assert_eq!(new, old);
            new.set("data", Some(json!({})));
            assert_ne!(new, old);
            assert_ne!(old, new);
        }
    }
}
