//! Fields that a type does not have: those that are missing after a value is decoded and serialized again.

use serde_json::Value;

/// Returns the paths of fields of `given` that `written` does not have, in the order of `given`.
///
/// Fields with a zero value (null, false, 0 or empty) are left out, because Go does not distinguish them from absent
/// ones.
pub fn paths(given: &Value, written: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    collect(given, written, String::new(), &mut unknown);
    unknown
}

fn collect(given: &Value, written: &Value, path: String, unknown: &mut Vec<String>) {
    match (given, written) {
        (Value::Object(given), Value::Object(written)) => {
            for (key, value) in given {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match written.get(key) {
                    Some(written) => collect(value, written, path, unknown),
                    None if is_zero(value) => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(written)) => {
            for (index, (given, written)) in given.iter().zip(written).enumerate() {
                collect(given, written, format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}
