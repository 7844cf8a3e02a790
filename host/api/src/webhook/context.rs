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
    let text = |name: &str| envelope.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    for (name, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        if let Some(found) = text(name).filter(|found| *found != expected) {
            return Err(BadAnswer::invalid(format!("its {name} is {found:?}, expected {expected:?}")));
        }
    }
    let response = envelope.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| BadAnswer::invalid("webhook response was absent"))?;
    check_types(response)?;
    let answered: String = optional(response, "uid")?.unwrap_or_default();
    if answered != uid {
        return Err(BadAnswer::invalid(format!("expected response.uid {uid:?}, got {answered:?}")));
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
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
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
    let Some(value) = response.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let wrong = |error: serde_json::Error| BadAnswer::invalid(format!("response.{name}: {error}"));
    serde_json::from_value(value.clone()).map(Some).map_err(wrong)
}

fn required<T: DeserializeOwned>(response: &Value, name: &str) -> Result<T, BadAnswer> {
    optional(response, name)?.ok_or_else(|| BadAnswer::invalid(format!("webhook returned nil response.{name}")))
}

fn health(response: &Value) -> Result<HealthVerdict, BadAnswer> {
    let healthy: bool = required(response, "healthy")?;
    let health = if healthy { Health::Healthy } else { Health::Unhealthy };
    Ok(HealthVerdict { health, reason: Reason::new(format!("Webhook{}", health.as_str()), "") })
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
                problem.map_or(Ok(()), |problem| Err(BadAnswer::invalid(format!("dependencies[{index}]{problem}"))))?;
            }
            Interpretation::Dependencies(found)
        }
    })
}

