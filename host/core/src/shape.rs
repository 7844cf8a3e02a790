//! Typed field access for untyped objects, with the semantics of Kubernetes' typed structs. A missing or null field
//! is unset, and an integral float is an integer. Any other type mismatch is an error that names the field.

use serde_json::{Map, Value};

/// Field with the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl Malformed {
    /// Creates an error with a custom message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    fn field(path: &[&str], value: &Value, expected: &str) -> Self {
        Self(format!("{} is {}, not {expected}", path.join("."), type_name(value)))
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Returns the name of the JSON type, with an article.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the value at `path`; `None` if it or one of its parents is missing or null.
pub fn field<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>, Malformed> {
    let mut current = object;
    for (depth, name) in path.iter().enumerate() {
        current = match current {
            Value::Object(members) => match members.get(*name) {
                None | Some(Value::Null) => return Ok(None),
                Some(member) => member,
            },
            other => {
                return Err(Malformed::field(
                    path.get(..depth).unwrap_or_default(),
                    other,
                    "an object",
                ));
            }
        };
    }
    Ok(Some(current))
}

/// Returns the integer at `path`.
pub fn integer(object: &Value, path: &[&str]) -> Result<Option<i64>, Malformed> {
    let Some(value) = field(object, path)? else {
        return Ok(None);
    };
    as_integer(value)
        .map(Some)
        .ok_or_else(|| Malformed::field(path, value, "an integer"))
}

/// Returns the value as an integer; an integral float is one.
pub(crate) fn as_integer(value: &Value) -> Option<i64> {
    let integral = |float: &f64| float.fract() == 0.0 && float.abs() < 9e18;
    value
        .as_i64()
        .or_else(|| value.as_f64().filter(integral).map(|float| float as i64))
}

/// Returns the integer at `path`; 0 if unset.
pub fn count(object: &Value, path: &[&str]) -> Result<i64, Malformed> {
    Ok(integer(object, path)?.unwrap_or(0))
}

/// Returns the string at `path`; empty if unset.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Result<&'a str, Malformed> {
    let Some(value) = field(object, path)? else {
        return Ok("");
    };
    value.as_str().ok_or_else(|| Malformed::field(path, value, "a string"))
}

/// Returns the list at `path`; empty if unset.
pub fn list<'a>(object: &'a Value, path: &[&str]) -> Result<&'a [Value], Malformed> {
    let Some(value) = field(object, path)? else {
        return Ok(&[]);
    };
    value
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| Malformed::field(path, value, "a list"))
}

/// Returns the object at `path`.
pub fn members<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>, Malformed> {
    let Some(value) = field(object, path)? else {
        return Ok(None);
    };
    value
        .as_object()
        .map(Some)
        .ok_or_else(|| Malformed::field(path, value, "an object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_as_by_typed_structs() {
        let check = |object: Value, expected: Result<Option<i64>, &str>| {
            let read = integer(&object, &["spec", "replicas"]).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{object}");
        };
        check(json!({}), Ok(None));
        check(json!({"spec": null}), Ok(None));
        check(json!({"spec": {"replicas": null}}), Ok(None));
        check(json!({"spec": {"replicas": 3}}), Ok(Some(3)));
        check(json!({"spec": {"replicas": 3.0}}), Ok(Some(3)));
        check(
            json!({"spec": {"replicas": 3.5}}),
            Err("spec.replicas is a number, not an integer"),
        );
        check(
            json!({"spec": {"replicas": "3"}}),
            Err("spec.replicas is a string, not an integer"),
        );
        check(json!({"spec": []}), Err("spec is a list, not an object"));
    }
}
