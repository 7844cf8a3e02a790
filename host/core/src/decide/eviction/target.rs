//! Check for a feasible target cluster: an eviction without one only removes a copy.
//!
//! This is a cheap check before the full one of the scheduler, which also considers capacity, spread over regions and
//! filter plugins. A rejected binding could not be scheduled; an accepted one may still fail to be.

use std::borrow::Borrow;

use super::taint_based::evicts_at_once;
use crate::affinity;
use crate::decide::reasons::REASON_FAILBACK;
use crate::model::{BindingSpec, Cluster, Placement, ReplicaSchedulingType, TaintEffect};
use crate::time::Time;

/// Check that must succeed before a binding is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PreCheck {
    /// Enough other clusters are ready, selected and tolerated: one, or the minimum of a spread constraint.
    #[default]
    Feasible,
    /// Rule of the proposal "Optimize Cluster Failover". Duplicated requires as many other selected clusters as the
    /// minimum of a spread constraint, or one without such a constraint. Divided requires a selected cluster outside
    /// of the previous result.
    Proposal,
    /// No check, as in Karmada. (The name `off` would be a boolean in YAML.)
    None,
}

/// Returns true if a binding that leaves `source` has a feasible target now. `clusters` are all known clusters.
pub fn has_target<C: Borrow<Cluster>>(
    check: PreCheck,
    spec: &BindingSpec,
    placement: &Placement,
    source: &str,
    clusters: &[C],
    now: Time,
) -> bool {
    let others = || {
        clusters
            .iter()
            .map(Borrow::borrow)
            .filter(|cluster| cluster.name != source)
    };
    match check {
        PreCheck::None => true,
        PreCheck::Feasible => {
            let needed = fewest_clusters(placement).unwrap_or(1).max(1);
            others()
                .filter(|cluster| could_run(cluster, spec, placement, now))
                .take(needed)
                .count()
                == needed
        }
        PreCheck::Proposal => {
            let selected = others().filter(|cluster| is_selected(cluster, placement));
            if placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated {
                fewest_clusters(placement).unwrap_or(1).max(1) <= selected.count()
            } else {
                selected.into_iter().any(|cluster| !spec.targets(&cluster.name))
            }
        }
    }
}

/// Returns true if a workload that leaves `source` can only return to it, so that its eviction would be repeated without
/// end. A duplicated workload, and one without replicas, runs on every cluster that the scheduler selects. It returns
/// when its eviction task ends, unless a taint keeps it away or a cluster that it does not run on yet can take it.
///
/// A workload that runs on no other cluster never returns this way: its old copy is not released.
pub fn would_return<C: Borrow<Cluster>>(
    spec: &BindingSpec,
    placement: &Placement,
    source: &str,
    clusters: &[C],
    now: Time,
) -> bool {
    let everywhere = placement.replica_scheduling_type() == ReplicaSchedulingType::Duplicated || !spec.is_workload();
    let known = || clusters.iter().map(<C as Borrow<Cluster>>::borrow);
    let others: Vec<&Cluster> = known()
        .filter(|one| one.name != source && spec.targets(&one.name))
        .collect();
    let is_new = |one: &Cluster| {
        one.name != source
            && !spec.targets(&one.name)
            && could_run(one, spec, placement, now)
            && shares_group(one, &others, placement)
    };
    let is_open = |one: &Cluster| {
        one.name == source && !one.is_terminating() && is_selected(one, placement) && admits(one, placement, false)
    };
    everywhere && !others.is_empty() && known().any(is_open) && !known().any(is_new)
}

/// Returns true if the scheduler could select the cluster together with one of the other targets: with affinity groups
/// it uses one group, and stays in it while a cluster of it fits.
fn shares_group(cluster: &Cluster, others: &[&Cluster], placement: &Placement) -> bool {
    let groups = placement.cluster_affinities.as_deref().unwrap_or_default();
    let has_other = |group| others.iter().any(|other| affinity::group_matches(group, other));
    groups.is_empty()
        || groups
            .iter()
            .any(|group| affinity::group_matches(group, cluster) && has_other(group))
}

/// Returns the minimum number of clusters of the spread constraint; `None` without such a constraint.
fn fewest_clusters(placement: &Placement) -> Option<usize> {
    let by_cluster = placement.spread_constraints.iter().find(|constraint| {
        constraint.spread_by_label.is_empty() && matches!(constraint.spread_by_field.as_str(), "" | "cluster")
    })?;
    Some(usize::try_from(by_cluster.min_groups).unwrap_or(0))
}

/// Returns true if any affinity group selects the cluster, because this eviction may change the active group.
fn is_selected(cluster: &Cluster, placement: &Placement) -> bool {
    let one = placement.cluster_affinity.as_ref();
    let groups = placement.cluster_affinities.as_deref().unwrap_or_default();
    if one.is_none() && groups.is_empty() {
        return true;
    }
    one.is_some_and(|affinity| affinity::matches(affinity, cluster))
        || groups.iter().any(|group| affinity::group_matches(group, cluster))
}

