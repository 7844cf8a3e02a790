//! Part of an object's status that is collected from a member cluster.

use bulkhead_core::names::keys::TEMPLATE_GENERATION;
use serde_json::{Map, Value, json};

use bulkhead_core::shape::{Malformed, count, field, integer, members, text, type_name};

/// Counter of a status.
pub(crate) struct Counter {
    /// Name of the counter.
    pub(crate) name: &'static str,
    /// True if the API omits the counter when it is zero.
    pub(crate) omitted_when_zero: bool,
}

const fn counter(name: &'static str) -> Counter {
    Counter { name, omitted_when_zero: true }
}

const fn always(name: &'static str) -> Counter {
    Counter { name, omitted_when_zero: false }
}

const DEPLOYMENT: [Counter; 5] = [
    counter("replicas"),
    counter("updatedReplicas"),
    counter("readyReplicas"),
    counter("availableReplicas"),
    counter("unavailableReplicas"),
];
const REPLICA_SET: [Counter; 3] = [always("replicas"), counter("readyReplicas"), counter("availableReplicas")];
const STATEFUL_SET: [Counter; 5] = [
    always("replicas"),
    counter("readyReplicas"),
    counter("currentReplicas"),
    counter("updatedReplicas"),
    always("availableReplicas"),
];
const DAEMON_SET: [Counter; 7] = [
    always("currentNumberScheduled"),
    always("numberMisscheduled"),
    always("desiredNumberScheduled"),
    always("numberReady"),
    counter("updatedNumberScheduled"),
    counter("numberAvailable"),
    counter("numberUnavailable"),
];

/// Returns the counters of a workload's status; `None` for kinds other than workloads of `apps/v1`.
pub(crate) fn workload_counters(kind: (&str, &str)) -> Option<&'static [Counter]> {
    match kind {
        ("apps/v1", "Deployment") => Some(&DEPLOYMENT),
        ("apps/v1", "ReplicaSet") => Some(&REPLICA_SET),
        ("apps/v1", "StatefulSet") => Some(&STATEFUL_SET),
        ("apps/v1", "DaemonSet") => Some(&DAEMON_SET),
        _ => None,
    }
}

/// Writes a counter in the same way as the API.
pub(crate) fn write_counter(status: &mut Map<String, Value>, counter: &Counter, value: i64) {
    if value == 0 && counter.omitted_when_zero {
        status.remove(counter.name);
    } else {
        status.insert(counter.name.to_owned(), value.into());
    }
}

/// Returns the fragment to collect, or `None` if there is nothing to collect. (Karmada:
/// `pkg/resourceinterpreter/default/native/reflectstatus.go`.)
///
/// A status that is null or not an object is an error. So is a workload without Karmada's annotation: nothing is
/// reported for an object that was adopted manually.
pub(crate) fn status(kind: (&str, &str), object: &Value) -> Result<Option<Value>, Malformed> {
    let status = match object.get("status") {
        None => return Ok(None),
        Some(status @ Value::Object(_)) => status,
        Some(other) => return Err(Malformed::new(format!("status is {}, not an object", type_name(other)))),
    };
    if let Some(counters) = workload_counters(kind) {
        return workload(kind.1, object, counters).map(|fragment| Some(Value::Object(fragment)));
    }
    Ok(match kind {
        ("batch/v1", "Job") => Some(job(object)?),
        ("v1", "Service") if text(object, &["spec", "type"])? != "LoadBalancer" => None,
        ("v1", "Service") => {
            let load_balancer = members(object, &["status", "loadBalancer"])?.cloned().unwrap_or_default();
            Some(json!({"loadBalancer": load_balancer}))
        }
        ("policy/v1", "PodDisruptionBudget") => Some(disruption_budget(object)?),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => Some(autoscaler(object)?),
        _ => Some(status.clone()),
    })
}

fn workload(kind: &str, object: &Value, counters: &[Counter]) -> Result<Map<String, Value>, Malformed> {
    let annotation = text(object, &["metadata", "annotations", TEMPLATE_GENERATION])?;
    let template_generation: i64 = annotation
        .parse()
        .map_err(|_| Malformed::new(format!("annotation {TEMPLATE_GENERATION} is {annotation:?}, not an integer")))?;
    let mut fragment = Map::new();
    for counter in counters {
        write_counter(&mut fragment, counter, count(object, &["status", counter.name])?);
    }
    let generation = count(object, &["metadata", "generation"])?;
    write_counter(&mut fragment, &counter("generation"), generation);
    write_counter(&mut fragment, &counter("resourceTemplateGeneration"), template_generation);
    // Karmada omits it for StatefulSet.
    if kind != "StatefulSet" {
        let observed = count(object, &["status", "observedGeneration"])?;
        write_counter(&mut fragment, &counter("observedGeneration"), observed);
    }
    Ok(fragment)
}

