//! Access to fields in JSON by path. Names in a path have no escapes: [`Value::pointer`] copies each of them twice.

use serde_json::Value;

/// Returns the value at a path such as `/metadata/name`.
fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split('/').skip(1);
    names.try_fold(value, |value, name| value.get(name))
}

/// Returns the string at a path such as `/metadata/name`; empty if absent.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    field(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the array at a path such as `/status/conditions`; empty if absent.
pub fn array<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    field(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
