//! The `scale` subresource of workloads, limited to their replicas.

use serde_json::{Value, json};

use crate::call::Call;
use crate::json::text;
use crate::kind::ResourceKind;
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
    let wanted = match call.resource.verb {
        Verb::Update => call.object()?,
        Verb::Patch => {
            let scale = ResourceKind::namespaced("autoscaling", "v1", "Scale", "scales");
            patch::apply(&scale, &view(&object), call.content_type(), &call.body)?
        }
        _ => return Ok(view(&object)),
    };
    let replicas = wanted["spec"]["replicas"].as_i64().filter(|replicas| (0..=i64::from(i32::MAX)).contains(replicas));
    let replicas = replicas.ok_or_else(|| {
        let given = &wanted["spec"]["replicas"];
        StatusError::bad_request(format!("spec.replicas: Invalid value: {given}: must be greater than or equal to 0"))
    })?;
    let mut changed = Value::clone(object.value());
    changed["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"].clone();
    changed["spec"]["replicas"] = json!(replicas);
    Ok(view(&*writer.update(key, Part::Main, changed)?))
}

fn view(object: &Object) -> Value {
    let value = object.value();
    let labels = value["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<_> = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": object.name(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": text(value, "/metadata/resourceVersion"),
            "creationTimestamp": text(value, "/metadata/creationTimestamp"),
        },
        "spec": {"replicas": value["spec"]["replicas"].as_i64().unwrap_or(1)},
        "status": {
            "replicas": value["status"]["replicas"].as_i64().unwrap_or(0),
            "selector": selector.join(","),
        },
    })
}
