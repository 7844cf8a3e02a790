//! Metadata of every kind: name, labels, annotations, owners, finalizers.

use serde_json::{Value, json};

use super::names;
use crate::cause::Cause;
use crate::json::{array, text};
use crate::kind::ResourceKind;

/// Maximum size of the keys and values of all annotations, in bytes.
const ANNOTATIONS_MAX: usize = 256 << 10;

/// Validates the metadata of an object.
pub(super) fn check(kind: &ResourceKind, name: &str, object: &Value, old: Option<&Value>, wrong: &mut Vec<Cause>) {
    if old.is_none() {
        let mistakes = name_rule(kind)(name);
        wrong.extend(
            mistakes
                .iter()
                .map(|mistake| Cause::invalid("metadata.name", &json!(name), mistake)),
        );
    }
    check_labels(&object["metadata"]["labels"], "metadata.labels", wrong);
    check_annotations(&object["metadata"]["annotations"], "metadata.annotations", wrong);
    for (index, owner) in array(object, "/metadata/ownerReferences").iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &format!("/{field}")).is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                wrong.push(Cause::invalid(path, &json!(""), "must not be empty"));
            }
        }
    }
    for finalizer in array(object, "/metadata/finalizers").iter().filter_map(Value::as_str) {
        let mistakes = names::qualified(finalizer);
        wrong.extend(
            mistakes
                .iter()
                .map(|mistake| Cause::invalid("metadata.finalizers", &json!(finalizer), mistake)),
        );
    }
}

/// Returns the format of the names of a kind.
fn name_rule(kind: &ResourceKind) -> fn(&str) -> Vec<String> {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace" | "Service") => names::label,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::subdomain,
    }
}

/// Validates the keys and values of labels.
pub(super) fn check_labels(labels: &Value, path: &str, wrong: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        let of_key = names::qualified(key);
        wrong.extend(of_key.iter().map(|mistake| Cause::invalid(path, &json!(key), mistake)));
        let of_value = names::label_value(value.as_str().unwrap_or_default());
        wrong.extend(of_value.iter().map(|mistake| Cause::invalid(path, value, mistake)));
    }
}

/// Validates the keys and the size of annotations.
pub(super) fn check_annotations(annotations: &Value, path: &str, wrong: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let mistakes = names::qualified(&key.to_lowercase());
        wrong.extend(
            mistakes
                .iter()
                .map(|mistake| Cause::invalid(path, &json!(key), mistake)),
        );
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        wrong.push(Cause::too_long(path, ANNOTATIONS_MAX));
    }
}
