//! Statuses of the kinds with native rules, as Go structs. (Kubernetes: `k8s.io/api`, version 0.36.)
//!
//! Karmada decodes the whole object. The tables have the status and the metadata; the rules check the other fields
//! that they read.

use bulkhead_core::shape::{Malformed, members};
use bulkhead_core::typed::{Field, Shape};
use serde_json::Value;

const fn always(name: &'static str, shape: Shape) -> Field {
    Field::always(name, shape)
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field::not_empty(name, shape)
}

const fn pointer(name: &'static str, shape: Shape) -> Field {
    Field::pointer(name, shape)
}

const TEXTS: Shape = Shape::List(&Shape::Text);
const AMOUNTS: Shape = Shape::Map(&Shape::Quantity);

const DEPLOYMENT_CONDITION: &[Field] = &[
    always("type", Shape::Text),
    always("status", Shape::Text),
    field("lastUpdateTime", Shape::Time),
    field("lastTransitionTime", Shape::Time),
    field("reason", Shape::Text),
    field("message", Shape::Text),
];
/// Condition of a ReplicaSet, StatefulSet, DaemonSet or HorizontalPodAutoscaler.
const WORKLOAD_CONDITION: &[Field] = &[
    always("type", Shape::Text),
    always("status", Shape::Text),
    field("lastTransitionTime", Shape::Time),
    field("reason", Shape::Text),
    field("message", Shape::Text),
];
/// Condition of a Job or PersistentVolumeClaim.
const PROBED_CONDITION: &[Field] = &[
    always("type", Shape::Text),
    always("status", Shape::Text),
    field("lastProbeTime", Shape::Time),
    field("lastTransitionTime", Shape::Time),
    field("reason", Shape::Text),
    field("message", Shape::Text),
];
const POD_CONDITION: &[Field] = &[
    always("type", Shape::Text),
    field("observedGeneration", Shape::Int64),
    always("status", Shape::Text),
    field("lastProbeTime", Shape::Time),
    field("lastTransitionTime", Shape::Time),
    field("reason", Shape::Text),
    field("message", Shape::Text),
];
/// Condition of a Service or PodDisruptionBudget.
const CONDITION: &[Field] = &[
    always("type", Shape::Text),
    always("status", Shape::Text),
    field("observedGeneration", Shape::Int64),
    always("lastTransitionTime", Shape::Time),
    always("reason", Shape::Text),
    always("message", Shape::Text),
];

const DEPLOYMENT: &[Field] = &[
    field("observedGeneration", Shape::Int64),
    field("replicas", Shape::Int32),
    field("updatedReplicas", Shape::Int32),
    field("readyReplicas", Shape::Int32),
    field("availableReplicas", Shape::Int32),
    field("unavailableReplicas", Shape::Int32),
    pointer("terminatingReplicas", Shape::Int32),
    field("conditions", Shape::List(&Shape::Struct(DEPLOYMENT_CONDITION))),
    pointer("collisionCount", Shape::Int32),
];
const REPLICA_SET: &[Field] = &[
    always("replicas", Shape::Int32),
    field("fullyLabeledReplicas", Shape::Int32),
    field("readyReplicas", Shape::Int32),
    field("availableReplicas", Shape::Int32),
    pointer("terminatingReplicas", Shape::Int32),
    field("observedGeneration", Shape::Int64),
    field("conditions", Shape::List(&Shape::Struct(WORKLOAD_CONDITION))),
];
const STATEFUL_SET: &[Field] = &[
    field("observedGeneration", Shape::Int64),
    always("replicas", Shape::Int32),
    field("readyReplicas", Shape::Int32),
    field("currentReplicas", Shape::Int32),
    field("updatedReplicas", Shape::Int32),
    field("currentRevision", Shape::Text),
    field("updateRevision", Shape::Text),
    pointer("collisionCount", Shape::Int32),
    field("conditions", Shape::List(&Shape::Struct(WORKLOAD_CONDITION))),
    always("availableReplicas", Shape::Int32),
];
const DAEMON_SET: &[Field] = &[
    always("currentNumberScheduled", Shape::Int32),
    always("numberMisscheduled", Shape::Int32),
    always("desiredNumberScheduled", Shape::Int32),
    always("numberReady", Shape::Int32),
    field("observedGeneration", Shape::Int64),
    field("updatedNumberScheduled", Shape::Int32),
    field("numberAvailable", Shape::Int32),
    field("numberUnavailable", Shape::Int32),
    pointer("collisionCount", Shape::Int32),
    field("conditions", Shape::List(&Shape::Struct(WORKLOAD_CONDITION))),
];

