//! Identity of objects that interpreters return.

use serde_json::Value;

/// Checks that an interpreter returned the object that it was given. An interpreter changes fields. The object
/// that is written into a Work or a member cluster stays the same one, regardless of the answer.
///
/// # Errors
///
/// The field that differs, with both values.
pub fn same_identity(given: &Value, returned: &Value) -> Result<(), String> {
    for field in ["apiVersion", "kind", "metadata.namespace", "metadata.name"] {
        let (given, returned) = (text(given, field), text(returned, field));
        if given != returned {
            return Err(format!(
                "the interpreter returned another object: {field} is {returned:?}, not {given:?}"
            ));
        }
    }
    Ok(())
}

/// Returns the string at a path such as `metadata.name`; empty if absent.
fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    let found = path.split('.').try_fold(object, |value, name| value.get(name));
    found.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interpreter_that_returns_another_object_is_refused() {
        let given = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": "b"}});
        let check = |pointer: &str, value: Value, expected: Result<(), &str>| {
            let mut returned = given();
            *returned.pointer_mut(pointer).unwrap() = value;
            assert_eq!(
                same_identity(&given(), &returned),
                expected.map_err(str::to_owned),
                "{returned}"
            );
        };
        check(
            "/metadata",
            json!({"namespace": "a", "name": "b", "labels": {"c": "d"}}),
            Ok(()),
        );
        let other = |field: &str, value: &str, before: &str| {
            format!("the interpreter returned another object: {field} is {value:?}, not {before:?}")
        };
        check(
            "/kind",
            json!("ClusterRole"),
            Err(&other("kind", "ClusterRole", "ConfigMap")),
        );
        check(
            "/metadata/namespace",
            json!("kube-system"),
            Err(&other("metadata.namespace", "kube-system", "a")),
        );
        check(
            "/metadata",
            json!({"namespace": "a"}),
            Err(&other("metadata.name", "", "b")),
        );
        check("/apiVersion", Value::Null, Err(&other("apiVersion", "", "v1")));
    }
}
