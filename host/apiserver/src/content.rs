//! Content of a stored object: its top-level fields, which the versions of the object share while they are the same.

use std::collections::BTreeMap;
use std::ops::{Index, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::json::HasFields;

/// Fields that differ between most versions, so that nothing is gained by keeping their text.
const CHANGING: [&str; 2] = ["metadata", "status"];

/// Content of an object by top-level field.
#[derive(Clone, Debug, Default)]
pub struct Content {
    fields: BTreeMap<Arc<str>, Arc<Field>>,
}

#[derive(Debug)]
struct Field {
    value: Value,
    /// The value as JSON: a part of the first text of an object with this field.
    text: OnceLock<Bytes>,
}

impl From<Value> for Field {
    fn from(value: Value) -> Self {
        Self {
            value,
            text: OnceLock::new(),
        }
    }
}

impl From<Value> for Content {
    /// Returns the content of a JSON object; of any other value, a content without fields.
    fn from(value: Value) -> Self {
        let fields = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let shared = |(name, value): (String, _)| (Arc::from(name), Arc::new(Field::from(value)));
        Self {
            fields: fields.into_iter().map(shared).collect(),
        }
    }
}

impl HasFields for Content {
    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).map(|field| &field.value)
    }
}

impl Index<&str> for Content {
    type Output = Value;

    /// Returns a field, and null if it is absent.
    fn index(&self, name: &str) -> &Value {
        self.field(name).unwrap_or(&Value::Null)
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.fields.len() == other.fields.len() && self.fields.keys().all(|name| self.has_field_of(other, name))
    }
}

impl Content {
    /// Returns the content as a JSON object. Copies all fields.
    pub fn to_value(&self) -> Value {
        let copied = self
            .fields
            .iter()
            .map(|(name, field)| (name.to_string(), field.value.clone()));
        Value::Object(copied.collect())
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
        let changed = |mut value: Value| {
            change(&mut value);
            Arc::new(Field::from(value))
        };
        match self.fields.get_mut(name) {
            Some(field) => {
                let value = match Arc::get_mut(field) {
                    Some(own) => own.value.take(),
                    None => field.value.clone(),
                };
                *field = changed(value);
            }
            None => drop(self.fields.insert(Arc::from(name), changed(Value::Null))),
        }
    }

    /// Sets a field of the metadata.
    pub(crate) fn set_metadata(&mut self, field: &str, value: impl Into<Value>) {
        self.edit("metadata", |metadata| metadata[field] = value.into());
    }

    /// Shares the fields that are the same as those of another content.
    pub(crate) fn share(&mut self, other: &Self) {
        for (name, field) in &mut self.fields {
            let same = other
                .fields
                .get(name)
                .filter(|other| !Arc::ptr_eq(other, field) && other.value == field.value);
            if let Some(same) = same {
                *field = Arc::clone(same);
            }
        }
    }

    /// Returns true if a field is the same in both contents, or absent in both.
    pub(crate) fn has_field_of(&self, other: &Self, name: &str) -> bool {
        match (self.fields.get(name), other.fields.get(name)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own.value == other.value,
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Returns the names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(|name| &**name)
    }

    /// Returns the content as JSON between two texts.
    pub(crate) fn between(&self, before: &str, after: &str) -> Bytes {
        let mut text = Vec::with_capacity(TEXT_CAPACITY);
        text.extend_from_slice(before.as_bytes());
        let mut new: Vec<(&Field, Range<usize>)> = Vec::new();
        let mut separator = b'{';
        for (name, field) in &self.fields {
            text.push(separator);
            separator = b',';
            // Texts and values can always be serialized. Their `Display` is slower by half.
            let _ = serde_json::to_writer(&mut text, name);
            text.push(b':');
            if let Some(known) = field.text.get() {
                text.extend_from_slice(known);
                continue;
            }
            let start = text.len();
            let _ = serde_json::to_writer(&mut text, &field.value);
            if !CHANGING.contains(&&**name) {
                new.push((field, start..text.len()));
            }
        }
        if self.fields.is_empty() {
            text.push(b'{');
        }
        text.push(b'}');
        text.extend_from_slice(after.as_bytes());
        let text = Bytes::from(text);
        for (field, range) in new {
            field.text.get_or_init(|| text.slice(range));
        }
        text
    }
}

/// Initial capacity of the text of an object, in bytes.
const TEXT_CAPACITY: usize = 1_024;

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
            let content = Content::from(value.clone());
            assert_eq!(content.to_value(), value);
            for _ in 0..2 {
                assert_eq!(content.between("<", ">"), format!("<{value}>"));
            }
        }
        assert_eq!(Content::from(json!([1])).to_value(), json!({}));
        let content = Content::from(object());
        assert_eq!((&content["kind"], &content["data"]), (&json!("Pod"), &Value::Null));
    }

    #[test]
    fn a_change_leaves_other_contents_as_they_are() {
        let before = Content::from(object());
        let text = before.between("", "");
        let mut after = before.clone();
        after.set_metadata("resourceVersion", "2");
        after.set("status", None);
        after.edit("extra", |extra| *extra = json!(1));
        let mut expected = object();
        expected["metadata"]["resourceVersion"] = json!("2");
        expected["extra"] = json!(1);
        expected.as_object_mut().unwrap().remove("status");
        assert_eq!(after.to_value(), expected);
        assert_eq!(after.between("", ""), expected.to_string());
        assert_eq!((before.to_value(), before.between("", "")), (object(), text));
    }

    #[test]
    fn equal_fields_are_shared() {
        let old = Content::from(object());
        let mut changed = object();
        changed["status"]["phase"] = json!("Running");
        let mut new = Content::from(changed);
        assert_ne!(new, old);
        new.share(&old);
        let is_shared = |name: &str| Arc::ptr_eq(&new.fields[name], &old.fields[name]);
        assert_eq!(
            (is_shared("spec"), is_shared("metadata"), is_shared("status")),
            (true, true, false)
        );
        let is_same = |name: &str| new.has_field_of(&old, name);
        assert_eq!(
            (is_same("spec"), is_same("status"), is_same("data")),
            (true, false, true)
        );
        new.set("status", Some(json!({})));
        assert_eq!(new, old);
        new.set("data", Some(json!({})));
        assert_ne!(new, old);
        assert_ne!(old, new);
    }
}
