//! Patches of the targets, the eviction tasks and the placement of a binding.

use std::collections::BTreeMap;

use bulkhead_core::decide::schedule::EVICTION_HISTORY;
use bulkhead_core::model::{BindingSpec, GracefulEvictionTask, TargetCluster};
use bulkhead_core::names::keys;
use serde::Serialize;
use serde_json::{Value, json};

/// Returns a list for a merge patch, which does not change an absent list: an empty one is null.
fn list<T: Serialize>(items: &[T]) -> Value {
    if items.is_empty() { json!(null) } else { json!(items) }
}

/// Returns the value of an annotation that has entries as JSON. Without entries it is null, which removes it.
pub(crate) fn annotation<T: Serialize>(entries: &BTreeMap<String, T>) -> Value {
    if entries.is_empty() {
        return Value::Null;
    }
    json!(json!(entries).to_string())
}

/// Placement that a patch applies.
pub(super) struct NewPlacement<'a> {
    pub(super) targets: &'a [TargetCluster],
    /// Placement of the policy that the targets rest on, as text.
    pub(super) applied: &'a str,
    /// Tasks for copies that leave because of it.
    pub(super) displaced: &'a [GracefulEvictionTask],
}

/// Returns the merge patch of a write that evicts, places, or both. `evicted` is the spec after the eviction and before
/// the placement.
pub(super) fn patch(
    before: &BindingSpec,
    evicted: Option<&BindingSpec>,
    placement: Option<&NewPlacement<'_>>,
) -> Value {
    let mut patch = json!({});
    if let Some(spec) = evicted {
        patch["spec"] =
            json!({"clusters": list(&spec.clusters), "gracefulEvictionTasks": spec.graceful_eviction_tasks});
        if spec.reschedule_triggered_at != before.reschedule_triggered_at {
            patch["spec"]["rescheduleTriggeredAt"] = json!(spec.reschedule_triggered_at);
        }
        let history = spec.rest.get(EVICTION_HISTORY);
        if let Some(history) = history.filter(|history| before.rest.get(EVICTION_HISTORY) != Some(*history)) {
            patch["spec"][EVICTION_HISTORY] = history.clone();
        }
    }
    if let Some(NewPlacement {
        targets,
        applied,
        displaced,
    }) = placement
    {
        patch["metadata"]["annotations"][keys::APPLIED_PLACEMENT] = json!(applied);
        patch["spec"]["clusters"] = list(targets);
        if !displaced.is_empty() {
            let tasks = &evicted.unwrap_or(before).graceful_eviction_tasks;
            patch["spec"]["gracefulEvictionTasks"] = json!(tasks.iter().chain(*displaced).collect::<Vec<_>>());
        }
    }
    patch
}

/// Returns the merge patch of a write that ends eviction tasks. `tasks` are those that remain, and `targets` the new
/// targets, if a task that was called off changes them.
pub(crate) fn patch_of_ended_tasks(tasks: &[GracefulEvictionTask], targets: Option<&[TargetCluster]>) -> Value {
    let mut patch = json!({"spec": {"gracefulEvictionTasks": list(tasks)}});
    if let Some(targets) = targets {
        patch["spec"]["clusters"] = list(targets);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(spec: Value) -> BindingSpec {
        let mut whole = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        for (name, value) in spec.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    fn task(cluster: &str) -> Value {
        json!({"fromCluster": cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
    }

    /// Returns the value at a pointer of a patch, or null.
    fn at(patch: &Value, pointer: &str) -> Value {
        patch.pointer(pointer).cloned().unwrap_or_default()
    }

    #[test]
    fn an_eviction_and_its_placement_are_one_patch() {
        let before = spec(json!({"clusters": [{"name": "m1", "replicas": 2}]}));
        let evicted = spec(json!({"gracefulEvictionTasks": [task("m1")]}));
        let alone = patch(&before, Some(&evicted), None);
        assert_eq!(at(&alone, "/spec/gracefulEvictionTasks/0/fromCluster"), "m1");
        assert_eq!(
            alone["spec"].get("clusters"),
            Some(&Value::Null),
            "an empty list removes the targets"
        );
        let (targets, displaced) = (
            [TargetCluster::new("m2", 2)],
            spec(json!({"gracefulEvictionTasks": [task("m3")]})),
        );
        let displaced = &*displaced.graceful_eviction_tasks;
        let placement = NewPlacement {
            targets: &targets,
            applied: "{}",
            displaced,
        };
        let both = patch(&before, Some(&evicted), Some(&placement));
        assert_eq!(at(&both, "/spec/clusters"), json!([{"name": "m2", "replicas": 2}]));
        let from = |index: usize| at(&both, &format!("/spec/gracefulEvictionTasks/{index}/fromCluster"));
        assert_eq!((from(0), from(1)), (json!("m1"), json!("m3")));
        assert_eq!(both["metadata"]["annotations"][keys::APPLIED_PLACEMENT], "{}");
    }

    #[test]
    fn an_annotation_without_entries_is_removed() {
        let entries = BTreeMap::from([("m1".to_owned(), 7)]);
        assert_eq!(annotation(&entries), json!(r#"{"m1":7}"#));
        assert_eq!(annotation(&BTreeMap::<String, i32>::new()), Value::Null);
    }

    #[test]
    fn a_placement_without_an_eviction_leaves_the_tasks_alone() {
        let before = spec(json!({"gracefulEvictionTasks": [task("m1")]}));
        let placement = NewPlacement {
            targets: &[],
            applied: "{}",
            displaced: &[],
        };
        let patch = patch(&before, None, Some(&placement));
        assert_eq!(patch["spec"], json!({"clusters": null}));
    }

    #[test]
    fn history_and_reschedule_time_are_written_when_they_change() {
        let before = spec(json!({"rescheduleTriggeredAt": "2026-01-01T00:00:00Z", EVICTION_HISTORY: ["a"]}));
        let fields = |patch: &Value| patch["spec"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            fields(&patch(&before, Some(&before), None)),
            ["clusters", "gracefulEvictionTasks"]
        );
        let after = spec(json!({"rescheduleTriggeredAt": "2026-01-01T00:00:01Z", EVICTION_HISTORY: ["a", "b"]}));
        let expected = [
            EVICTION_HISTORY,
            "clusters",
            "gracefulEvictionTasks",
            "rescheduleTriggeredAt",
        ];
        assert_eq!(fields(&patch(&before, Some(&after), None)), expected);
    }

    #[test]
    fn the_end_of_the_last_task_removes_the_list_and_keeps_the_targets() {
        assert_eq!(
            patch_of_ended_tasks(&[], None),
            json!({"spec": {"gracefulEvictionTasks": null}})
        );
        let remaining = spec(json!({"gracefulEvictionTasks": [task("m1")]})).graceful_eviction_tasks;
        let patch = patch_of_ended_tasks(&remaining, Some(&[TargetCluster::new("m2", 2)]));
        assert_eq!(at(&patch, "/spec/gracefulEvictionTasks/0/fromCluster"), "m1");
        assert_eq!(at(&patch, "/spec/clusters"), json!([{"name": "m2", "replicas": 2}]));
    }
}
