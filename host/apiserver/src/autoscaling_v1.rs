//! Version `autoscaling/v1` of HorizontalPodAutoscalers, which `kubectl autoscale` writes: a view of the stored
//! `autoscaling/v2` (Kubernetes: `pkg/apis/autoscaling/v1/conversion.go`).
//!
//! The view has the target of CPU utilization only. Other metrics, the behaviour and the conditions of the stored
//! object are not in it, and an update through it removes them. It is neither listed by discovery nor watched.

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::json::array;
use crate::request::{ResourceRequest, Verb};
use crate::respond::{ApiBody, full};

const GROUP: &str = "autoscaling";
const VIEW: &str = "autoscaling/v1";
const STORED: &str = "autoscaling/v2";
const UTILIZATION: &str = "targetCPUUtilizationPercentage";

/// Returns true for a request for the view.
pub(crate) fn is_view(request: &ResourceRequest) -> bool {
    (request.group.as_str(), request.version.as_str()) == (GROUP, "v1")
        && request.plural == "horizontalpodautoscalers"
        && request.verb != Verb::Watch
}

/// Turns a request for the view into one for the stored version, with its body. A body that is no JSON object, such
/// as a list of patch operations, stays as it is.
pub(crate) fn to_stored(request: &mut ResourceRequest, body: Bytes) -> Bytes {
    "v2".clone_into(&mut request.version);
    match serde_json::from_slice::<Value>(&body) {
        Ok(mut object) if object.is_object() => {
            store(&mut object);
            Bytes::from(object.to_string())
        }
        _ => body,
    }
}

/// Turns the response of the stored version into one of the view.
pub(crate) async fn to_view(response: Response<ApiBody>) -> Response<ApiBody> {
    let (parts, body) = response.into_parts();
    // The body is complete, so that reading it does not fail.
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut answer) => {
            view(&mut answer);
            if let Some(items) = answer.get_mut("items").and_then(Value::as_array_mut) {
                items.iter_mut().for_each(view);
            }
            Bytes::from(answer.to_string())
        }
        Err(_) => bytes,
    };
    Response::from_parts(parts, full(body))
}

fn store(object: &mut Value) {
    if object["apiVersion"] == VIEW {
        object["apiVersion"] = json!(STORED);
    }
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(percent) = spec.and_then(|spec| spec.remove(UTILIZATION)) {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        object["spec"]["metrics"] = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    }
}

fn view(answer: &mut Value) {
    if answer["apiVersion"] != STORED {
        return;
    }
    answer["apiVersion"] = json!(VIEW);
    let cpu = |metrics: &str, value: &str| {
        let mut metrics = array(answer, metrics).iter();
        let cpu = metrics.find(|metric| metric["resource"]["name"] == "cpu")?;
        cpu["resource"].pointer(value).filter(|value| value.is_i64()).cloned()
    };
    let target = cpu("/spec/metrics", "/target/averageUtilization");
    let current = cpu("/status/currentMetrics", "/current/averageUtilization");
    let fields = [
        ("spec", UTILIZATION, target, &["metrics", "behavior"]),
        (
            "status",
            "currentCPUUtilizationPercentage",
            current,
            &["currentMetrics", "conditions"],
        ),
    ];
    for (part, field, value, absent) in fields {
        let Some(part) = answer.get_mut(part).and_then(Value::as_object_mut) else {
            continue;
        };
        part.retain(|name, _| !absent.contains(&name.as_str()));
        part.extend(value.map(|value| (field.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_cpu_utilization_is_the_same_in_both_versions() {
        let spec = json!({"maxReplicas": 3, UTILIZATION: 60});
        let mut object = json!({"apiVersion": VIEW, "kind": "HorizontalPodAutoscaler", "spec": spec});
        let before = object.clone();
        store(&mut object);
        let metric = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60},
        }});
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "metrics": [metric]}));
        view(&mut object);
        assert_eq!(object, before);
    }

    #[test]
    fn errors_and_parts_that_the_view_lacks_are_left_out_or_unchanged() {
        let mut stored = json!({"apiVersion": STORED, "spec": {"behavior": {}}, "status": {"conditions": []}});
        view(&mut stored);
        assert_eq!(stored, json!({"apiVersion": VIEW, "spec": {}, "status": {}}));
        let mut status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure"});
        let before = status.clone();
        view(&mut status);
        assert_eq!(status, before);
    }
}
