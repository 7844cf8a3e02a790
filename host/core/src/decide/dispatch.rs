//! Which clusters have a Work of a binding (Karmada: `pkg/util/helper/binding.go`).

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{BindingSpec, PurgeMode, TargetCluster};
use crate::mutation::{self, Mutation};

/// The clusters of a binding, by what their Works are for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dispatch {
    /// Rendered anew: the scheduling result, then what dependants need.
    pub rendered: Vec<TargetCluster>,
    /// Works that stay: the rendered ones and those that an eviction task holds.
    pub kept: BTreeSet<String>,
    /// Works that must be gone before anything is rendered.
    pub purged_first: BTreeSet<String>,
    /// Labels that the new copy carries on from the old one; only where gate `StatefulFailoverInjection` is on.
    pub preserved_labels: BTreeMap<String, String>,
}

/// Sorts the clusters of a binding.
pub fn decide(spec: &BindingSpec) -> Dispatch {
    let mut rendered = spec.clusters.clone();
    for snapshot in &spec.required_by {
        let clusters = snapshot.get("clusters").cloned().unwrap_or_default();
        for target in serde_json::from_value::<Vec<TargetCluster>>(clusters).unwrap_or_default() {
            if !rendered.iter().any(|there| there.name == target.name) {
                rendered.push(target);
            }
        }
    }
    let mut kept: BTreeSet<_> = rendered.iter().map(|target| target.name.clone()).collect();
    let mut purged_first = BTreeSet::new();
    for task in &spec.graceful_eviction_tasks {
        if mutation::on(Mutation::TaskKeepsNothing) {
            continue;
        }
        let clusters = if task.purge_mode == Some(PurgeMode::Directly) { &mut purged_first } else { &mut kept };
        clusters.insert(task.from_cluster.clone());
    }
    let preserved_labels = preserved_labels(spec, &rendered);
    Dispatch { rendered, kept, purged_first, preserved_labels }
}

/// The state of the old copy is for a copy that replaces it, alone and elsewhere: one target, where the workload was
/// not before the last eviction, which purged directly (Karmada: `binding/common.go:injectReservedLabelState`).
fn preserved_labels(spec: &BindingSpec, rendered: &[TargetCluster]) -> BTreeMap<String, String> {
    let ([target], Some(task)) = (rendered, spec.graceful_eviction_tasks.last()) else { return BTreeMap::new() };
    let moved = task.purge_mode == Some(PurgeMode::Directly) && !task.clusters_before_failover.contains(&target.name);
    if moved { task.preserved_label_state.clone() } else { BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GracefulEvictionTask;

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
        assert_eq!(dispatch.rendered, [TargetCluster::new("member1", 1), TargetCluster::new("member5", 0)]);
        assert_eq!(
            dispatch.kept.iter().map(String::as_str).collect::<Vec<_>>(),
            ["member1", "member2", "member4", "member5"]
        );
        assert_eq!(dispatch.purged_first.iter().map(String::as_str).collect::<Vec<_>>(), ["member3"]);
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
            assert_eq!(!decide(&spec).preserved_labels.is_empty(), expected, "{targets:?} {purge_mode:?} {before:?}");
        };
        check(&["m2"], Some(PurgeMode::Directly), &["m1"], true);
        check(&["m2", "m3"], Some(PurgeMode::Directly), &["m1"], false);
        check(&[], Some(PurgeMode::Directly), &["m1"], false);
        check(&["m2"], Some(PurgeMode::Gracefully), &["m1"], false);
        check(&["m2"], Some(PurgeMode::Directly), &["m1", "m2"], false);
    }
}
