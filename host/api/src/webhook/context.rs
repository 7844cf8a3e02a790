//! Requests to interpreter hooks, and their responses (Karmada:
//! `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).
//!
//! Responses are untrusted: each field is validated, and an error names the field that does not fit.

use bulkhead_core::call::{Call, HealthVerdict, Interpretation, Operation, Reason, Reply};
use bulkhead_core::model::{Component, DependentObjectReference, Health, ReplicaRequirements};
use bulkhead_core::names::split_api_version;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Version of the protocol.
pub const VERSION: &str = "v1alpha1";
pub(super) const API_VERSION: &str = "config.karmada.io/v1alpha1";
pub(super) const KIND: &str = "ResourceInterpreterContext";

/// Answer that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// The hook reports a failure.
    #[error("webhook call failed, get status code: {code}, msg: {message}")]
    Refused {
        /// Status code in the response.
        code: i64,
        /// Message in the response.
        message: String,
    },
    /// The response is malformed.
    #[error("received invalid webhook response: {0}")]
    Invalid(String),
    /// The patch does not fit the object.
    #[error("applying the patch of the webhook: {0}")]
    Patch(String),
}

impl BadAnswer {
    fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}

/// Returns the body of a request; `None` for calls that are not sent to hooks. `uid` must be unique to the request.
pub fn request(call: &Call<'_>, uid: &str) -> Option<Value> {
    let operation = call.operation_name()?;
    let object = call.object()?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = split_api_version(text("/apiVersion"));
    let mut request = json!({
        "uid": uid,
        "kind": {"group": group, "version": version, "kind": text("/kind")},
        "name": text("/metadata/name"),
        "operation": operation,
        "object": **object,
        // Karmada sends it with every operation.
        "replicas": 0,
    });
    let namespace = text("/metadata/namespace");
    if !namespace.is_empty() {
        request["namespace"] = json!(namespace);
    }
    if let Call::Interpret(call) = call {
        match &call.operation {
            // The field has 32 bits; larger values wrap around, as in Karmada.
            Operation::Revise { replicas, .. } => request["replicas"] = json!(*replicas as i32),
            Operation::Retain { observed, .. } => request["observedObject"] = Value::clone(observed),
            Operation::AggregateStatus { items, .. } if !items.is_empty() => {
                request["aggregatedStatus"] = json!(items);
            }
            _ => {}
        }
    }
    Some(json!({"apiVersion": API_VERSION, "kind": KIND, "request": request}))
}

/// Decodes the reply in the body of a response.
pub fn reply(call: &Call<'_>, uid: &str, body: &[u8]) -> Result<Reply, BadAnswer> {
    let envelope: Value =
        serde_json::from_slice(body).map_err(|error| BadAnswer::invalid(format!("it is not JSON: {error}")))?;
    let text = |name: &str| {
        envelope
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    for (name, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        if let Some(found) = text(name).filter(|found| *found != expected) {
            return Err(BadAnswer::invalid(format!(
                "its {name} is {found:?}, expected {expected:?}"
            )));
        }
    }
    let response = envelope.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| BadAnswer::invalid("webhook response was absent"))?;
    check_types(response)?;
    let answered: String = optional(response, "uid")?.unwrap_or_default();
    if answered != uid {
        return Err(BadAnswer::invalid(format!(
            "expected response.uid {uid:?}, got {answered:?}"
        )));
    }
    if optional::<bool>(response, "successful")? != Some(true) {
        return Err(refused(response));
    }
    match call {
        Call::Health(_) => health(response).map(Reply::Health),
        Call::Interpret(call) => interpretation(&call.operation, response).map(|answer| Reply::Interpret(Some(answer))),
        Call::ClusterTaint(_) | Call::Filter(_) | Call::Score(_) | Call::EvictionCheck(_) => {
            Err(BadAnswer::invalid("webhooks do not support this call"))
        }
    }
}

fn refused(response: &Value) -> BadAnswer {
    let Some(status) = response.get("status").filter(|status| status.is_object()) else {
        return BadAnswer::invalid("webhook require response.status when response.successful is false");
    };
    let code = status.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = status
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    BadAnswer::Refused { code, message }
}

/// Checks the types of all fields, also of those that the operation does not use: Karmada decodes the whole response.
fn check_types(response: &Value) -> Result<(), BadAnswer> {
    for name in ["uid", "patch", "patchType"] {
        optional::<String>(response, name)?;
    }
    for name in ["successful", "healthy"] {
        optional::<bool>(response, name)?;
    }
    optional::<i32>(response, "replicas")?;
    if let Some(status) = optional::<Map<String, Value>>(response, "status")? {
        let status = Value::Object(status);
        optional::<i32>(&status, "code")?;
        optional::<String>(&status, "message")?;
    }
    requirements(response)?;
    components(response)?;
    dependencies(response).map(drop)
}

/// Reads a field; null counts as absent.
fn optional<T: DeserializeOwned>(response: &Value, name: &str) -> Result<Option<T>, BadAnswer> {
    let Some(value) = response.get(name).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let wrong = |error: serde_json::Error| BadAnswer::invalid(format!("response.{name}: {error}"));
    serde_json::from_value(value.clone()).map(Some).map_err(wrong)
}

