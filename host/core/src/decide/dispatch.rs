//! Clusters that have a Work of a binding (Karmada: `pkg/util/helper/binding.go`).

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{BindingSpec, GracefulEvictionTask, PurgeMode, TargetCluster};
use crate::time::Time;

/// Clusters of a binding, by the purpose of their Works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatch {
    /// Clusters whose Work is rendered: the scheduling result, then the clusters needed by dependants.
    pub rendered: Vec<TargetCluster>,
    /// Clusters whose Work is kept: the rendered ones and those of eviction tasks.
    pub kept: BTreeSet<String>,
    /// Clusters whose Work must be deleted before any Work is rendered.
    pub purged_first: BTreeSet<String>,
    /// Labels that carry over state to the new copy; used only if gate `StatefulFailoverInjection` is on.
    pub preserved_labels: BTreeMap<String, String>,
}

/// Classifies the clusters of a binding.
pub fn decide(spec: &BindingSpec) -> Dispatch {
    let mut rendered = spec.clusters.clone();
    for snapshot in &spec.required_by {
        let clusters = snapshot.get("clusters").cloned().unwrap_or_default();
        for target in serde_json::from_value::<Vec<TargetCluster>>(clusters).unwrap_or_default() {
            if !rendered.iter().any(|existing| existing.name == target.name) {
                rendered.push(target);
            }
        }
    }
    let mut kept: BTreeSet<_> = rendered.iter().map(|target| target.name.clone()).collect();
    let mut purged_first = BTreeSet::new();
    for task in &spec.graceful_eviction_tasks {
        let clusters = if task.purge_mode == Some(PurgeMode::Directly) {
            &mut purged_first
        } else {
            &mut kept
        };
        clusters.insert(task.from_cluster.clone());
    }
    let preserved_labels = preserved_labels(spec, &rendered);
    Dispatch {
        rendered,
        kept,
        purged_first,
        preserved_labels,
    }
}

/// State of a cluster whose Work delays the replacement, because its task purges directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// The cluster is reachable, so the old copy may still run and is being deleted.
    UnderWay,
    /// The cluster is not ready, and the old copy cannot be deleted.
    Blocked {
        /// Maximum wait of the replacement, in seconds.
        limit_s: i64,
        /// Remaining wait, in milliseconds.
        left_ms: i64,
    },
    /// The cluster was not ready until the limit; the replacement starts.
    GivenUp {
        /// Maximum wait of the replacement, in seconds.
        limit_s: i64,
    },
}

/// Returns the progress of the purge of a cluster whose Work still exists.
///
/// The finalizer of a Work waits for its cluster, so a permanently lost cluster would delay the replacement forever.
/// The limit is the grace period of the task, or `timeout_s` if it has none. Karmada ends the wait at the same time,
/// by ending the task. Here the task may continue, depending on `purge-without-replacement`.
pub fn purge(spec: &BindingSpec, cluster: &str, is_ready: bool, timeout_s: i64, now: Time) -> Purge {
    let is_purged = |task: &&GracefulEvictionTask| {
        task.from_cluster == cluster && task.purge_mode == Some(PurgeMode::Directly) && !is_ready
    };
    let Some(task) = spec.graceful_eviction_tasks.iter().find(is_purged) else {
        return Purge::UnderWay;
    };
    let own_s = task.grace_period_seconds.filter(|seconds| *seconds > 0);
    let limit_s = own_s.map_or(timeout_s, i64::from);
    // A missing timestamp, or one in the future, counts as now.
    let created = task.creation_timestamp.map_or(now, |created| created.min(now));
    match created.plus_seconds(limit_s).millis_since(now) {
        left_ms if left_ms >= 0 => Purge::Blocked { limit_s, left_ms },
        _ => Purge::GivenUp { limit_s },
    }
}

