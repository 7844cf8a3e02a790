//! Workloads that leave a cluster again and again without ever leaving it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::decide::reasons::{REASON_APPLICATION_FAILURE, REASON_TAINT_UNTOLERATED};
use bulkhead_core::model::{Binding, Cluster, Placement, ReplicaSchedulingType, Taint, Toleration};

use super::hub::work_name;
use super::selects;

/// Evictions whose old copy still has its Work.
///
/// Evictions of failed applications count for workloads that run on every selected cluster, while no further cluster
/// could take them and no block keeps them away: they can only end where they began. Evictions by taints count while the
/// cluster has the same taints, which the placement does not tolerate.
#[derive(Default)]
pub(super) struct Departures {
    /// Targets before the eviction of a failed application, by name of the Work and by cluster.
    open: BTreeMap<(String, String), BTreeSet<String>>,
    /// Taints and tolerations at an eviction by taints, by name of the Work and by cluster.
    tainted: BTreeMap<(String, String), (Vec<Taint>, Vec<Toleration>)>,
}

impl Departures {
    /// Records the changed tasks and targets of a binding. Returns a cluster that it is evicted from for the second time
    /// although its copy there was never withdrawn.
    pub(super) fn changed(
        &mut self,
        before: &Binding,
        after: &Binding,
        clusters: &BTreeMap<String, Arc<Cluster>>,
    ) -> Option<String> {
        let (name, mut again) = (work_name(after), None);
        for task in &before.spec.graceful_eviction_tasks {
            let cluster = &task.from_cluster;
            if !after.spec.is_evicting(cluster) && after.spec.targets(cluster) {
                // Called off: the workload never left.
                self.withdrawn(&name, cluster);
            }
        }
        for task in &after.spec.graceful_eviction_tasks {
            let cluster = &task.from_cluster;
            let is_new = !before.spec.is_evicting(cluster);
            if is_new && task.reason == REASON_TAINT_UNTOLERATED {
                let key = (name.clone(), cluster.clone());
                let now = taints_and_tolerations(before, cluster, clusters);
                // A person may write a task for a cluster where the workload does not run.
                let is_eviction = before.spec.targets(cluster) && !now.0.is_empty();
                if is_eviction && self.tainted.insert(key, now.clone()) == Some(now) {
                    again = Some(cluster.clone());
                }
            }
            if is_new && task.reason == REASON_APPLICATION_FAILURE && can_only_return(before, cluster, clusters) {
                let targets = before.spec.clusters.iter().map(|target| target.name.clone()).collect();
                if self.open.insert((name.clone(), cluster.clone()), targets).is_some() {
                    again = Some(cluster.clone());
                }
            }
        }
        let runs_on = |known: &BTreeSet<String>| after.spec.clusters.iter().all(|target| known.contains(&target.name));
        self.open.retain(|(of, _), known| *of != name || runs_on(known));
        again
    }

    /// Records that a Work is being deleted.
    pub(super) fn withdrawn(&mut self, work: &str, cluster: &str) {
        let key = (work.to_owned(), cluster.to_owned());
        self.open.remove(&key);
        self.tainted.remove(&key);
    }

    /// Forgets everything, because changes were missed.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.tainted.clear();
    }
}

/// Returns the taints of a cluster and the tolerations of a workload.
fn taints_and_tolerations(
    binding: &Binding,
    cluster: &str,
    clusters: &BTreeMap<String, Arc<Cluster>>,
) -> (Vec<Taint>, Vec<Toleration>) {
    let taints = clusters.get(cluster).map(|cluster| cluster.spec.taints.clone());
    let placement = binding.spec.placement.as_ref();
    let tolerations = placement.map(|placement| placement.cluster_tolerations.to_vec());
    (taints.unwrap_or_default(), tolerations.unwrap_or_default())
}

/// Returns true if a workload that leaves a cluster has no place that it did not have before.
fn can_only_return(before: &Binding, source: &str, clusters: &BTreeMap<String, Arc<Cluster>>) -> bool {
    let spec = &before.spec;
    let placement = spec.placement.clone().unwrap_or_default();
    let everywhere = placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated;
    let application = spec
        .failover
        .as_ref()
        .and_then(|failover| failover.application.as_ref());
    let is_blocked = application.is_none_or(|application| application.block_predecessor_seconds.is_some());
    let runs_elsewhere = spec.clusters.iter().any(|target| target.name != source);
    let is_new = |cluster: &Arc<Cluster>| !spec.targets(&cluster.name) && may_select(cluster, &placement);
    everywhere && !is_blocked && runs_elsewhere && !clusters.values().any(is_new)
}

