//! Nodes and pods of a large member cluster.

use serde_json::{Value, json};

/// Number of nodes.
pub(crate) const NODES: usize = 400;
/// Number of pods.
pub(crate) const PODS: usize = 20_000;
/// Size of the fields of a real pod that the sums do not read: volumes, probes, environment, owners of fields.
const FILLER_BYTES: usize = 4_000;

fn node(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("node-{number}")},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn pod(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("pod-{number}"), "annotations": {"filler": "x".repeat(FILLER_BYTES)}},
        "spec": {
            "nodeName": format!("node-{}", number % NODES),
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Running"},
    })
}

/// Returns the generator and the number of the objects at the path of a list, nodes or pods.
pub(crate) fn objects(path: &str) -> (fn(usize) -> Value, usize) {
    if path == "/api/v1/nodes" {
        (node, NODES)
    } else {
        (pod, PODS)
    }
}

/// Returns the resource models of the member: two grades by CPU.
pub(crate) fn models() -> [Value; 2] {
    let grade =
        |grade: u64, least: &str| json!({"grade": grade, "ranges": [{"name": "cpu", "min": least, "max": "999"}]});
    [grade(0, "0"), grade(1, "32")]
}
