//! Bindings, clusters, tasks and reports as written in case files.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Members of `metadata` that the model has at the top level.
const METADATA: [&str; 7] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
];

/// Parses a value of the model. An unknown member is an error that names it, because the plugin would never receive
/// it.
pub(crate) fn read<T: Serialize + DeserializeOwned>(written: &Value) -> Result<T, String> {
    let flat = flattened(written);
    let read: T = serde_json::from_value(flat.clone()).map_err(|error| error.to_string())?;
    let seen = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    match lost(&flat, &seen, "") {
        None => Ok(read),
        Some(path) => Err(format!("there is no field {path}")),
    }
}

/// Moves the members of `metadata` that the model knows to the top level, and drops `apiVersion` and `kind`.
fn flattened(written: &Value) -> Value {
    let Some(Value::Object(metadata)) = written.get("metadata") else {
        return written.clone();
    };
    let kept = metadata.iter().filter(|(name, _)| METADATA.contains(&name.as_str()));
    let mut flat: Map<_, _> = kept.map(|(name, member)| (name.clone(), member.clone())).collect();
    let others = written.as_object().into_iter().flatten();
    let others = others.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "apiVersion" | "kind"));
    flat.extend(others.map(|(name, member)| (name.clone(), member.clone())));
    Value::Object(flat)
}

/// Returns the path of the first written member that the parsed value lacks. Members with a zero value (null, false,
/// 0, empty) may be missing.
fn lost(written: &Value, seen: &Value, path: &str) -> Option<String> {
    match (written, seen) {
        (Value::Object(written), Value::Object(seen)) => written.iter().find_map(|(name, member)| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            match seen.get(name) {
                Some(seen) => lost(member, seen, &path),
                None => (!is_empty_claim(member)).then_some(path),
            }
        }),
        (Value::Array(written), Value::Array(seen)) => {
            let mut pairs = written.iter().zip(seen).enumerate();
            pairs.find_map(|(index, (written, seen))| lost(written, seen, &format!("{path}[{index}]")))
        }
        _ => None,
    }
}

fn is_empty_claim(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.iter().all(is_empty_claim),
        Value::Object(members) => members.values().all(is_empty_claim),
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Binding, Cluster};
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_as_the_model_and_as_kubernetes_writes_them() {
        let short = json!({"name": "member1", "labels": {"a": "b"}, "spec": {"syncMode": "Push", "region": "eu"}});
        let long = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "member1", "labels": {"a": "b"}, "uid": "1", "resourceVersion": "7"},
            "spec": {"syncMode": "Push", "region": "eu"},
        });
        let read = |value: &Value| read::<Cluster>(value).unwrap();
        assert_eq!(read(&short), read(&long));
        assert_eq!(read(&short).labels.get("a").map(String::as_str), Some("b"));
    }

    #[test]
    fn a_field_that_the_model_does_not_have_is_named() {
        let check = |written: Value, expected: &str| assert_eq!(read::<Binding>(&written).unwrap_err(), expected);
        let resource = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
        check(
            json!({"name": "b", "spec": {"resource": resource}, "stauts": {"x": 1}}),
            "there is no field stauts",
        );
        let targets = json!({"resource": resource, "clusters": [{"name": "m1"}, {"name": "m2", "replica": 2}]});
        check(
            json!({"name": "b", "spec": targets}),
            "there is no field spec.clusters[1].replica",
        );
        check(json!({"name": "b"}), "missing field `spec`");
    }
}
