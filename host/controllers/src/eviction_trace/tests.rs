use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use super::*;
use crate::testing::{binding_of_web, captured};

/// Returns the marks that `emit` causes, as JSON.
fn marks(level: LevelFilter, emit: impl FnOnce()) -> Vec<Value> {
    let (dispatch, captured) = captured::subscriber(level);
    tracing::dispatcher::with_default(&dispatch, emit);
    captured.json()
}

fn task(cluster: &str, created: Option<&str>) -> Value {
    json!({"fromCluster": cluster, "reason": "TaintUntolerated", "producer": "TaintManager",
           "creationTimestamp": created})
}

#[test]
fn a_new_task_is_marked_with_the_binding_and_the_time_of_its_creation() {
    let (old, new) = (
        task("m1", Some("1970-01-01T00:00:01Z")),
        task("m2", Some("1970-01-01T00:00:02Z")),
    );
    let before = binding_of_web(&json!({"gracefulEvictionTasks": [old]}));
    let mut written = binding_of_web(&json!({"gracefulEvictionTasks": [old, new, task("m3", None)]}));
    written.metadata.uid = Some("7d1f".to_owned());
    let marks = marks(LevelFilter::TRACE, || began(&before, &written));
    assert_eq!(marks.len(), 1, "{marks:#?}");
    let fields =
        ["step", "kind", "object", "uid", "cluster", "created_ms", "reason"].map(|name| marks[0][name].clone());
    let expected = json!([
        "began",
        "ResourceBinding",
        "default/web-deployment",
        "7d1f",
        "m2",
        2000,
        "TaintUntolerated"
    ]);
    assert_eq!(json!(fields), expected);
}

#[test]
fn an_eviction_leaves_the_queue_with_the_loss_of_its_cluster() {
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:00:03Z"});
    let taint = json!({"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:04Z"});
    let cluster: Cluster = serde_json::from_value(json!({
        "metadata": {"name": "m1", "annotations": {keys::DECISION: "3f9a-7"}},
        "spec": {"syncMode": "Push", "taints": [taint]}, "status": {"conditions": [ready]},
    }))
    .unwrap();
    let waited = Duration::from_millis(1500);
    let marks = marks(LevelFilter::TRACE, || {
        left_queue("m1", waited, Some(&cluster), cluster.spec.taints.first());
    });
    let fields =
        ["cluster", "waited_ms", "lost_ms", "taint", "tainted_ms", "decision"].map(|name| marks[0][name].clone());
    assert_eq!(json!(fields), json!(["m1", 1500, 3000, "k:NoExecute", 4000, "3f9a-7"]));
}

#[test]
fn a_log_has_no_marks_at_debug_level() {
    let binding = binding_of_web(&json!({"gracefulEvictionTasks": [task("m1", Some("1970-01-01T00:00:01Z"))]}));
    let marked = || began(&binding_of_web(&json!({})), &binding);
    assert_eq!(marks(LevelFilter::DEBUG, marked), Vec::<Value>::new());
}
