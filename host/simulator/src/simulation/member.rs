//! Construction of simulated member clusters from the scenario.

use bulkhead_apiserver::json::{array, field, text};
use bulkhead_apiserver::{Clock, Content, ObjectKey, ResourceKind};
use bulkhead_core::names::fnv1a_32;
use bulkhead_emulator::{Behaviour, Capacity, MemberCluster, MemberOptions, ReplicaReady, WorkloadFailure, pods_in};
use serde_json::Value;

use crate::scenario::{ClusterSpec, FailureModeSpec};

/// Kubernetes version that member clusters report.
const KUBERNETES_VERSION: &str = "v1.35.0";

/// Workload kinds whose ready replicas are counted.
pub(super) const WORKLOAD_KINDS: [(&str, &str); 3] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
];

/// Returns kind, namespace and name of a workload, as `Kind namespace/name`.
pub(super) fn workload_key(object: &Content) -> String {
    let (kind, namespace) = (text(object, "/kind"), text(object, "/metadata/namespace"));
    format!("{kind} {namespace}/{}", text(object, "/metadata/name"))
}

/// Builds a simulated cluster. Its seed depends on the run's seed and its name, not on the other clusters.
pub(super) fn build(spec: &ClusterSpec, custom_kinds: Vec<ResourceKind>, seed: u64, clock: Clock) -> MemberCluster {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(fnv1a_32(spec.name.as_bytes()));
    let capacity = &spec.capacity;
    let cluster = MemberCluster::new(MemberOptions {
        kubernetes_version: KUBERNETES_VERSION.to_owned(),
        nodes: capacity.nodes,
        capacity: Capacity {
            cpu: capacity.cpu.clone(),
            memory: capacity.memory.clone(),
            pods: capacity.pods,
        },
        replica_ready: ReplicaReady {
            base: spec.replica_ready_after.0,
            jitter: spec.replica_ready_jitter.0,
        },
        behaviour: Behaviour {
            unpullable_images: spec.unpullable_images.clone(),
            ..Behaviour::default()
        },
        custom_kinds,
        ..MemberOptions::new(&spec.name, seed, clock)
    });
    set_failures(&cluster, &spec.failure_modes, &[]);
    cluster
}

/// Replaces the active failure modes.
pub(super) fn set_failures(cluster: &MemberCluster, modes: &[FailureModeSpec], before: &[FailureModeSpec]) {
    cluster.set_failure(None);
    for workload in before.iter().filter_map(|mode| mode.workload.as_deref()) {
        let (namespace, name) = workload.split_once('/').unwrap_or(("", workload));
        cluster.set_workload_failure(namespace, name, None);
    }
    for mode in modes {
        let failure = Some(mode.mode.into());
        match mode.workload.as_deref().and_then(|workload| workload.split_once('/')) {
            None => cluster.set_failure(failure),
            Some((namespace, name)) => cluster.set_workload_failure(namespace, name, failure),
        }
    }
}

/// Describes a failure mode in words.
pub(super) fn describe(mode: &FailureModeSpec) -> String {
    let what = match mode.mode {
        WorkloadFailure::NeverReady => "replicas never become ready",
        WorkloadFailure::CrashLoop => "replicas crash repeatedly",
        WorkloadFailure::ImagePull => "images cannot be pulled",
    };
    mode.workload
        .as_ref()
        .map_or_else(|| what.to_owned(), |workload| format!("{workload}: {what}"))
}

/// Returns the ready replicas of a workload, if it exists.
pub(super) fn ready_replicas(cluster: &MemberCluster, kind: &str, namespace: &str, name: &str) -> Option<i64> {
    let (api_version, kind) = WORKLOAD_KINDS.iter().find(|(_, known)| *known == kind)?;
    let id = cluster.server().kind_id(api_version, kind)?;
    let object = cluster.server().store().get(&ObjectKey::new(id, namespace, name))?;
    Some(ready_replicas_of(object.content()))
}

/// Returns the ready replicas in the status of a workload.
pub(super) fn ready_replicas_of(workload: &Content) -> i64 {
    field(workload, "/status/readyReplicas")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Returns the images of a workload's containers, if it exists.
pub(super) fn images(cluster: &MemberCluster, kind: &str, namespace: &str, name: &str) -> Option<Vec<String>> {
    let (api_version, kind) = WORKLOAD_KINDS.iter().find(|(_, known)| *known == kind)?;
    let id = cluster.server().kind_id(api_version, kind)?;
    let object = cluster.server().store().get(&ObjectKey::new(id, namespace, name))?;
    Some(images_of(object.content()))
}

/// Returns the images of the containers of a workload or a Pod.
pub(super) fn images_of(object: &Content) -> Vec<String> {
    let containers = ["/spec/template/spec/containers", "/spec/containers"];
    let containers = containers.iter().find_map(|path| field(object, path)?.as_array());
    let image = |container: &Value| Some(container.get("image")?.as_str()?.to_owned());
    containers.into_iter().flatten().filter_map(image).collect()
}

/// Returns the number of pods that the nodes of the cluster can still take.
pub(super) fn free_pods(cluster: &MemberCluster) -> i64 {
    let (server, store) = (cluster.server(), cluster.server().store());
    let objects = |kind: &str| {
        let id = server.kind_id("v1", kind);
        id.map(|id| store.list(id, None)).unwrap_or_default()
    };
    let places = objects("Node").into_iter().map(|node| {
        let places = text(node.content(), "/status/allocatable/pods").parse::<i64>();
        places.unwrap_or(0)
    });
    let bound = objects("Pod")
        .into_iter()
        .filter(|pod| !text(pod.content(), "/spec/nodeName").is_empty())
        .map(|pod| pods_in(pod.content()))
        .fold(0, u64::saturating_add);
    places.sum::<i64>() - i64::try_from(bound).unwrap_or(i64::MAX)
}

/// Returns the number of pods of a workload that no node of the cluster has room for.
pub(super) fn unschedulable_pods(cluster: &MemberCluster, kind: &str, namespace: &str, name: &str) -> i64 {
    let (server, store) = (cluster.server(), cluster.server().store());
    let kinds = WORKLOAD_KINDS.iter().find(|(_, known)| *known == kind);
    let Some(id) = kinds.and_then(|(api_version, kind)| server.kind_id(api_version, kind)) else {
        return 0;
    };
    let Some(object) = store.get(&ObjectKey::new(id, namespace, name)) else {
        return 0;
    };
    let pods = server
        .kind_id("v1", "Pod")
        .map(|pod| store.dependents(object.uid(), pod))
        .unwrap_or_default();
    let is_unschedulable = |pod: &Content| {
        let mut conditions = array(pod, "/status/conditions").iter();
        conditions.any(|condition| condition["reason"] == "Unschedulable" && condition["status"] == "False")
    };
    let pods = pods.iter().map(|pod| pod.content()).filter(|pod| is_unschedulable(pod));
    let count = pods.map(pods_in).fold(0, u64::saturating_add);
    i64::try_from(count).unwrap_or(i64::MAX)
}