const UNCOUNTED_PODS: &[Field] = &[field("succeeded", TEXTS), field("failed", TEXTS)];
const JOB: &[Field] = &[
    field("conditions", Shape::List(&Shape::Struct(PROBED_CONDITION))),
    pointer("startTime", Shape::Time),
    pointer("completionTime", Shape::Time),
    field("active", Shape::Int32),
    field("succeeded", Shape::Int32),
    field("failed", Shape::Int32),
    pointer("terminating", Shape::Int32),
    field("completedIndexes", Shape::Text),
    pointer("failedIndexes", Shape::Text),
    pointer("uncountedTerminatedPods", Shape::Struct(UNCOUNTED_PODS)),
    pointer("ready", Shape::Int32),
];
const OBJECT_REFERENCE: &[Field] = &[
    field("kind", Shape::Text),
    field("namespace", Shape::Text),
    field("name", Shape::Text),
    field("uid", Shape::Text),
    field("apiVersion", Shape::Text),
    field("resourceVersion", Shape::Text),
    field("fieldPath", Shape::Text),
];
const CRON_JOB: &[Field] = &[
    field("active", Shape::List(&Shape::Struct(OBJECT_REFERENCE))),
    pointer("lastScheduleTime", Shape::Time),
    pointer("lastSuccessfulTime", Shape::Time),
];

const PORT: &[Field] = &[
    always("port", Shape::Int32),
    always("protocol", Shape::Text),
    pointer("error", Shape::Text),
];
const SERVICE_ENTRY: &[Field] = &[
    field("ip", Shape::Text),
    field("hostname", Shape::Text),
    pointer("ipMode", Shape::Text),
    field("ports", Shape::List(&Shape::Struct(PORT))),
];
const SERVICE_LOAD_BALANCER: &[Field] = &[field("ingress", Shape::List(&Shape::Struct(SERVICE_ENTRY)))];
const SERVICE: &[Field] = &[
    field("loadBalancer", Shape::Struct(SERVICE_LOAD_BALANCER)),
    field("conditions", Shape::List(&Shape::Struct(CONDITION))),
];
/// Without `ipMode`, which only Services have.
const INGRESS_ENTRY: &[Field] = &[
    field("ip", Shape::Text),
    field("hostname", Shape::Text),
    field("ports", Shape::List(&Shape::Struct(PORT))),
];
const INGRESS_LOAD_BALANCER: &[Field] = &[field("ingress", Shape::List(&Shape::Struct(INGRESS_ENTRY)))];
const INGRESS: &[Field] = &[field("loadBalancer", Shape::Struct(INGRESS_LOAD_BALANCER))];

