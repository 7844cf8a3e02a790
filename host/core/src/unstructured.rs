//! Strict access to untyped objects. Null is a value of the wrong type, and an integral float is no integer.
//! (Kubernetes: `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`.)
//!
//! [`crate::shape`] has the lenient access of typed structs.

use serde_json::{Map, Value};

use crate::shape::{Malformed, type_name};

/// Returns the value at `path`, which may be null; `None` if it is missing, or if a parent is missing or null.
pub fn value<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>, Malformed> {
    let mut current = object;
    for (depth, name) in path.iter().enumerate() {
        current = match current {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(*name) {
                None => return Ok(None),
                Some(member) => member,
            },
            other => return Err(unfit(path.get(..depth).unwrap_or_default(), other, "an object")),
        };
    }
    Ok(Some(current))
}

fn unfit(path: &[&str], value: &Value, expected: &str) -> Malformed {
    Malformed::new(format!("{} is {}, not {expected}", path.join("."), type_name(value)))
}

/// Returns the string at `path`.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>, Malformed> {
    let Some(value) = value(object, path)? else {
        return Ok(None);
    };
    value.as_str().map(Some).ok_or_else(|| unfit(path, value, "a string"))
}

/// Returns the integer at `path`.
pub fn integer(object: &Value, path: &[&str]) -> Result<Option<i64>, Malformed> {
    let Some(value) = value(object, path)? else {
        return Ok(None);
    };
    value.as_i64().map(Some).ok_or_else(|| unfit(path, value, "an integer"))
}

/// Returns the object at `path`, whose members must all be strings.
pub fn texts<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>, Malformed> {
    let Some(value) = value(object, path)? else {
        return Ok(None);
    };
    let members = value.as_object().ok_or_else(|| unfit(path, value, "an object"))?;
    for (name, member) in members {
        if !member.is_string() {
            let whole: Vec<_> = path.iter().copied().chain([name.as_str()]).collect();
            return Err(unfit(&whole, member, "a string"));
        }
    }
    Ok(Some(members))
}

/// Writes a value; creates missing parent objects.
pub fn put(object: &mut Value, path: &[&str], value: Value) -> Result<(), Malformed> {
    let mut current = object;
    for (depth, name) in path.iter().enumerate() {
        let Value::Object(members) = current else {
            return Err(unfit(path.get(..depth).unwrap_or_default(), current, "an object"));
        };
        current = members.entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    *current = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_a_value_and_a_null_parent_is_none() {
        let check = |object: Value, expected: Result<Option<i64>, &str>| {
            let got = integer(&object, &["spec", "replicas"]).map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{object}");
        };
        check(json!({"spec": {"replicas": 3}}), Ok(Some(3)));
        check(json!({"spec": {}}), Ok(None));
        check(json!({}), Ok(None));
        check(json!({"spec": null}), Ok(None));
        check(
            json!({"spec": {"replicas": null}}),
            Err("spec.replicas is null, not an integer"),
        );
        check(
            json!({"spec": {"replicas": 3.0}}),
            Err("spec.replicas is a number, not an integer"),
        );
        check(json!({"spec": []}), Err("spec is a list, not an object"));
    }

    #[test]
    fn texts_and_their_maps_are_checked() {
        let object = json!({"name": "x", "labels": {"a": "b"}, "odd": {"a": 1}, "none": null});
        let message = |error: Malformed| error.to_string();
        assert_eq!(text(&object, &["name"]), Ok(Some("x")));
        assert_eq!(
            text(&object, &["labels"]).map_err(message),
            Err("labels is an object, not a string".to_owned())
        );
        assert_eq!(
            texts(&object, &["labels"]).map(|labels| labels.map(Map::len)),
            Ok(Some(1))
        );
        assert_eq!(
            texts(&object, &["odd"]).map_err(message),
            Err("odd.a is a number, not a string".to_owned())
        );
        assert_eq!(
            texts(&object, &["none"]).map_err(message),
            Err("none is null, not an object".to_owned())
        );
    }

    #[test]
    fn missing_parents_are_created_and_others_are_kept() {
        let mut object = json!({"spec": {"a": 1}, "none": null});
        assert_eq!(put(&mut object, &["spec", "b", "c"], json!(2)), Ok(()));
        assert_eq!(object, json!({"spec": {"a": 1, "b": {"c": 2}}, "none": null}));
        let message = put(&mut object, &["none", "a"], json!(2)).map_err(|error| error.to_string());
        assert_eq!(message, Err("none is null, not an object".to_owned()));
    }
}