/// Returns true if the scheduler could accept the cluster for a workload that leaves another one. A current target may
/// keep its replicas despite taints that block new workloads.
fn could_run(cluster: &Cluster, spec: &BindingSpec, placement: &Placement, now: Time) -> bool {
    cluster.is_ready()
        && !cluster.is_terminating()
        && !is_excluded(spec, &cluster.name)
        && is_selected(cluster, placement)
        && (cluster.spec.taints.is_empty()
            || admits(cluster, placement, spec.targets(&cluster.name))
                && !evicts_at_once(&cluster.spec.taints, &placement.cluster_tolerations, now))
}

/// Returns true if the placement tolerates all taints that block a workload. `stays` is true for a current target.
fn admits(cluster: &Cluster, placement: &Placement, stays: bool) -> bool {
    let blocks = |effect: &TaintEffect| match effect {
        TaintEffect::NoExecute => true,
        TaintEffect::NoSchedule | TaintEffect::PreferNoExecute => !stays,
        TaintEffect::PreferNoSchedule | TaintEffect::Other(_) => false,
    };
    let mut blocking = cluster.spec.taints.iter().filter(|taint| blocks(&taint.effect));
    blocking.all(|taint| {
        placement
            .cluster_tolerations
            .iter()
            .any(|toleration| toleration.tolerates(taint))
    })
}