fn required<T: DeserializeOwned>(response: &Value, name: &str) -> Result<T, BadAnswer> {
    optional(response, name)?.ok_or_else(|| BadAnswer::invalid(format!("webhook returned nil response.{name}")))
}

fn health(response: &Value) -> Result<HealthVerdict, BadAnswer> {
    let healthy: bool = required(response, "healthy")?;
    let health = if healthy { Health::Healthy } else { Health::Unhealthy };
    Ok(HealthVerdict {
        health,
        reason: Reason::new(format!("Webhook{}", health.as_str()), ""),
    })
}

fn interpretation(operation: &Operation<'_>, response: &Value) -> Result<Interpretation, BadAnswer> {
    Ok(match operation {
        Operation::Replicas { .. } => Interpretation::Replicas {
            replicas: required(response, "replicas")?,
            requirements: requirements(response)?,
        },
        Operation::Components { .. } => Interpretation::Components(components(response)?),
        Operation::Revise { object, .. } | Operation::AggregateStatus { object, .. } => patched(object, response)?,
        Operation::Retain { desired, .. } => patched(desired, response)?,
        Operation::ReflectStatus { .. } => Interpretation::Status(Some(required(response, "rawStatus")?)),
        Operation::Dependencies { .. } => {
            let found = dependencies(response)?;
            for (index, reference) in found.iter().enumerate() {
                let problem = reference.problem();
                problem.map_or(Ok(()), |problem| {
                    Err(BadAnswer::invalid(format!("dependencies[{index}]{problem}")))
                })?;
            }
            Interpretation::Dependencies(found)
        }
    })
}

/// Decodes `replicaRequirements` of a response or of a component.
fn requirements(members: &Value) -> Result<Option<ReplicaRequirements>, BadAnswer> {
    let name = "replicaRequirements";
    let Some(needed) = optional::<Map<String, Value>>(members, name)? else {
        return Ok(None);
    };
    let decoded = ReplicaRequirements::from_json(&needed);
    decoded
        .map(Some)
        .map_err(|error| BadAnswer::invalid(format!("response.{name}: {error}")))
}

/// Decodes the components. As in Go, a missing name is empty and missing replicas are 0.
fn components(response: &Value) -> Result<Vec<Component>, BadAnswer> {
    let found: Vec<Value> = optional(response, "components")?.unwrap_or_default();
    let component = |component: &Value| -> Result<Component, BadAnswer> {
        if !component.is_object() && !component.is_null() {
            return Err(BadAnswer::invalid("response.components: a component is not an object"));
        }
        Ok(Component {
            name: optional(component, "name")?.unwrap_or_default(),
            replicas: optional(component, "replicas")?.unwrap_or_default(),
            replica_requirements: requirements(component)?,
        })
    };
    found.iter().map(component).collect()
}

/// Decodes the dependencies. As in Go, null is the zero value of a field.
fn dependencies(response: &Value) -> Result<Vec<DependentObjectReference>, BadAnswer> {
    let found = without_nulls(response.get("dependencies").unwrap_or(&Value::Null));
    let wrong = |error: serde_json::Error| BadAnswer::invalid(format!("response.dependencies: {error}"));
    let found: Option<Vec<DependentObjectReference>> = serde_json::from_value(found).map_err(wrong)?;
    Ok(found.unwrap_or_default())
}

/// Returns a value without the members of objects that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(
                present
                    .map(|(name, member)| (name.clone(), without_nulls(member)))
                    .collect(),
            )
        }
        Value::Array(elements) => elements.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Returns the object with the patch applied; without a patch it is unchanged.
fn patched(object: &Value, response: &Value) -> Result<Interpretation, BadAnswer> {
    let patch: Option<String> = optional(response, "patch")?;
    let type_: Option<String> = optional(response, "patchType")?;
    let patch = match (patch.filter(|patch| !patch.is_empty()), type_.as_deref()) {
        (None, None) => return Ok(Interpretation::Object(object.clone())),
        (Some(patch), Some("JSONPatch")) => patch,
        (None, Some("JSONPatch")) => return Err(BadAnswer::invalid("webhook returned empty response.patch")),
        (Some(_), None) => return Err(BadAnswer::invalid("webhook returned nil response.patchType")),
        (_, Some(other)) => {
            return Err(BadAnswer::invalid(format!(
                "webhook returned invalid response.patchType of {other:?}"
            )));
        }
    };
    let bytes: k8s_openapi::ByteString = serde_json::from_value(patch.into())
        .map_err(|error| BadAnswer::invalid(format!("response.patch is not base64: {error}")))?;
    let patch: json_patch::Patch = serde_json::from_slice(&bytes.0)
        .map_err(|error| BadAnswer::Patch(format!("it is not a JSON patch: {error}")))?;
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch).map_err(|error| BadAnswer::Patch(error.to_string()))?;
    match patched.get("kind").and_then(Value::as_str) {
        None | Some("") => Err(BadAnswer::Patch("the object no longer has a kind".to_owned())),
        Some(_) => Ok(Interpretation::Object(patched)),
    }
}

#[cfg(test)]
mod tests;
