//! Canonical form of values, and differences between values.

use serde::Serialize;
use serde_json::Value;

/// Converts a value to the form that journals store and compare: members are sorted by name, and members with default
/// values are omitted where the type allows it.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Value {
    // Only a map with non-string keys can fail, and no recorded type has one.
    serde_json::to_value(value).unwrap_or_else(|error| Value::String(format!("not encodable: {error}")))
}

/// Difference between two values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Location as a JSON pointer; empty for the whole value.
    pub path: String,
    /// Value at this location in the first value; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Value>,
    /// Value at this location in the second value; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Value>,
}

/// Returns the differences between two values, sorted by path; empty if they are equal.
pub fn differences(recorded: &Value, again: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(recorded), Some(again), &mut found);
    found
}

fn compare(path: String, recorded: Option<&Value>, again: Option<&Value>, found: &mut Vec<Difference>) {
    match (recorded, again) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let pointer = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(pointer, before.get(key), after.get(key), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                compare(format!("{path}/{index}"), before.get(index), after.get(index), found);
            }
        }
        (recorded, again) if recorded == again => {}
        (recorded, again) => {
            found.push(Difference {
                path,
                recorded: recorded.cloned(),
                again: again.cloned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_their_place_and_both_sides() {
        let before = json!({"a": [1, 2], "b/c": {"d": "x"}, "same": null});
        let after = json!({"a": [1, 3, 4], "b/c": {}, "same": null});
        let actual: Vec<_> = differences(&before, &after)
            .into_iter()
            .map(|difference| (difference.path, difference.recorded, difference.again))
            .collect();
        let expected = [
            ("/a/1", Some(json!(2)), Some(json!(3))),
            ("/a/2", None, Some(json!(4))),
            ("/b~1c/d", Some(json!("x")), None),
        ];
        assert_eq!(
            actual,
            expected.map(|(path, recorded, again)| (path.to_owned(), recorded, again))
        );
        assert!(differences(&before, &before).is_empty());
    }
}