fn job(object: &Value) -> Result<Value, Malformed> {
    let mut fragment = Map::new();
    for name in ["active", "succeeded", "failed"] {
        write_counter(&mut fragment, &counter(name), count(object, &["status", name])?);
    }
    for name in ["conditions", "startTime", "completionTime"] {
        if let Some(value) = field(object, &["status", name])? {
            fragment.insert(name.to_owned(), value.clone());
        }
    }
    Ok(Value::Object(fragment))
}

fn disruption_budget(object: &Value) -> Result<Value, Malformed> {
    let mut fragment = Map::new();
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        write_counter(&mut fragment, &always(name), count(object, &["status", name])?);
    }
    if let Some(pods) = members(object, &["status", "disruptedPods"])?.filter(|pods| !pods.is_empty()) {
        fragment.insert("disruptedPods".to_owned(), Value::Object(pods.clone()));
    }
    Ok(Value::Object(fragment))
}

/// Returns the fragment of an autoscaler. `currentMetrics` is null, as serialized by Karmada's typed struct.
fn autoscaler(object: &Value) -> Result<Value, Malformed> {
    let mut fragment = Map::from_iter([("currentMetrics".to_owned(), Value::Null)]);
    let current = integer(object, &["status", "currentReplicas"])?.unwrap_or(0);
    write_counter(&mut fragment, &counter("currentReplicas"), current);
    write_counter(&mut fragment, &always("desiredReplicas"), count(object, &["status", "desiredReplicas"])?);
    Ok(Value::Object(fragment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: (&str, &str), object: Value, expected: Result<Value, &str>) {
        let actual = status(kind, &object).map(Option::unwrap_or_default).map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned), "{kind:?} {object}");
    }

    #[test]
    fn workloads_report_counters_and_generations() {
        let check = |kind: &str, status: Value, expected: Value| {
            let metadata = json!({"generation": 3, "annotations": {TEMPLATE_GENERATION: "2"}});
            check(("apps/v1", kind), json!({"metadata": metadata, "status": status}), Ok(expected));
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
        check("Deployment", json!({}), json!({"generation": 3, "resourceTemplateGeneration": 2}));
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
    fn workloads_without_annotation_are_not_reported() {
        let text = format!("annotation {TEMPLATE_GENERATION} is \"\", not an integer");
        check(("apps/v1", "Deployment"), json!({"status": {}}), Err(&text));
        check(("apps/v1", "Deployment"), json!({}), Ok(Value::Null));
        check(("apps/v1", "Deployment"), json!({"status": null}), Err("status is null, not an object"));
    }

    #[test]
    fn other_kinds_report_what_karmada_collects() {
        let status = json!({"active": 1, "ready": 1, "startTime": "t", "conditions": [{"type": "Complete"}]});
        let kept = json!({"active": 1, "startTime": "t", "conditions": [{"type": "Complete"}]});
        check(("batch/v1", "Job"), json!({"status": status}), Ok(kept));
        let service =
            |type_: &str| json!({"spec": {"type": type_}, "status": {"conditions": [], "loadBalancer": {"a": 1}}});
        check(("v1", "Service"), service("LoadBalancer"), Ok(json!({"loadBalancer": {"a": 1}})));
        check(("v1", "Service"), service("ClusterIP"), Ok(Value::Null));
        let status = json!({"currentHealthy": 1, "disruptedPods": {"p": "t"}, "observedGeneration": 4});
        let kept = json!({
            "currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0, "disruptedPods": {"p": "t"},
        });
        check(("policy/v1", "PodDisruptionBudget"), json!({"status": status}), Ok(kept));
        let kept = json!({"currentMetrics": null, "desiredReplicas": 0});
        check(("autoscaling/v2", "HorizontalPodAutoscaler"), json!({"status": {"currentReplicas": 0}}), Ok(kept));
    }

    #[test]
    fn unknown_kinds_report_everything() {
        check(("v1", "Pod"), json!({"status": {"phase": "X", "l": []}}), Ok(json!({"phase": "X", "l": []})));
        check(("example.io/v1", "Widget"), json!({}), Ok(Value::Null));
        check(("example.io/v1", "Widget"), json!({"status": 3}), Err("status is a number, not an object"));
    }
}