const WAITING: &[Field] = &[field("reason", Shape::Text), field("message", Shape::Text)];
const RUNNING: &[Field] = &[field("startedAt", Shape::Time)];
const TERMINATED: &[Field] = &[
    always("exitCode", Shape::Int32),
    field("signal", Shape::Int32),
    field("reason", Shape::Text),
    field("message", Shape::Text),
    field("startedAt", Shape::Time),
    field("finishedAt", Shape::Time),
    field("containerID", Shape::Text),
];
const CONTAINER_STATE: &[Field] = &[
    pointer("waiting", Shape::Struct(WAITING)),
    pointer("running", Shape::Struct(RUNNING)),
    pointer("terminated", Shape::Struct(TERMINATED)),
];
const RESOURCE_CLAIM: &[Field] = &[always("name", Shape::Text), field("request", Shape::Text)];
const RESOURCES: &[Field] = &[
    field("limits", AMOUNTS),
    field("requests", AMOUNTS),
    field("claims", Shape::List(&Shape::Struct(RESOURCE_CLAIM))),
];
const CONTAINER: &[Field] = &[
    always("name", Shape::Text),
    field("state", Shape::Struct(CONTAINER_STATE)),
    field("lastState", Shape::Struct(CONTAINER_STATE)),
    always("ready", Shape::Bool),
    always("restartCount", Shape::Int32),
    always("image", Shape::Text),
    always("imageID", Shape::Text),
    field("containerID", Shape::Text),
    pointer("started", Shape::Bool),
    field("allocatedResources", AMOUNTS),
    pointer("resources", Shape::Struct(RESOURCES)),
    field("volumeMounts", Shape::List(&Shape::Any)),
    pointer("user", Shape::Any),
    field("allocatedResourcesStatus", Shape::List(&Shape::Any)),
    pointer("stopSignal", Shape::Text),
];
const ADDRESS: &[Field] = &[always("ip", Shape::Text)];
const POD: &[Field] = &[
    field("observedGeneration", Shape::Int64),
    field("phase", Shape::Text),
    field("conditions", Shape::List(&Shape::Struct(POD_CONDITION))),
    field("message", Shape::Text),
    field("reason", Shape::Text),
    field("nominatedNodeName", Shape::Text),
    field("hostIP", Shape::Text),
    field("hostIPs", Shape::List(&Shape::Struct(ADDRESS))),
    field("podIP", Shape::Text),
    field("podIPs", Shape::List(&Shape::Struct(ADDRESS))),
    pointer("startTime", Shape::Time),
    field("initContainerStatuses", Shape::List(&Shape::Struct(CONTAINER))),
    field("containerStatuses", Shape::List(&Shape::Struct(CONTAINER))),
    field("qosClass", Shape::Text),
    field("ephemeralContainerStatuses", Shape::List(&Shape::Struct(CONTAINER))),
    field("resize", Shape::Text),
    field("resourceClaimStatuses", Shape::List(&Shape::Any)),
    pointer("extendedResourceClaimStatus", Shape::Any),
    field("allocatedResources", AMOUNTS),
    pointer("resources", Shape::Struct(RESOURCES)),
    field("nodeAllocatableResourceClaimStatuses", Shape::List(&Shape::Any)),
];

const VOLUME: &[Field] = &[
    field("phase", Shape::Text),
    field("message", Shape::Text),
    field("reason", Shape::Text),
    pointer("lastPhaseTransitionTime", Shape::Time),
];
const MODIFICATION: &[Field] = &[
    field("targetVolumeAttributesClassName", Shape::Text),
    always("status", Shape::Text),
];
const CLAIM: &[Field] = &[
    field("phase", Shape::Text),
    field("accessModes", TEXTS),
    field("capacity", AMOUNTS),
    field("conditions", Shape::List(&Shape::Struct(PROBED_CONDITION))),
    field("allocatedResources", AMOUNTS),
    field("allocatedResourceStatuses", Shape::Map(&Shape::Text)),
    pointer("currentVolumeAttributesClassName", Shape::Text),
    pointer("modifyVolumeStatus", Shape::Struct(MODIFICATION)),
];
const DISRUPTION_BUDGET: &[Field] = &[
    field("observedGeneration", Shape::Int64),
    field("disruptedPods", Shape::Map(&Shape::Time)),
    always("disruptionsAllowed", Shape::Int32),
    always("currentHealthy", Shape::Int32),
    always("desiredHealthy", Shape::Int32),
    always("expectedPods", Shape::Int32),
    field("conditions", Shape::List(&Shape::Struct(CONDITION))),
];
const METRIC: &[Field] = &[
    always("type", Shape::Text),
    pointer("object", Shape::Any),
    pointer("pods", Shape::Any),
    pointer("resource", Shape::Any),
    pointer("containerResource", Shape::Any),
    pointer("external", Shape::Any),
];
const AUTOSCALER: &[Field] = &[
    pointer("observedGeneration", Shape::Int64),
    pointer("lastScaleTime", Shape::Time),
    field("currentReplicas", Shape::Int32),
    always("desiredReplicas", Shape::Int32),
    always("currentMetrics", Shape::List(&Shape::Struct(METRIC))),
    field("conditions", Shape::List(&Shape::Struct(WORKLOAD_CONDITION))),
];

const OWNER: &[Field] = &[
    always("apiVersion", Shape::Text),
    always("kind", Shape::Text),
    always("name", Shape::Text),
    always("uid", Shape::Text),
    pointer("controller", Shape::Bool),
    pointer("blockOwnerDeletion", Shape::Bool),
];
const METADATA: &[Field] = &[
    field("name", Shape::Text),
    field("generateName", Shape::Text),
    field("namespace", Shape::Text),
    field("selfLink", Shape::Text),
    field("uid", Shape::Text),
    field("resourceVersion", Shape::Text),
    field("generation", Shape::Int64),
    field("creationTimestamp", Shape::Time),
    pointer("deletionTimestamp", Shape::Time),
    pointer("deletionGracePeriodSeconds", Shape::Int64),
    field("labels", Shape::Map(&Shape::Text)),
    field("annotations", Shape::Map(&Shape::Text)),
    field("ownerReferences", Shape::List(&Shape::Struct(OWNER))),
    field("finalizers", TEXTS),
    field("managedFields", Shape::List(&Shape::Any)),
];

