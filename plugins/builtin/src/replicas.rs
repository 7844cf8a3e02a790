//! Reading and writing of an object's desired replicas.

use bulkhead_core::call::Interpretation;
use bulkhead_core::shape::{Malformed, count, field, integer};
use bulkhead_core::{pod, unstructured};
use serde_json::Value;

use crate::statuses;

/// Returns replicas and requirements; `None` for kinds without a rule. (Karmada:
/// `pkg/resourceinterpreter/default/native/replica.go`.)
pub(crate) fn interpret(
    kind: (&str, &str),
    object: &Value,
    detail: pod::Detail,
) -> Result<Option<Interpretation>, Malformed> {
    let replicas = match kind {
        ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => count(object, &["spec", "replicas"])?,
        ("batch/v1", "Job") => {
            let parallelism = count(object, &["spec", "parallelism"])?;
            parallelism.min(integer(object, &["spec", "completions"])?.unwrap_or(parallelism))
        }
        ("v1", "Pod") => 1,
        _ => return Ok(None),
    };
    statuses::check_object(kind, object)?;
    let replicas = i32::try_from(replicas).map_err(|_| Malformed::new(format!("{replicas} replicas are too many")))?;
    // A pod is its own template.
    let requirements = match (kind, field(object, &["spec", "template"])?) {
        (("v1", "Pod"), _) => pod::requirements(object, detail)?,
        (_, Some(template)) => pod::requirements(template, detail)?,
        (_, None) => None,
    };
    Ok(Some(Interpretation::Replicas { replicas, requirements }))
}

/// Returns the object with the given replicas; `None` for kinds without a rule. A missing field stays missing, so
/// that the member's own default applies. (Karmada: `pkg/resourceinterpreter/default/native/revisereplica.go`.)
pub(crate) fn revise(kind: (&str, &str), object: &Value, replicas: i64) -> Result<Option<Value>, Malformed> {
    let name = match kind {
        ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => "replicas",
        ("batch/v1", "Job") => "parallelism",
        _ => return Ok(None),
    };
    let mut revised = object.clone();
    if unstructured::integer(object, &["spec", name])?.is_some() {
        unstructured::put(&mut revised, &["spec", name], replicas.into())?;
    }
    Ok(Some(revised))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_follow_karmada() {
        let check = |kind: (&str, &str), spec: Value, expected: Result<Option<i32>, &str>| {
            let actual = interpret(kind, &json!({"spec": spec}), pod::Detail::Plain);
            let actual = actual.map(|interpretation| match interpretation {
                Some(Interpretation::Replicas { replicas, .. }) => Some(replicas),
                _ => None,
            });
            assert_eq!(
                actual.map_err(|error| error.to_string()),
                expected.map_err(str::to_owned),
                "{kind:?} {spec}"
            );
        };
        let deployment = ("apps/v1", "Deployment");
        check(deployment, json!({"replicas": 3}), Ok(Some(3)));
        check(deployment, json!({}), Ok(Some(0)));
        check(
            deployment,
            json!({"replicas": "3"}),
            Err("spec.replicas is a string, not an integer"),
        );
        check(
            deployment,
            json!({"replicas": 1_i64 << 40}),
            Err("1099511627776 replicas are too many"),
        );
        check(("apps/v1", "StatefulSet"), json!({"replicas": 2}), Ok(Some(2)));
        check(("apps/v1", "ReplicaSet"), json!({"replicas": 2}), Ok(Some(2)));
        let job = ("batch/v1", "Job");
        check(job, json!({}), Ok(Some(0)));
        check(job, json!({"parallelism": 3}), Ok(Some(3)));
        check(job, json!({"parallelism": 8, "completions": 5}), Ok(Some(5)));
        check(job, json!({"parallelism": 3, "completions": 5}), Ok(Some(3)));
        check(("v1", "Pod"), json!({}), Ok(Some(1)));
        check(("v1", "Pod"), json!("x"), Err("spec is a string, not an object"));
        check(("apps/v1", "DaemonSet"), json!({}), Ok(None));
        check(("apps/v1beta1", "Deployment"), json!({"replicas": 3}), Ok(None));
    }

    #[test]
    fn metadata_and_status_are_read_too() {
        let check = |object: Value, expected: &str| {
            let got = interpret(("apps/v1", "Deployment"), &object, pod::Detail::Plain);
            assert_eq!(
                got.map_err(|error| error.to_string()),
                Err(expected.to_owned()),
                "{object}"
            );
        };
        check(
            json!({"metadata": {"labels": {"a": 1}}}),
            "metadata.labels.a is a number, not a string",
        );
        check(
            json!({"status": {"replicas": "1"}}),
            "status.replicas is a string, not an integer",
        );
    }

    #[test]
    fn requirements_come_from_the_template_or_the_pod_itself() {
        let check = |kind: (&str, &str), spec: Value| {
            let actual = interpret(kind, &json!({"spec": spec}), pod::Detail::Plain);
            let Ok(Some(Interpretation::Replicas {
                requirements: Some(needed),
                ..
            })) = actual
            else {
                panic!("{actual:?}");
            };
            assert_eq!(needed.resource_request.get("cpu").map(String::as_str), Some("1"));
        };
        let pod = json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});
        check(("v1", "Pod"), pod.clone());
        check(("apps/v1", "Deployment"), json!({"template": {"spec": pod}}));
    }

    #[test]
    fn only_a_field_that_is_there_is_revised() {
        let check = |kind: (&str, &str), spec: Value, expected: Result<Option<Value>, &str>| {
            let actual = revise(kind, &json!({"spec": spec}), 5).map_err(|error| error.to_string());
            let expected = expected
                .map(|spec| spec.map(|spec| json!({"spec": spec})))
                .map_err(str::to_owned);
            assert_eq!(actual, expected, "{kind:?} {spec}");
        };
        let deployment = ("apps/v1", "Deployment");
        check(
            deployment,
            json!({"replicas": 3, "x": {}}),
            Ok(Some(json!({"replicas": 5, "x": {}}))),
        );
        check(deployment, json!({"paused": true}), Ok(Some(json!({"paused": true}))));
        check(
            deployment,
            json!({"replicas": "3"}),
            Err("spec.replicas is a string, not an integer"),
        );
        check(
            deployment,
            json!({"replicas": 3.5}),
            Err("spec.replicas is a number, not an integer"),
        );
        check(
            deployment,
            json!({"replicas": 3.0}),
            Err("spec.replicas is a number, not an integer"),
        );
        check(
            deployment,
            json!({"replicas": null}),
            Err("spec.replicas is null, not an integer"),
        );
        check(deployment, Value::Null, Ok(Some(Value::Null)));
        check(deployment, json!("x"), Err("spec is a string, not an object"));
        check(
            ("apps/v1", "StatefulSet"),
            json!({"replicas": 1}),
            Ok(Some(json!({"replicas": 5}))),
        );
        check(
            ("batch/v1", "Job"),
            json!({"parallelism": 1}),
            Ok(Some(json!({"parallelism": 5}))),
        );
        check(("v1", "Pod"), json!({}), Ok(None));
    }
}
