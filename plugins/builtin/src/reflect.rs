//! Part of an object's status that is collected from a member cluster. (Karmada:
//! `pkg/resourceinterpreter/default/native/reflectstatus.go`.)

use bulkhead_core::names::keys::TEMPLATE_GENERATION;
use bulkhead_core::shape::{Malformed, type_name};
use bulkhead_core::typed::Shape;
use bulkhead_core::unstructured;
use serde_json::{Map, Value};

use crate::statuses;

const DEPLOYMENT: &[&str] = &[
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
];
const REPLICA_SET: &[&str] = &["replicas", "readyReplicas", "availableReplicas"];
const STATEFUL_SET: &[&str] = &[
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
];
const DAEMON_SET: &[&str] = &[
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
];
const JOB: &[&str] = &[
    "active",
    "succeeded",
    "failed",
    "conditions",
    "startTime",
    "completionTime",
];
const DISRUPTION_BUDGET: &[&str] = &[
    "disruptionsAllowed",
    "expectedPods",
    "desiredHealthy",
    "currentHealthy",
    "disruptedPods",
];
const AUTOSCALER: &[&str] = &["currentReplicas", "desiredReplicas"];

/// Returns the counters of a workload's status; `None` for kinds other than workloads of `apps/v1`.
pub(crate) fn counters(kind: (&str, &str)) -> Option<&'static [&'static str]> {
    match kind {
        ("apps/v1", "Deployment") => Some(DEPLOYMENT),
        ("apps/v1", "ReplicaSet") => Some(REPLICA_SET),
        ("apps/v1", "StatefulSet") => Some(STATEFUL_SET),
        ("apps/v1", "DaemonSet") => Some(DAEMON_SET),
        _ => None,
    }
}

/// Returns the fields of the status that are collected; `None` for kinds of which the whole status is.
fn collected(kind: (&str, &str)) -> Option<&'static [&'static str]> {
    match kind {
        ("batch/v1", "Job") => Some(JOB),
        ("v1", "Service") => Some(&["loadBalancer"]),
        ("policy/v1", "PodDisruptionBudget") => Some(DISRUPTION_BUDGET),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => Some(AUTOSCALER),
        _ => counters(kind),
    }
}

/// Returns the fragment to collect, or `None` if there is nothing to collect.
///
/// A status that is null or not an object is an error, as is a field of the wrong type where only a part is
/// collected. So is a workload without Karmada's annotation: nothing is reported for an object that was adopted
/// manually.
pub(crate) fn status(kind: (&str, &str), object: &Value) -> Result<Option<Value>, Malformed> {
    // Karmada reads the type first, and takes one of the wrong type for a missing one.
    let service_type = object["spec"]["type"].as_str();
    if kind == ("v1", "Service") && service_type != Some("LoadBalancer") {
        return Ok(None);
    }
    let status = match object.get("status") {
        None => return Ok(None),
        Some(status @ Value::Object(_)) => status,
        Some(other) => return Err(Malformed::new(format!("status is {}, not an object", type_name(other)))),
    };
    let (Some(names), Some(shape)) = (collected(kind), statuses::of(kind)) else {
        return Ok(Some(status.clone()));
    };
    shape.check(status, "status")?;
    if counters(kind).is_some() {
        return workload(kind.1, shape, object, names);
    }
    Ok(Some(shape.printed(&picked(status, names))))
}

fn workload(kind: &str, shape: Shape, object: &Value, names: &[&str]) -> Result<Option<Value>, Malformed> {
    // Annotations of which one is not a string count as none, as in Karmada.
    let annotations = unstructured::texts(object, &["metadata", "annotations"]).unwrap_or_default();
    let annotation = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION));
    let annotation = annotation.and_then(Value::as_str).unwrap_or_default();
    let template_generation: i64 = annotation.parse().map_err(|_| {
        Malformed::new(format!(
            "annotation {TEMPLATE_GENERATION} is {annotation:?}, not an integer"
        ))
    })?;
    // Karmada omits the observed generation for StatefulSet.
    let observed = (kind != "StatefulSet").then_some("observedGeneration");
    let names: Vec<_> = names.iter().copied().chain(observed).collect();
    let mut fragment = shape.printed(&picked(statuses::status(object), &names));
    // A generation of the wrong type counts as none.
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    for (name, value) in [
        ("generation", generation),
        ("resourceTemplateGeneration", template_generation),
    ] {
        if value != 0 {
            fragment[name] = value.into();
        }
    }
    // An empty status of a Deployment has not been collected yet. The other workloads always have counters.
    Ok(Some(fragment).filter(|fragment| fragment.as_object().is_some_and(|members| !members.is_empty())))
}