/// Returns the labels for a copy that replaces the old one, alone and on another cluster. This requires a single
/// target on which the workload did not run before the last eviction, and a direct purge (Karmada:
/// `binding/common.go:injectReservedLabelState`).
fn preserved_labels(spec: &BindingSpec, rendered: &[TargetCluster]) -> BTreeMap<String, String> {
    let ([target], Some(task)) = (rendered, spec.graceful_eviction_tasks.last()) else {
        return BTreeMap::new();
    };
    let moved = task.purge_mode == Some(PurgeMode::Directly) && !task.clusters_before_failover.contains(&target.name);
    if moved {
        task.preserved_label_state.clone()
    } else {
        BTreeMap::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_keeps_the_work_unless_it_purges_directly() {
        let task = |from_cluster: &str, purge_mode| GracefulEvictionTask {
            from_cluster: from_cluster.to_owned(),
            purge_mode,
            ..GracefulEvictionTask::default()
        };
        let spec = BindingSpec {
            clusters: vec![TargetCluster::new("member1", 1)],
            graceful_eviction_tasks: vec![
                task("member2", Some(PurgeMode::Gracefully)),
                task("member3", Some(PurgeMode::Directly)),
                task("member4", None),
            ],
            required_by: vec![
                serde_json::json!({"name": "app", "clusters": [{"name": "member1"}, {"name": "member5"}]}),
            ],
            ..BindingSpec::default()
        };
        let dispatch = decide(&spec);
        assert_eq!(
            dispatch.rendered,
            [TargetCluster::new("member1", 1), TargetCluster::new("member5", 0)]
        );
        assert_eq!(
            dispatch.kept.iter().map(String::as_str).collect::<Vec<_>>(),
            ["member1", "member2", "member4", "member5"]
        );
        assert_eq!(
            dispatch.purged_first.iter().map(String::as_str).collect::<Vec<_>>(),
            ["member3"]
        );
    }

    #[test]
    fn a_lost_cluster_holds_back_a_replacement_for_its_grace_period_at_most() {
        let check = |task: serde_json::Value, is_ready, now_s: i64, expected| {
            let mut whole = serde_json::json!({"fromCluster": "m1", "purgeMode": "Directly"});
            whole.as_object_mut().unwrap().extend(task.as_object().unwrap().clone());
            let task: GracefulEvictionTask = serde_json::from_value(whole).unwrap();
            let spec = BindingSpec {
                graceful_eviction_tasks: vec![task],
                ..BindingSpec::default()
            };
            assert_eq!(
                purge(&spec, "m1", is_ready, 600, Time::from_millis(now_s * 1000)),
                expected,
                "{spec:?}"
            );
        };
        let created = serde_json::json!({"creationTimestamp": "1970-01-01T00:00:00Z"});
        check(
            created.clone(),
            false,
            590,
            Purge::Blocked {
                limit_s: 600,
                left_ms: 10_000,
            },
        );
        check(
            created.clone(),
            false,
            600,
            Purge::Blocked {
                limit_s: 600,
                left_ms: 0,
            },
        );
        check(created.clone(), false, 601, Purge::GivenUp { limit_s: 600 });
        check(created, true, 100_000, Purge::UnderWay);
        let own = serde_json::json!({"creationTimestamp": "1970-01-01T00:00:00Z", "gracePeriodSeconds": 30});
        check(own, false, 31, Purge::GivenUp { limit_s: 30 });
        let blocked = Purge::Blocked {
            limit_s: 600,
            left_ms: 600_000,
        };
        check(serde_json::json!({}), false, 31, blocked.clone());
        check(serde_json::json!({"gracePeriodSeconds": 0}), false, 31, blocked.clone());
        check(
            serde_json::json!({"creationTimestamp": "2999-01-01T00:00:00Z"}),
            false,
            31,
            blocked,
        );
    }

    #[test]
    fn a_limit_applies_to_the_cluster_of_a_direct_purge_only() {
        let purged = |cluster: &str, purge_mode: PurgeMode| {
            let task = GracefulEvictionTask {
                from_cluster: "m1".to_owned(),
                purge_mode: Some(purge_mode),
                ..GracefulEvictionTask::default()
            };
            let spec = BindingSpec {
                graceful_eviction_tasks: vec![task],
                ..BindingSpec::default()
            };
            purge(&spec, cluster, false, 600, Time::from_millis(0))
        };
        assert_eq!(purged("m2", PurgeMode::Directly), Purge::UnderWay);
        assert_eq!(purged("m1", PurgeMode::Gracefully), Purge::UnderWay);
        assert_ne!(purged("m1", PurgeMode::Directly), Purge::UnderWay);
    }

    #[test]
    fn state_is_carried_over_to_a_single_copy_elsewhere_only() {
        let check = |targets: &[&str], purge_mode, before: &[&str], expected: bool| {
            let task = GracefulEvictionTask {
                from_cluster: "m1".to_owned(),
                purge_mode,
                preserved_label_state: BTreeMap::from([("job".to_owned(), "f00".to_owned())]),
                clusters_before_failover: before.iter().map(|name| (*name).to_owned()).collect(),
                ..GracefulEvictionTask::default()
            };
            let spec = BindingSpec {
                clusters: targets.iter().map(|name| TargetCluster::new(*name, 1)).collect(),
                graceful_eviction_tasks: vec![GracefulEvictionTask::default(), task],
                ..BindingSpec::default()
            };
            assert_eq!(
                !decide(&spec).preserved_labels.is_empty(),
                expected,
                "{targets:?} {purge_mode:?} {before:?}"
            );
        };
        check(&["m2"], Some(PurgeMode::Directly), &["m1"], true);
        check(&["m2", "m3"], Some(PurgeMode::Directly), &["m1"], false);
        check(&[], Some(PurgeMode::Directly), &["m1"], false);
        check(&["m2"], Some(PurgeMode::Gracefully), &["m1"], false);
        check(&["m2"], Some(PurgeMode::Directly), &["m1", "m2"], false);
    }
}