/// Returns true if the workload is leaving the cluster and cannot return to it. A failback does not count: if the
/// home cluster fails again, the workload returns.
fn is_excluded(spec: &BindingSpec, cluster: &str) -> bool {
    let mut tasks = spec
        .graceful_eviction_tasks
        .iter()
        .filter(|task| task.from_cluster == cluster);
    tasks.any(|task| task.reason != REASON_FAILBACK)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Time {
        Time::from_millis(60_000)
    }

    /// Returns three ready clusters with changes by name.
    fn three(change: &Value) -> Vec<Cluster> {
        let cluster = |name: &&str| {
            let mut cluster = json!({
                "name": name, "spec": {"syncMode": "Push"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            });
            if let (Some(changes), Some(object)) = (change[*name].as_object(), cluster.as_object_mut()) {
                object.extend(changes.clone());
            }
            serde_json::from_value(cluster).unwrap()
        };
        ["member1", "member2", "member3"].iter().map(cluster).collect()
    }

    /// Returns the spec of a Deployment with additional fields.
    fn deployment(spec: &Value) -> BindingSpec {
        let mut object =
            json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "replicas": 1});
        if let (Some(object), Some(more)) = (object.as_object_mut(), spec.as_object()) {
            object.extend(more.clone());
        }
        serde_json::from_value(object).unwrap()
    }

    /// Checks all rules with three clusters, of which the workload leaves member1.
    fn check(change: Value, spec: Value, placement: Value, feasible: bool, proposal: bool) {
        let (clusters, spec) = (three(&change), deployment(&spec));
        let read: Placement = serde_json::from_value(placement.clone()).unwrap();
        let found = |check| has_target(check, &spec, &read, "member1", &clusters, now());
        assert_eq!(
            (found(PreCheck::Feasible), found(PreCheck::Proposal)),
            (feasible, proposal),
            "{change} {placement}"
        );
        assert!(found(PreCheck::None));
    }

    fn divided(names: &[&str]) -> Value {
        json!({"clusterAffinity": {"clusterNames": names}, "replicaScheduling": {"replicaSchedulingType": "Divided"}})
    }

    fn duplicated(names: &[&str], fewest: Option<i64>) -> Value {
        let constraints: Vec<_> = fewest
            .iter()
            .map(|n| json!({"spreadByField": "cluster", "minGroups": n}))
            .collect();
        json!({"clusterAffinity": {"clusterNames": names}, "spreadConstraints": constraints})
    }

    fn on(names: &[&str]) -> Value {
        json!({"clusters": names.iter().map(|name| json!({"name": name, "replicas": 1})).collect::<Vec<_>>()})
    }

    /// Karmada issue 5150: a workload restricted to one cluster was evicted when that cluster became unreachable, and
    /// deleted there after it recovered.
    #[test]
    fn karmada_5150_a_workload_with_nowhere_to_go_stays() {
        check(json!({}), on(&["member1"]), divided(&["member1"]), false, false);
        check(
            json!({}),
            on(&["member1"]),
            duplicated(&["member1"], None),
            false,
            false,
        );
    }

    #[test]
    fn a_cluster_that_is_selected_ready_and_tolerated_is_a_target() {
        let all = ["member1", "member2", "member3"];
        let tainted = json!({"spec": {"syncMode": "Push", "taints": [{"key": "k", "effect": "NoSchedule"}]}});
        let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        check(
            json!({}),
            on(&["member1"]),
            divided(&["member1", "member2"]),
            true,
            true,
        );
        check(
            json!({"member2": lost}),
            on(&["member1"]),
            divided(&["member1", "member2"]),
            false,
            true,
        );
        check(
            json!({"member2": tainted}),
            on(&["member1"]),
            divided(&["member1", "member2"]),
            false,
            true,
        );
        // No new workloads are scheduled there, but current replicas stay and can grow.
        check(
            json!({"member2": tainted}),
            on(&["member1", "member2"]),
            divided(&["member1", "member2"]),
            true,
            false,
        );
        check(
            json!({"member2": lost, "member3": tainted}),
            on(&["member1"]),
            divided(&all),
            false,
            true,
        );
        check(json!({}), on(&["member1"]), json!({}), true, true);
    }

    #[test]
    fn a_cluster_whose_taint_would_evict_at_once_is_no_target() {
        // The taint is 40 s old.
        let taint = json!({"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:20Z"});
        let tainted = || json!({"member2": {"spec": {"syncMode": "Push", "taints": [taint]}}});
        let tolerant = |seconds: Value| {
            let mut placement = divided(&["member1", "member2"]);
            placement["clusterTolerations"] = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": seconds}]);
            placement
        };
        for targets in [on(&["member1"]), on(&["member1", "member2"])] {
            let proposal = targets["clusters"].as_array().unwrap().len() == 1;
            check(tainted(), targets.clone(), tolerant(json!(40)), false, proposal);
            check(tainted(), targets.clone(), tolerant(json!(41)), true, proposal);
            check(tainted(), targets, tolerant(Value::Null), true, proposal);
        }
    }

    #[test]
    fn a_spread_constraint_asks_for_as_many_targets() {
        let all = ["member1", "member2", "member3"];
        check(
            json!({}),
            on(&["member1", "member2"]),
            duplicated(&all, Some(2)),
            true,
            true,
        );
        check(
            json!({}),
            on(&["member1", "member2"]),
            duplicated(&["member1", "member2"], Some(2)),
            false,
            false,
        );
        check(
            json!({}),
            on(&["member1", "member2"]),
            duplicated(&["member1", "member2"], None),
            true,
            true,
        );
        check(
            json!({}),
            on(&["member1", "member2"]),
            duplicated(&["member1", "member2"], Some(0)),
            true,
            true,
        );
    }

    #[test]
    fn a_spread_over_something_else_asks_for_one_target() {
        for constraint in [
            json!({"spreadByField": "region", "minGroups": 2}),
            json!({"spreadByLabel": "rack", "minGroups": 2}),
        ] {
            let mut placement = duplicated(&["member1", "member2"], None);
            placement["spreadConstraints"] = json!([constraint]);
            check(json!({}), on(&["member1"]), placement, true, true);
        }
    }

    #[test]
    fn a_cluster_that_the_binding_is_leaving_is_no_target() {
        let mut spec = on(&["member1"]);
        spec["gracefulEvictionTasks"] = json!([{"fromCluster": "member2", "reason": "r", "producer": "p"}]);
        check(json!({}), spec.clone(), divided(&["member1", "member2"]), false, true);
        spec["gracefulEvictionTasks"][0]["reason"] = json!("Failback");
        check(json!({}), spec, divided(&["member1", "member2"]), true, true);
    }
    #[test]
    fn a_duplicated_workload_returns_unless_another_cluster_or_a_taint_is_in_the_way() {
        let check = |change: Value, spec: Value, placement: Value, expected: bool| {
            let read: Placement = serde_json::from_value(placement.clone()).unwrap();
            let found = would_return(&deployment(&spec), &read, "member1", &three(&change), now());
            assert_eq!(found, expected, "{change} {spec} {placement}");
        };
        let (two, pair) = (["member1", "member2"], || on(&["member1", "member2"]));
        check(json!({}), pair(), duplicated(&two, None), true);
        check(json!({}), pair(), divided(&two), false);
        // A third cluster can take it.
        check(json!({}), pair(), json!({}), false);
        let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        check(json!({"member3": lost}), pair(), json!({}), true);
        // Nothing else runs it, so the old copy is kept.
        check(json!({}), on(&["member1"]), duplicated(&["member1"], None), false);
        let tainted = |effect: &str| json!({"spec": {"syncMode": "Push", "taints": [{"key": "k", "effect": effect}]}});
        for effect in ["NoExecute", "NoSchedule", "PreferNoExecute"] {
            check(
                json!({"member1": tainted(effect)}),
                pair(),
                duplicated(&two, None),
                false,
            );
            let mut tolerant = duplicated(&two, None);
            tolerant["clusterTolerations"] = json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 60}]);
            check(json!({"member1": tainted(effect)}), pair(), tolerant, true);
        }
        // The scheduler stays in the first group while one of its clusters fits.
        let group = |name: &str, names: &[&str]| json!({"affinityName": name, "clusterNames": names});
        let apart = json!({"clusterAffinities": [group("a", &two), group("b", &["member3"])]});
        check(json!({}), pair(), apart, true);
        let joint = json!({"clusterAffinities": [group("a", &two), group("b", &["member2", "member3"])]});
        check(json!({}), pair(), joint, false);
        // A ConfigMap runs on every selected cluster too.
        let mut config = pair();
        config["replicas"] = json!(0);
        check(json!({}), config, divided(&two), true);
    }
}