fn picked(status: &Value, names: &[&str]) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), status.get(*name)?.clone()));
    Value::Object(names.iter().filter_map(member).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: (&str, &str), object: Value, expected: Result<Value, &str>) {
        let actual = status(kind, &object)
            .map(Option::unwrap_or_default)
            .map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned), "{kind:?} {object}");
    }

    #[test]
    fn workloads_report_counters_and_generations() {
        let check = |kind: &str, status: Value, expected: Value| {
            let metadata = json!({"generation": 3, "annotations": {TEMPLATE_GENERATION: "2"}});
            check(
                ("apps/v1", kind),
                json!({"metadata": metadata, "status": status}),
                Ok(expected),
            );
        };
        let full = json!({
            "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "unavailableReplicas": 1,
            "observedGeneration": 3, "conditions": [], "collisionCount": 1,
        });
        let reported = json!({
            "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "unavailableReplicas": 1,
            "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 2,
        });
        check("Deployment", full, reported);
        check(
            "Deployment",
            json!({}),
            json!({"generation": 3, "resourceTemplateGeneration": 2}),
        );
        let replicas = json!({"replicas": 1, "observedGeneration": 3});
        let reported = json!({"replicas": 1, "availableReplicas": 0, "generation": 3, "resourceTemplateGeneration": 2});
        check("StatefulSet", replicas, reported);
        let zeros = json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            "generation": 3, "resourceTemplateGeneration": 2,
        });
        check("DaemonSet", json!({}), zeros);
    }

    #[test]
    fn an_empty_deployment_without_generations_is_not_reported() {
        let object = |status: Value| json!({"metadata": {"annotations": {TEMPLATE_GENERATION: "0"}}, "status": status});
        check(
            ("apps/v1", "Deployment"),
            object(json!({"replicas": 0, "conditions": []})),
            Ok(Value::Null),
        );
        check(("apps/v1", "ReplicaSet"), object(json!({})), Ok(json!({"replicas": 0})));
        let odd = json!({"metadata": {"generation": "3", "annotations": {TEMPLATE_GENERATION: "2"}}, "status": {}});
        check(
            ("apps/v1", "Deployment"),
            odd,
            Ok(json!({"resourceTemplateGeneration": 2})),
        );
    }

    #[test]
    fn a_status_with_a_field_of_the_wrong_type_is_an_error() {
        let check = |kind: (&str, &str), status: Value, expected: &str| {
            let metadata = json!({"annotations": {TEMPLATE_GENERATION: "2"}});
            check(
                kind,
                json!({"metadata": metadata, "spec": {"type": "LoadBalancer"}, "status": status}),
                Err(expected),
            );
        };
        let strings = json!({"replicas": "x", "currentNumberScheduled": "x"});
        for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
            check(
                ("apps/v1", kind),
                strings.clone(),
                "status.replicas is a string, not an integer",
            );
        }
        check(
            ("apps/v1", "DaemonSet"),
            strings,
            "status.currentNumberScheduled is a string, not an integer",
        );
        let deployment = ("apps/v1", "Deployment");
        check(
            deployment,
            json!({"conditions": {}}),
            "status.conditions is an object, not a list",
        );
        check(
            deployment,
            json!({"collisionCount": true}),
            "status.collisionCount is a boolean, not an integer",
        );
        check(
            ("batch/v1", "Job"),
            json!({"ready": "1"}),
            "status.ready is a string, not an integer",
        );
        check(
            ("batch/v1", "Job"),
            json!({"startTime": "now"}),
            "status.startTime is a string, not a time",
        );
        let entries = json!({"loadBalancer": {"ingress": {}}});
        check(
            ("v1", "Service"),
            entries,
            "status.loadBalancer.ingress is an object, not a list",
        );
        let budget = ("policy/v1", "PodDisruptionBudget");
        check(
            budget,
            json!({"disruptedPods": {"p": "t"}}),
            "status.disruptedPods.p is a string, not a time",
        );
        let autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler");
        check(
            autoscaler,
            json!({"currentMetrics": 1}),
            "status.currentMetrics is a number, not a list",
        );
    }

    #[test]
    fn a_service_without_a_load_balancer_is_not_reported() {
        for spec in [
            json!({"type": "ClusterIP"}),
            json!({"type": 3}),
            json!({}),
            json!("x"),
            Value::Null,
        ] {
            check(("v1", "Service"), json!({"spec": spec, "status": 3}), Ok(Value::Null));
        }
        let balanced = json!({"spec": {"type": "LoadBalancer"}, "status": 3});
        check(("v1", "Service"), balanced, Err("status is a number, not an object"));
    }

    #[test]
    fn workloads_without_annotation_are_not_reported() {
        let text = format!("annotation {TEMPLATE_GENERATION} is \"\", not an integer");
        check(("apps/v1", "Deployment"), json!({"status": {}}), Err(&text));
        let odd = json!({"metadata": {"annotations": {TEMPLATE_GENERATION: "2", "other": 1}}, "status": {}});
        check(("apps/v1", "Deployment"), odd, Err(&text));
        check(
            ("apps/v1", "Deployment"),
            json!({"metadata": {"annotations": "x"}, "status": {}}),
            Err(&text),
        );
        check(("apps/v1", "Deployment"), json!({}), Ok(Value::Null));
        check(
            ("apps/v1", "Deployment"),
            json!({"status": null}),
            Err("status is null, not an object"),
        );
    }

    #[test]
    fn other_kinds_report_what_karmada_collects() {
        let start = "2024-01-01T00:00:00Z";
        let condition = json!({"type": "Complete", "extra": 1});
        let status = json!({"active": 1, "ready": 1, "startTime": start, "failed": 0, "conditions": [condition]});
        let condition = json!({"type": "Complete", "status": "", "lastProbeTime": null, "lastTransitionTime": null});
        let kept = json!({"active": 1, "startTime": start, "conditions": [condition]});
        check(("batch/v1", "Job"), json!({"status": status}), Ok(kept));
        let entries = json!([{"ip": "1.1.1.1", "hostname": "", "zone": "a"}]);
        let status = json!({"conditions": [], "loadBalancer": {"ingress": entries}});
        let service = |type_: &str| json!({"spec": {"type": type_}, "status": status});
        let kept = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}});
        check(("v1", "Service"), service("LoadBalancer"), Ok(kept));
        check(("v1", "Service"), service("ClusterIP"), Ok(Value::Null));
        let status = json!({"currentHealthy": 1, "disruptedPods": {"p": start}, "observedGeneration": 4});
        let kept = json!({
            "currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            "disruptedPods": {"p": start},
        });
        check(
            ("policy/v1", "PodDisruptionBudget"),
            json!({"status": status}),
            Ok(kept),
        );
        let kept = json!({"currentMetrics": null, "desiredReplicas": 0});
        check(
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            json!({"status": {"currentReplicas": 0}}),
            Ok(kept),
        );
    }

    #[test]
    fn unknown_kinds_report_everything() {
        check(
            ("v1", "Pod"),
            json!({"status": {"phase": "X", "l": []}}),
            Ok(json!({"phase": "X", "l": []})),
        );
        check(("example.io/v1", "Widget"), json!({}), Ok(Value::Null));
        check(
            ("example.io/v1", "Widget"),
            json!({"status": 3}),
            Err("status is a number, not an object"),
        );
    }
}