/// Decodes `replicaRequirements` of a response or of a component.
fn requirements(members: &Value) -> Result<Option<ReplicaRequirements>, BadAnswer> {
    let name = "replicaRequirements";
    let Some(needed) = optional::<Map<String, Value>>(members, name)? else { return Ok(None) };
    let decoded = ReplicaRequirements::from_json(&needed);
    decoded.map(Some).map_err(|error| BadAnswer::invalid(format!("response.{name}: {error}")))
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
            Value::Object(present.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
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
            return Err(BadAnswer::invalid(format!("webhook returned invalid response.patchType of {other:?}")));
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
mod tests {
    use std::sync::Arc;

    use bulkhead_core::call::{HealthCall, InterpretCall};
    use bulkhead_core::model::AggregatedStatusItem;
    use bulkhead_core::time::Time;

    use super::*;

    fn widget() -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "x", "namespace": "ns"},
            "spec": {"replicas": 3},
        }))
    }

    fn interpret(operation: Operation<'_>) -> Call<'_> {
        Call::Interpret(InterpretCall { operation, now: Time::from_millis(0) })
    }

    fn check(call: &Call<'_>, response: Value, expected: Result<Reply, &str>) {
        let mut response = response;
        if response.get("uid").is_none() {
            response["uid"] = json!("u");
        }
        let body = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
        let actual = reply(call, "u", body.to_string().as_bytes()).map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned), "{body}");
    }

    #[test]
    fn a_request_carries_what_the_operation_is_about() {
        let object = widget();
        let check = |call: &Call<'_>, expected: Value| {
            let mut sent = request(call, "u").unwrap()["request"].take();
            let kind = json!({"group": "example.io", "version": "v1", "kind": "Widget"});
            for (name, value) in [("uid", json!("u")), ("kind", kind), ("name", json!("x")), ("namespace", json!("ns"))]
            {
                assert_eq!(sent.as_object_mut().unwrap().remove(name), Some(value));
            }
            assert_eq!(sent, expected);
        };
        let health = Call::Health(HealthCall { object: &object, now: Time::from_millis(0) });
        check(&health, json!({"operation": "InterpretHealth", "object": *object, "replicas": 0}));
        let revise = interpret(Operation::Revise { object: &object, replicas: 5 });
        check(&revise, json!({"operation": "ReviseReplica", "object": *object, "replicas": 5}));
        let observed = Arc::new(json!({"spec": {}}));
        let retain = interpret(Operation::Retain { desired: &object, observed: &observed });
        let expected = json!({"operation": "Retain", "object": *object, "observedObject": *observed, "replicas": 0});
        check(&retain, expected);
        let items = [AggregatedStatusItem { cluster_name: "m1".to_owned(), ..Default::default() }];
        let aggregate = interpret(Operation::AggregateStatus { object: &object, items: &items });
        check(
            &aggregate,
            json!({
                "operation": "AggregateStatus", "object": *object, "replicas": 0, "aggregatedStatus": [{"clusterName": "m1"}],
            }),
        );
    }

    #[test]
    fn a_response_without_health_has_no_health() {
        let object = widget();
        let call = Call::Health(HealthCall { object: &object, now: Time::from_millis(0) });
        let verdict = |health: Health| {
            let reason = Reason::new(format!("Webhook{}", health.as_str()), "");
            Ok(Reply::Health(HealthVerdict { health, reason }))
        };
        check(&call, json!({"successful": true, "healthy": true, "extra": 1}), verdict(Health::Healthy));
        check(&call, json!({"successful": true, "healthy": false}), verdict(Health::Unhealthy));
        let invalid = "received invalid webhook response: ";
        let missing = format!("{invalid}webhook returned nil response.healthy");
        check(&call, json!({"successful": true}), Err(&missing));
        check(&call, json!({"successful": true, "healthy": null}), Err(&missing));
        let wrong = format!("{invalid}response.healthy: invalid type: string \"true\", expected a boolean");
        check(&call, json!({"successful": true, "healthy": "true"}), Err(&wrong));
        let refused = json!({"successful": false, "healthy": true, "status": {"code": 403, "message": "nope"}});
        check(&call, refused, Err("webhook call failed, get status code: 403, msg: nope"));
        let silent = format!("{invalid}webhook require response.status when response.successful is false");
        check(&call, json!({"healthy": true}), Err(&silent));
        let other = format!("{invalid}expected response.uid \"u\", got \"other\"");
        check(&call, json!({"uid": "other", "successful": true, "healthy": true}), Err(&other));
    }

    #[test]
    fn an_envelope_may_lack_its_type_but_not_have_another() {
        let object = widget();
        let call = Call::Health(HealthCall { object: &object, now: Time::from_millis(0) });
        let check = |body: &str, fine: bool| {
            assert_eq!(reply(&call, "u", body.as_bytes()).is_ok(), fine, "{body}");
        };
        check(r#"{"response": {"uid": "u", "successful": true, "healthy": true}}"#, true);
        check(r#"{"apiVersion": "v1", "response": {"uid": "u", "successful": true, "healthy": true}}"#, false);
        check(r#"{"kind": "Pod", "response": {"uid": "u", "successful": true, "healthy": true}}"#, false);
        check("", false);
        check("hello", false);
        check("\"hello\"", false);
        check("{}", false);
    }

    #[test]
    fn patches_change_the_object_or_are_errors() {
        let object = widget();
        let call = interpret(Operation::Revise { object: &object, replicas: 5 });
        let object_reply = |object: Value| Ok(Reply::Interpret(Some(Interpretation::Object(object))));
        let patch = |patch: &str| json!({"successful": true, "patchType": "JSONPatch", "patch": patch});
        check(&call, json!({"successful": true}), object_reply(Value::clone(&object)));
        check(&call, patch("W10="), object_reply(Value::clone(&object)));
        // [{"op":"replace","path":"/spec/replicas","value":5}]
        let mut revised = Value::clone(&object);
        revised["spec"]["replicas"] = json!(5);
        check(
            &call,
            patch("W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjV9XQ=="),
            object_reply(revised),
        );
        // [{"op":"remove","path":"/kind"}]
        let kindless = Err("applying the patch of the webhook: the object no longer has a kind");
        check(&call, patch("W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2tpbmQifV0="), kindless);
        let invalid = "received invalid webhook response: webhook returned ";
        let nil = format!("{invalid}nil response.patchType");
        check(&call, json!({"successful": true, "patch": "W10="}), Err(&nil));
        let empty = format!("{invalid}empty response.patch");
        check(&call, json!({"successful": true, "patchType": "JSONPatch"}), Err(&empty));
        let type_ = format!("{invalid}invalid response.patchType of \"MergePatch\"");
        check(&call, json!({"successful": true, "patchType": "MergePatch", "patch": "e30="}), Err(&type_));
        let bytes = reply(
            &call,
            "u",
            br#"{"response": {"uid": "u", "successful": true, "patchType": "JSONPatch", "patch": "***"}}"#,
        );
        assert!(matches!(bytes, Err(BadAnswer::Invalid(_))), "{bytes:?}");
    }

    #[test]
    fn dependencies_are_checked_and_a_status_has_to_be_there() {
        let object = widget();
        let depend = interpret(Operation::Dependencies { object: &object });
        let missing = "received invalid webhook response: dependencies[0].apiVersion: missing required apiVersion";
        check(
            &depend,
            json!({"successful": true, "dependencies": [{"kind": "Secret", "apiVersion": ""}]}),
            Err(missing),
        );
        let none = Ok(Reply::Interpret(Some(Interpretation::Dependencies(Vec::new()))));
        check(&depend, json!({"successful": true}), none);
        let reflect = interpret(Operation::ReflectStatus { object: &object });
        let status = Ok(Reply::Interpret(Some(Interpretation::Status(Some(json!(3))))));
        check(&reflect, json!({"successful": true, "rawStatus": 3}), status);
        let nil = "received invalid webhook response: webhook returned nil response.rawStatus";
        check(&reflect, json!({"successful": true}), Err(nil));
        let named =
            json!([{"apiVersion": "v1", "kind": "Secret", "namespace": null, "name": "s", "labelSelector": null}]);
        let reference = DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: "s".to_owned(),
            ..DependentObjectReference::default()
        };
        let found = Ok(Reply::Interpret(Some(Interpretation::Dependencies(vec![reference]))));
        check(&depend, json!({"successful": true, "dependencies": named}), found);
        let replicas = interpret(Operation::Replicas { object: &object });
        let nil = "received invalid webhook response: webhook returned nil response.replicas";
        check(&replicas, json!({"successful": true, "replicas": null}), Err(nil));
    }

    #[test]
    fn requirements_and_components_are_decoded_as_by_go() {
        let object = widget();
        let replicas = interpret(Operation::Replicas { object: &object });
        let needed = |cpu: Value| json!({"successful": true, "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": cpu}}});
        let half = ReplicaRequirements {
            resource_request: [("cpu".to_owned(), "500m".to_owned())].into(),
            ..ReplicaRequirements::default()
        };
        let interpreted = Interpretation::Replicas { replicas: 1, requirements: Some(half.clone()) };
        check(&replicas, needed(json!(0.5)), Ok(Reply::Interpret(Some(interpreted))));
        let body = json!({"response": {"uid": "u", "successful": true, "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}}});
        let wrong = reply(&replicas, "u", body.to_string().as_bytes()).unwrap_err().to_string();
        assert!(wrong.contains("response.replicaRequirements: cpu of \"much\": "), "{wrong}");
        let components = interpret(Operation::Components { object: &object });
        let listed = json!([{"replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "0.5"}}}, {"name": "b", "replicas": null}]);
        let expected = vec![
            Component { name: String::new(), replicas: 2, replica_requirements: Some(half) },
            Component { name: "b".to_owned(), replicas: 0, replica_requirements: None },
        ];
        let expected = Ok(Reply::Interpret(Some(Interpretation::Components(expected))));
        check(&components, json!({"successful": true, "components": listed}), expected);
        let message = "received invalid webhook response: response.components: a component is not an object";
        check(&components, json!({"successful": true, "components": [3]}), Err(message));
    }

    /// Karmada decodes the whole response before it looks at any field.
    #[test]
    fn a_field_of_another_operation_has_to_have_its_type_too() {
        let object = widget();
        let call = Call::Health(HealthCall { object: &object, now: Time::from_millis(0) });
        for (name, value) in [
            ("replicas", json!("3")),
            ("replicas", json!(1_i64 << 40)),
            ("patch", json!(3)),
            ("patchType", json!({})),
            ("components", json!({})),
            ("dependencies", json!("none")),
            ("dependencies", json!([{"name": 1}])),
            ("replicaRequirements", json!([])),
            ("status", json!("ok")),
            ("status", json!({"code": "200"})),
        ] {
            let mut response = json!({"uid": "u", "successful": true, "healthy": true});
            response[name] = value;
            let body = json!({"response": response}).to_string();
            let answer = reply(&call, "u", body.as_bytes());
            assert!(
                matches!(&answer, Err(BadAnswer::Invalid(message)) if message.contains(name) || name == "status"),
                "{answer:?}"
            );
        }
        let status = json!({"uid": "u", "successful": true, "healthy": true, "status": {"code": 200}, "rawStatus": 3});
        assert!(reply(&call, "u", json!({"response": status}).to_string().as_bytes()).is_ok());
    }
}