/// Returns true if the placement may select a cluster, regardless of its state.
fn may_select(cluster: &Cluster, placement: &Placement) -> bool {
    let mut terms = placement.cluster_affinities.iter().flatten();
    terms.any(|term| term.overflow_affinities.is_some()) || selects(placement, cluster)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a binding with these targets that is leaving other clusters.
    fn binding(targets: &[&str], leaving: &[&str]) -> Binding {
        let targets: Vec<_> = targets
            .iter()
            .map(|name| json!({"name": name, "replicas": 1}))
            .collect();
        let task = |name: &&str| json!({"fromCluster": name, "reason": REASON_APPLICATION_FAILURE, "producer": "p"});
        let tasks: Vec<_> = leaving.iter().map(task).collect();
        serde_json::from_value(json!({
            "namespace": "default", "name": "web-deployment",
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
                "replicas": 1, "clusters": targets, "gracefulEvictionTasks": tasks,
                "failover": {"application": {"decisionConditions": {}}},
            },
        }))
        .unwrap()
    }

    fn clusters(names: &[&str]) -> BTreeMap<String, Arc<Cluster>> {
        let cluster = |name: &&str| {
            Arc::new(Cluster {
                name: (*name).to_owned(),
                ..Cluster::default()
            })
        };
        names.iter().map(|name| ((*name).to_owned(), cluster(name))).collect()
    }

    /// Evicts the workload twice from `m1`. `between` happens after the first eviction ended.
    fn twice(known: &[&str], between: impl Fn(&mut Departures)) -> Option<String> {
        let (mut departures, known) = (Departures::default(), clusters(known));
        let (both, left, one) = (
            binding(&["m1", "m2"], &[]),
            binding(&["m2"], &["m1"]),
            binding(&["m2"], &[]),
        );
        for (before, after) in [(&both, &left), (&left, &one), (&one, &both)] {
            assert_eq!(departures.changed(before, after, &known), None);
        }
        between(&mut departures);
        departures.changed(&both, &left, &known)
    }

    #[test]
    fn a_second_eviction_needs_a_withdrawn_copy_or_another_place() {
        assert_eq!(twice(&["m1", "m2"], |_| {}), Some("m1".to_owned()));
        assert_eq!(twice(&["m1", "m2", "m3"], |_| {}), None);
        assert_eq!(twice(&["m1", "m2"], Departures::forget), None);
        let work = work_name(&binding(&["m1"], &[]));
        assert_eq!(
            twice(&["m1", "m2"], |departures| departures.withdrawn(&work, "m1")),
            None
        );
    }

    #[test]
    fn a_second_eviction_by_the_same_taint_needs_a_withdrawn_copy() {
        let mut left = binding(&["m2"], &["m1"]);
        left.spec.graceful_eviction_tasks[0].reason = REASON_TAINT_UNTOLERATED.to_owned();
        let (both, one) = (binding(&["m1", "m2"], &[]), binding(&["m2"], &[]));
        let tainted = |key: &str| {
            let taints = json!([{"key": key, "effect": "NoExecute"}]);
            let cluster = json!({"name": "m1", "spec": {"syncMode": "Push", "taints": taints}});
            let cluster: Cluster = serde_json::from_value(cluster).unwrap();
            BTreeMap::from([("m1".to_owned(), Arc::new(cluster))])
        };
        let twice = |second: &str, between: fn(&mut Departures)| {
            let mut departures = Departures::default();
            for (before, after) in [(&both, &left), (&left, &one), (&one, &both)] {
                assert_eq!(departures.changed(before, after, &tainted("lost")), None);
            }
            between(&mut departures);
            departures.changed(&both, &left, &tainted(second))
        };
        assert_eq!(twice("lost", |_| {}), Some("m1".to_owned()));
        assert_eq!(twice("other", |_| {}), None);
        let withdrawn = |departures: &mut Departures| {
            departures.withdrawn(&work_name(&binding(&["m1"], &[])), "m1");
        };
        assert_eq!(twice("lost", withdrawn), None);
    }

    #[test]
    fn an_eviction_that_was_called_off_or_gained_a_place_does_not_count() {
        let (both, left) = (binding(&["m1", "m2"], &[]), binding(&["m2"], &["m1"]));
        let known = clusters(&["m1", "m2"]);
        let mut departures = Departures::default();
        for (before, after) in [(&both, &left), (&left, &both)] {
            assert_eq!(departures.changed(before, after, &known), None);
        }
        assert_eq!(departures.changed(&both, &left, &known), None);
        assert_eq!(
            departures.changed(&left, &binding(&["m2", "m3"], &["m1"]), &known),
            None
        );
        assert_eq!(departures.changed(&both, &left, &known), None);
    }
}