/// Returns the status of a kind; `None` for kinds without native rules about their status.
pub(crate) fn of(kind: (&str, &str)) -> Option<Shape> {
    let fields = match kind {
        ("apps/v1", "Deployment") => DEPLOYMENT,
        ("apps/v1", "ReplicaSet") => REPLICA_SET,
        ("apps/v1", "StatefulSet") => STATEFUL_SET,
        ("apps/v1", "DaemonSet") => DAEMON_SET,
        ("batch/v1", "Job") => JOB,
        ("batch/v1", "CronJob") => CRON_JOB,
        ("v1", "Service") => SERVICE,
        ("networking.k8s.io/v1", "Ingress") => INGRESS,
        ("v1", "Pod") => POD,
        ("v1", "PersistentVolume") => VOLUME,
        ("v1", "PersistentVolumeClaim") => CLAIM,
        ("policy/v1", "PodDisruptionBudget") => DISRUPTION_BUDGET,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => AUTOSCALER,
        _ => return None,
    };
    Some(Shape::Struct(fields))
}

/// Returns the status of an object, or null.
pub(crate) fn status(object: &Value) -> &Value {
    object.get("status").unwrap_or(&Value::Null)
}

/// Checks the status of an object, and that its `spec` is an object.
pub(crate) fn check(kind: (&str, &str), object: &Value) -> Result<(), Malformed> {
    members(object, &["spec"])?;
    of(kind).map_or(Ok(()), |shape| shape.check(status(object), "status"))
}

/// Checks metadata and status of an object, and that its `spec` is an object.
pub(crate) fn check_object(kind: (&str, &str), object: &Value) -> Result<(), Malformed> {
    check(kind, object)?;
    Shape::Struct(METADATA).check(object.get("metadata").unwrap_or(&Value::Null), "metadata")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_are_checked_to_the_depth_of_the_api() {
        let check = |kind: (&str, &str), status: Value, expected: Result<(), &str>| {
            let got = check(kind, &json!({"status": status})).map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{kind:?} {status}");
        };
        let deployment = ("apps/v1", "Deployment");
        check(
            deployment,
            json!({"replicas": 1, "conditions": [{"type": "Available"}], "phase": 3}),
            Ok(()),
        );
        check(
            deployment,
            json!({"conditions": "x"}),
            Err("status.conditions is a string, not a list"),
        );
        let pod = json!({"containerStatuses": [{"state": {"running": {"startedAt": 1}}}]});
        let message = "status.containerStatuses[0].state.running.startedAt is a number, not a time";
        check(("v1", "Pod"), pod, Err(message));
        let entry = json!({"loadBalancer": {"ingress": [{"ports": [{"port": "http"}]}]}});
        let message = "status.loadBalancer.ingress[0].ports[0].port is a string, not an integer";
        check(("v1", "Service"), entry.clone(), Err(message));
        check(("networking.k8s.io/v1", "Ingress"), entry, Err(message));
        check(
            ("v1", "PersistentVolumeClaim"),
            json!({"capacity": {"storage": "5Gi"}}),
            Ok(()),
        );
        check(("example.io/v1", "Widget"), json!(3), Ok(()));
    }

    #[test]
    fn metadata_is_checked_with_the_whole_object() {
        let check = |object: Value, expected: Result<(), &str>| {
            let got = check_object(("v1", "Pod"), &object).map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned), "{object}");
        };
        check(
            json!({"metadata": {"name": "x", "labels": {"a": "b"}, "creationTimestamp": null}}),
            Ok(()),
        );
        check(
            json!({"metadata": {"labels": {"a": 1}}}),
            Err("metadata.labels.a is a number, not a string"),
        );
        check(json!({"metadata": "x"}), Err("metadata is a string, not an object"));
        check(json!({"spec": "x"}), Err("spec is a string, not an object"));
    }
}
