//! The `scale` subresource of workloads and of custom kinds that declare it.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::content::Content;
use crate::json::{follow, text};
use crate::kind::{ResourceKind, ScalePaths};
use crate::object::{Object, ObjectKey};
use crate::patch;
use crate::request::Verb;
use crate::shape::Part;
use crate::status_error::StatusError;
use crate::write::Writer;

/// Handles a request for the scale of an object.
///
/// # Errors
///
/// The errors of a request for the object itself, and 400 for an invalid number of replicas.
pub(crate) fn answer(writer: &mut Writer<'_>, call: &Call, key: &ObjectKey) -> Result<Value, StatusError> {
    let object = writer.existing(key)?;
    let kind = writer.state.kind(key.kind);
    let wanted = match call.resource.verb {
        Verb::Update => call.object()?,
        Verb::Patch => {
            let scale = ResourceKind::namespaced("autoscaling", "v1", "Scale", "scales");
            patch::apply(&scale, view(&kind, &object)?, call.content_type(), &call.body)?
        }
        _ => return view(&kind, &object),
    };
    let replicas = wanted["spec"]["replicas"]
        .as_i64()
        .filter(|replicas| (0..=i64::from(i32::MAX)).contains(replicas));
    let replicas = replicas.ok_or_else(|| {
        let given = &wanted["spec"]["replicas"];
        StatusError::bad_request(format!(
            "spec.replicas: Invalid value: {given}: must be greater than or equal to 0"
        ))
    })?;
    let mut changed = object.content().to_value();
    changed["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"].clone();
    match &kind.scale {
        Some(paths) => set(&mut changed, &paths.spec_replicas, json!(replicas)),
        None => changed["spec"]["replicas"] = json!(replicas),
    }
    view(&kind, &*writer.update(key, Part::Main, changed)?)
}

/// Returns the value at a path such as `.spec.replicas`.
fn at<'a>(object: &'a Content, path: &str) -> Option<&'a Value> {
    follow(object, path.split('.').filter(|name| !name.is_empty()))
}

/// Sets the value at a path; missing objects are created.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for field in path.split('.').filter(|field| !field.is_empty()) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[field];
    }
    *place = value;
}

/// Replicas of an object.
struct Scale {
    wanted: i64,
    actual: i64,
    /// Label selector as text.
    selector: String,
}

impl Scale {
    fn of_workload(value: &Content) -> Self {
        let labels = value["spec"]["selector"]["matchLabels"]
            .as_object()
            .into_iter()
            .flatten();
        let labels: Vec<_> = labels
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Self {
            wanted: value["spec"]["replicas"].as_i64().unwrap_or(1),
            actual: value["status"]["replicas"].as_i64().unwrap_or(0),
            selector: labels.join(","),
        }
    }

    fn of_custom(kind: &ResourceKind, paths: &ScalePaths, value: &Content) -> Result<Self, StatusError> {
        let wanted = at(value, &paths.spec_replicas).and_then(Value::as_i64).ok_or_else(|| {
            let why = format!("the spec replicas field \"{}\" does not exist", paths.spec_replicas);
            StatusError::internal(&format!(
                "{} \"{}\": {why}",
                kind.group_resource(),
                text(value, "/metadata/name")
            ))
        })?;
        let selector = paths
            .selector
            .as_deref()
            .and_then(|path| at(value, path))
            .and_then(Value::as_str);
        Ok(Self {
            wanted,
            actual: at(value, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0),
            selector: selector.unwrap_or_default().to_owned(),
        })
    }
}

fn view(kind: &ResourceKind, object: &Object) -> Result<Value, StatusError> {
    let value = object.content();
    let scale = match &kind.scale {
        Some(paths) => Scale::of_custom(kind, paths, value)?,
        None => Scale::of_workload(value),
    };
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object.name(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": object.resource_version().to_string(),
            "creationTimestamp": text(value, "/metadata/creationTimestamp"),
        },
        "spec": {"replicas": scale.wanted},
        "status": {"replicas": scale.actual, "selector": scale.selector},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ChangeType;

    fn stored(value: &Value) -> Object {
        Object::new(Content::from(value.clone()), 1, ChangeType::Added)
    }

    #[test]
    fn a_custom_kind_scales_the_fields_that_it_declares() {
        let mut kind = ResourceKind::namespaced("example.io", "v1", "Widget", "widgets");
        let paths = ScalePaths {
            spec_replicas: ".spec.size".to_owned(),
            status_replicas: ".status.size".to_owned(),
            selector: Some(".status.selector".to_owned()),
        };
        kind.scale = Some(paths.clone());
        let mut value = json!({"metadata": {"name": "w"}, "spec": {}, "status": {"size": 1, "selector": "app=w"}});
        assert_eq!(view(&kind, &stored(&value)).expect_err("no size").code, 500);
        set(&mut value, &paths.spec_replicas, json!(3));
        let scale = view(&kind, &stored(&value)).expect("a scale");
        assert_eq!(scale["spec"]["replicas"], 3);
        assert_eq!(scale["status"], json!({"replicas": 1, "selector": "app=w"}));
    }
}
