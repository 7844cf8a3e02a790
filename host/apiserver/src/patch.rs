//! Patch types: JSON patch, merge patch, and strategic merge patch for built-in kinds.
//!
//! Server-side apply is in [`crate::kubectl::apply`].

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::json::text;
use crate::kind::ResourceKind;
use crate::kubectl::topology;
use crate::status_error::StatusError;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// Maximum number of operations of a JSON patch.
const OPERATIONS_MAX: usize = 10_000;
/// Maximum number of bytes that the operations of a JSON patch copy.
const COPIED_BYTES_MAX: usize = 3 << 20;

/// Returns true if a patch is a server-side apply.
pub(crate) fn is_apply(content_type: &str) -> bool {
    media_type(content_type) == APPLY_PATCH
}

/// Returns true if a patch has the shape of an object, so that a field of it changes the same field and reads no other.
pub(crate) fn is_merge(content_type: &str) -> bool {
    matches!(media_type(content_type), MERGE_PATCH | STRATEGIC_MERGE_PATCH)
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Applies a patch of type `content_type` to an object and returns the result.
///
/// # Errors
///
/// 400 for an invalid body, 415 for a patch type not supported for the kind, 422 for a JSON patch that does not
/// apply.
pub(crate) fn apply(
    kind: &ResourceKind,
    mut object: Value,
    content_type: &str,
    body: &[u8],
) -> Result<Value, StatusError> {
    let media_type = media_type(content_type);
    match media_type {
        JSON_PATCH => {
            let patch: json_patch::Patch = parse(body)?;
            let name = text(&object, "/metadata/name").to_owned();
            apply_operations(&mut object, &patch)
                .map_err(|problem| StatusError::invalid(kind, &name, "patch", &problem))?;
        }
        MERGE_PATCH => json_patch::merge(&mut object, &parse_object(body)?),
        STRATEGIC_MERGE_PATCH if kind.is_builtin() => strategic_merge(&mut object, parse_object(body)?),
        _ => {
            let supported: &[&str] = if kind.is_builtin() {
                &[JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH]
            } else {
                &[JSON_PATCH, MERGE_PATCH]
            };
            return Err(StatusError::unsupported_media_type(media_type, supported));
        }
    }
    Ok(object)
}

/// Applies the operations of a JSON patch, whose number and copies are bounded as by Kubernetes
/// (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).
fn apply_operations(target: &mut Value, patch: &json_patch::Patch) -> Result<(), String> {
    let count = patch.0.len();
    if count > OPERATIONS_MAX {
        return Err(format!("it has {count} operations; the limit is {OPERATIONS_MAX}"));
    }
    let mut copied = 0;
    for (index, operation) in patch.0.iter().enumerate() {
        if let PatchOperation::Copy(copy) = operation {
            let source = target.pointer(copy.from.as_str());
            copied += source.map_or(0, |source| source.to_string().len());
            if copied > COPIED_BYTES_MAX {
                return Err(format!("its copies have more than {COPIED_BYTES_MAX} bytes"));
            }
        }
        json_patch::patch_unsafe(target, std::slice::from_ref(operation))
            .map_err(|error| format!("operation '/{index}' failed at path '{}': {}", error.path, error.kind))?;
    }
    Ok(())
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, StatusError> {
    serde_json::from_slice(body).map_err(|error| StatusError::bad_request(format!("cannot parse the patch: {error}")))
}

fn parse_object(body: &[u8]) -> Result<Value, StatusError> {
    let patch: Value = parse(body)?;
    if patch.is_object() {
        Ok(patch)
    } else {
        Err(StatusError::bad_request("the patch is not a JSON object"))
    }
}

fn strategic_merge(target: &mut Value, patch: Value) {
    let Value::Object(mut patch) = patch else {
        *target = patch;
        return;
    };
    let directive = patch.remove("$patch");
    if directive.as_ref().is_some_and(|directive| directive == "replace") || !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else {
        return;
    };
    if directive.is_some_and(|directive| directive == "delete") {
        fields.clear();
        return;
    }
    for (field, change) in patch {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            delete_from_list(fields.get_mut(list), &change);
        } else if field.starts_with('$') {
            // `$setElementOrder` and `$retainKeys` only refine the order and the pruning of the merged result.
        } else if change.is_null() {
            fields.remove(&field);
        } else if let Value::Array(elements) = change {
            merge_list(&field, fields.entry(field.clone()).or_insert(Value::Null), elements);
        } else {
            strategic_merge(fields.entry(field).or_insert(Value::Null), change);
        }
    }
}

fn delete_from_list(list: Option<&mut Value>, removed: &Value) {
    if let Some(list) = list.and_then(Value::as_array_mut) {
        list.retain(|element| !removed.as_array().is_some_and(|removed| removed.contains(element)));
    }
}

fn merge_list(field: &str, target: &mut Value, elements: Vec<Value>) {
    let is_set = field == "finalizers";
    let (Some(list), false) = (target.as_array_mut(), elements.is_empty()) else {
        *target = Value::Array(elements);
        return;
    };
    if is_set {
        for element in elements {
            if !list.contains(&element) {
                list.push(element);
            }
        }
        return;
    }
    let keys = topology::builtin_keys(field, &elements).unwrap_or_default();
    let Some(key) = keys.first() else {
        *list = elements;
        return;
    };
    let named = |element: &Value| element.get(key).cloned().unwrap_or_default();
    let before: Vec<Value> = list.iter().map(named).collect();
    let mut changed = Vec::new();
    for element in elements {
        let directive = element["$patch"].as_str().map(str::to_owned);
        let position = list.iter().position(|known| known.get(key) == element.get(key));
        match (directive.as_deref(), position) {
            (Some("replace"), _) => list.clear(),
            (Some("delete"), Some(position)) => {
                list.remove(position);
            }
            (Some("delete"), None) => {}
            (_, Some(position)) => {
                let mut merged = list.remove(position);
                strategic_merge(&mut merged, element);
                changed.push(merged);
            }
            (_, None) => changed.push(element),
        }
    }
    *list = in_order(std::mem::take(list), changed, |element| {
        before.iter().position(|name| *name == named(element))
    });
}

/// Merges two lists. An unchanged element comes first only if both elements existed before and it preceded the other
/// one (Kubernetes: `strategicpatch.mergeSortedSlice`).
fn in_order(kept: Vec<Value>, changed: Vec<Value>, place: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let (mut kept, mut changed) = (kept.into_iter().peekable(), changed.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let is_kept = match (kept.peek(), changed.peek()) {
            (None, None) => return all,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(kept), Some(changed)) => place(kept)
                .zip(place(changed))
                .is_some_and(|(kept, changed)| kept < changed),
        };
        all.extend(if is_kept { kept.next() } else { changed.next() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_strategic_merge_merges_known_lists_by_key_and_replaces_others() {
        let cases = [
            (
                json!({"containers": [{"name": "a", "image": "a:1"}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "image": "a:2"}, {"name": "c"}]}),
                json!({"containers": [{"name": "a", "image": "a:2"}, {"name": "c"}, {"name": "b"}]}),
            ),
            (
                json!({"containers": [{"name": "a"}, {"name": "b"}]}),
                json!({"containers": [{"name": "b", "image": "b:2"}]}),
                json!({"containers": [{"name": "a"}, {"name": "b", "image": "b:2"}]}),
            ),
            (
                json!({"containers": [{"name": "a"}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                json!({"containers": [{"name": "b"}]}),
            ),
            (
                json!({"args": ["x", "y"], "old": 1}),
                json!({"args": ["z"], "old": null}),
                json!({"args": ["z"]}),
            ),
            (
                json!({"finalizers": ["a"]}),
                json!({"finalizers": ["b", "a"]}),
                json!({"finalizers": ["a", "b"]}),
            ),
            (
                json!({"labels": {"a": "1"}}),
                json!({"labels": {"$patch": "replace", "b": "2"}}),
                json!({"labels": {"b": "2"}}),
            ),
            (
                json!({"finalizers": ["a", "b"]}),
                json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
                json!({"finalizers": ["b"]}),
            ),
        ];
        for (mut target, patch, expected) in cases {
            let shown = patch.to_string();
            strategic_merge(&mut target, patch);
            assert_eq!(target, expected, "{shown}");
        }
    }

    #[test]
    fn the_operations_and_the_copies_of_a_json_patch_are_bounded() {
        let kind = ResourceKind::namespaced("", "v1", "ConfigMap", "configmaps");
        let apply = |patch: Value| {
            apply(
                &kind,
                json!({"data": {"a": "b"}}),
                JSON_PATCH,
                patch.to_string().as_bytes(),
            )
        };
        let add = json!({"op": "add", "path": "/data/a", "value": "c"});
        assert_eq!(apply(json!([add])).ok(), Some(json!({"data": {"a": "c"}})));
        let error = apply(vec![add.clone(); OPERATIONS_MAX + 1].into()).expect_err("too many operations");
        assert!(
            error.message.contains("10001 operations; the limit is 10000"),
            "{}",
            error.message
        );
        // Each operation doubles the document.
        let copy = |index| json!({"op": "copy", "from": "/data", "path": format!("/data/{index}")});
        let error = apply((0..40).map(copy).collect()).expect_err("too many copies");
        assert!(error.message.contains("more than 3145728 bytes"), "{}", error.message);
        let error = apply(json!([add, {"op": "remove", "path": "/data/z"}])).expect_err("no such field");
        assert!(
            error.message.contains("operation '/1' failed at path '/data/z'"),
            "{}",
            error.message
        );
    }

    #[test]
    fn an_unsupported_patch_type_names_the_supported_ones() {
        let custom = ResourceKind::namespaced("example.io", "v1", "Widget", "widgets");
        for content_type in [APPLY_PATCH, STRATEGIC_MERGE_PATCH] {
            let error = apply(&custom, json!({}), content_type, b"{}").expect_err(content_type);
            assert_eq!(error.code, 415);
            assert!(error.message.contains(MERGE_PATCH), "{}", error.message);
        }
    }
}
