//! Access to fields in JSON by path. Names in a path have no escapes: [`Value::pointer`] copies each of them twice.

use serde_json::Value;

/// Object with fields that have names: a JSON value, or the [`Content`](crate::Content) of a stored object.
pub trait HasFields {
    /// Returns a field, if it exists.
    fn field(&self, name: &str) -> Option<&Value>;
}

impl HasFields for Value {
    fn field(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

/// Returns the value at a path such as `/metadata/name`, and `None` for the empty path.
pub fn field<'a>(object: &'a impl HasFields, path: &str) -> Option<&'a Value> {
    follow(object, path.strip_prefix('/')?.split('/'))
}

/// Returns the value that the names of fields lead to, and `None` without names.
pub(crate) fn follow<'a, 'n>(
    object: &'a impl HasFields,
    mut names: impl Iterator<Item = &'n str>,
) -> Option<&'a Value> {
    let first = object.field(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// Returns the string at a path such as `/metadata/name`; empty if absent.
pub fn text<'a>(object: &'a impl HasFields, path: &str) -> &'a str {
    field(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the array at a path such as `/status/conditions`; empty if absent.
pub fn array<'a>(object: &'a impl HasFields, path: &str) -> &'a [Value] {
    field(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
