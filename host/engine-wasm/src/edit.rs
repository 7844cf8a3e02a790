//! Edits of a JSON document by pointer, as described by a guest.

use bulkhead_plugin::plain;
use serde_json::{Map, Value};

/// Maximum depth of an edit's target together with its value, in levels.
const DEPTH_MAX: usize = 100;
/// Maximum length of a pointer in a message, in characters.
const POINTER_CHARS_MAX: usize = 100;

/// Error for an edit that cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// The pointer is invalid.
    #[error("{0:?} is not a JSON Pointer: it must be empty or begin with /")]
    NoPointer(String),
    /// The target or the value is nested too deeply.
    #[error("{0:?}, or the edited value, is nested deeper than {DEPTH_MAX} levels")]
    TooDeep(String),
    /// The target does not exist.
    #[error("{0:?} leads through a value that is neither a list nor a map, or past the end of a list")]
    NoPlace(String),
}

/// Writes a value. Missing maps on the path are created; `-` or the length of a list appends to it.
pub(crate) fn set(document: &mut Value, pointer: &str, value: Value) -> Result<(), EditError> {
    let segments = segments(pointer)?;
    if segments.len() + depth(&value) > DEPTH_MAX {
        return Err(EditError::TooDeep(shown(pointer)));
    }
    let mut place = document;
    for segment in segments {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let next = match place {
            Value::Object(members) => Some(members.entry(segment).or_insert(Value::Null)),
            Value::Array(items) => element(items, &segment),
            _ => None,
        };
        place = next.ok_or_else(|| EditError::NoPlace(shown(pointer)))?;
    }
    *place = value;
    Ok(())
}

/// Removes the value at a pointer, if there is one.
pub(crate) fn remove(document: &mut Value, pointer: &str) -> Result<(), EditError> {
    let mut segments = segments(pointer)?;
    let Some(last) = segments.pop() else {
        *document = Value::Null;
        return Ok(());
    };
    let mut place = document;
    for segment in segments {
        let next = match place {
            Value::Object(members) => members.get_mut(&segment),
            Value::Array(items) => segment.parse().ok().and_then(|index: usize| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return Ok(()) };
        place = next;
    }
    match place {
        Value::Object(members) => {
            members.remove(&last);
        }
        Value::Array(items) => {
            if let Some(index) = last.parse().ok().filter(|index: &usize| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
    Ok(())
}

fn element<'a>(items: &'a mut Vec<Value>, segment: &str) -> Option<&'a mut Value> {
    let index = if segment == "-" {
        items.len()
    } else {
        segment.parse().ok()?
    };
    if index == items.len() {
        items.push(Value::Null);
    }
    items.get_mut(index)
}

fn segments(pointer: &str) -> Result<Vec<String>, EditError> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer
        .strip_prefix('/')
        .ok_or_else(|| EditError::NoPointer(shown(pointer)))?;
    if rest.split('/').nth(DEPTH_MAX).is_some() {
        return Err(EditError::TooDeep(shown(pointer)));
    }
    Ok(rest
        .split('/')
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect())
}

/// Truncates a pointer for a message.
pub(crate) fn shown(pointer: &str) -> String {
    plain(pointer, POINTER_CHARS_MAX)
}

/// Returns the levels of lists and maps in a value. The parser bounds those of a guest's text.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_where_the_pointer_says() {
        let check = |pointer: &str, expected: Result<Value, EditError>| {
            let mut document = json!({"spec": {"replicas": 1, "list": [1, 2]}});
            let done = set(&mut document, pointer, json!(7)).map(|()| document);
            assert_eq!(done, expected, "{pointer}");
        };
        check("", Ok(json!(7)));
        check("/spec/replicas", Ok(json!({"spec": {"replicas": 7, "list": [1, 2]}})));
        check(
            "/status/a~1b",
            Ok(json!({"spec": {"replicas": 1, "list": [1, 2]}, "status": {"a/b": 7}})),
        );
        check("/spec/list/0", Ok(json!({"spec": {"replicas": 1, "list": [7, 2]}})));
        check("/spec/list/-", Ok(json!({"spec": {"replicas": 1, "list": [1, 2, 7]}})));
        check("/spec/list/5", Err(EditError::NoPlace("/spec/list/5".to_owned())));
        check(
            "/spec/replicas/deeper",
            Err(EditError::NoPlace("/spec/replicas/deeper".to_owned())),
        );
        check("spec", Err(EditError::NoPointer("spec".to_owned())));
    }

    #[test]
    fn an_edit_nests_no_deeper_than_a_bound() {
        let check = |segments: usize, levels: usize, fits: bool| {
            let (pointer, mut document) = ("/a".repeat(segments), json!({}));
            let value = (0..levels).fold(json!(7), |value, _| json!([value]));
            let done = set(&mut document, &pointer, value);
            let expected = if fits {
                Ok(())
            } else {
                Err(EditError::TooDeep(shown(&pointer)))
            };
            assert_eq!(done, expected, "{segments} segments, {levels} levels");
            assert!(depth(&document) <= DEPTH_MAX);
            let removed = remove(&mut document, &pointer);
            assert_eq!(removed.is_ok(), segments <= DEPTH_MAX, "{segments} segments");
        };
        check(1, 99, true);
        check(1, 100, false);
        check(100, 0, true);
        check(101, 0, false);
        check(50, 51, false);
        check(100_000, 0, false);
        // Successive edits that deepen the document are subject to the same bound.
        let mut document = json!({});
        for _ in 0..3 {
            let _ = set(&mut document, &"/a".repeat(100), json!({}));
            let _ = set(&mut document, &"/a".repeat(99), json!([1]));
        }
        assert_eq!(depth(&document), 100);
    }

    #[test]
    fn a_message_repeats_the_start_of_a_pointer() {
        let mut document = json!({});
        let error = set(&mut document, &"x".repeat(1 << 20), json!(1)).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }

    #[test]
    fn removing_what_is_not_there_changes_nothing() {
        let check = |pointer: &str, expected: Value| {
            let mut document = json!({"a": {"b": 1}, "l": [1, 2]});
            assert_eq!(remove(&mut document, pointer), Ok(()));
            assert_eq!(document, expected, "{pointer}");
        };
        check("/a/b", json!({"a": {}, "l": [1, 2]}));
        check("/l/0", json!({"a": {"b": 1}, "l": [2]}));
        check("/l/9", json!({"a": {"b": 1}, "l": [1, 2]}));
        check("/x/y", json!({"a": {"b": 1}, "l": [1, 2]}));
        check("/a/b/c", json!({"a": {"b": 1}, "l": [1, 2]}));
        check("", Value::Null);
    }
}
