//! Whether a binding must leave a tainted cluster, and the edit that makes it leave.

use crate::combine::Because;
use crate::model::{
    Binding, BindingSpec, Cluster, GracefulEvictionTask, Placement, PurgeMode, Taint, TaintEffect, Toleration,
};
use crate::names::keys;
use crate::time::Time;

/// Reason of tasks made because of a taint.
pub const REASON_TAINT_UNTOLERATED: &str = "TaintUntolerated";
/// Producer of tasks made because of a taint.
pub const PRODUCER_TAINT_MANAGER: &str = "TaintManager";

/// How the `NoExecute` taints of a cluster are tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// There is no `NoExecute` taint.
    Untainted,
    /// All are tolerated, for ever.
    Forever,
    /// All are tolerated for that many milliseconds more; 0 when the time is up.
    For {
        /// What is left.
        remaining_ms: i64,
    },
    /// This one is not tolerated at all.
    Not(Taint),
}

/// Karmada's toleration arithmetic (`pkg/util/helper/taint.go`): for each taint the *first* matching toleration
/// is used; the earliest expiry over all pairs of a used toleration and a taint it matches counts; a taint
/// without `timeAdded` never expires anything.
pub fn tolerance(taints: &[Taint], tolerations: &[Toleration], now: Time) -> Tolerance {
    let taints: Vec<_> = taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).collect();
    if taints.is_empty() {
        return Tolerance::Untainted;
    }
    let mut used = Vec::new();
    for taint in &taints {
        match tolerations.iter().find(|toleration| toleration.tolerates(taint)) {
            Some(toleration) => used.push(toleration),
            None => return Tolerance::Not((*taint).clone()),
        }
    }
    let triggers = used.iter().flat_map(|toleration| {
        let seconds = toleration.toleration_seconds;
        taints
            .iter()
            .filter(|taint| toleration.tolerates(taint))
            .filter_map(move |taint| Some(taint.time_added?.plus_seconds(seconds?)))
    });
    triggers
        .min()
        .map_or(Tolerance::Forever, |trigger| Tolerance::For { remaining_ms: trigger.millis_since(now).max(0) })
}

/// What to do about one binding on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictPlan {
    /// Nothing, now and later, unless something changes.
    Keep,
    /// Nothing yet; decide again after that many milliseconds.
    KeepFor {
        /// What is left of the toleration.
        remaining_ms: i64,
    },
    /// Replace the binding's spec.
    Evict {
        /// The complete new spec.
        spec: Box<BindingSpec>,
        /// The new task.
        task: Box<GracefulEvictionTask>,
        /// Why.
        because: Because,
    },
}

/// The placement annotation cannot be read, so nobody knows what the binding tolerates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("binding {binding}: annotation {} is missing or not a placement", keys::APPLIED_PLACEMENT)]
pub struct NoAppliedPlacement {
    /// `namespace/name` of the binding.
    pub binding: String,
}

/// The placement that a binding was last scheduled with.
pub fn applied_placement(binding: &Binding) -> Option<Placement> {
    Placement::from_json(binding.annotations.get(keys::APPLIED_PLACEMENT)?).ok()
}

/// Decides about one binding on one cluster (Karmada: `taint_manager.go:syncBindingEviction`). The tolerations
/// are those that the scheduler last applied, not those of the live placement. `cluster` is absent when it is gone.
pub fn decide(
    binding: &Binding,
    cluster: Option<&Cluster>,
    default_purge_mode: PurgeMode,
    now: Time,
) -> Result<EvictPlan, NoAppliedPlacement> {
    let Some(cluster) = cluster else { return Ok(EvictPlan::Keep) };
    if binding.deletion_timestamp.is_some() || !binding.spec.targets(&cluster.name) {
        return Ok(EvictPlan::Keep);
    }
    let taints = &cluster.spec.taints;
    if tolerance(taints, &[], now) == Tolerance::Untainted {
        return Ok(EvictPlan::Keep);
    }
    let placement = applied_placement(binding).ok_or_else(|| NoAppliedPlacement { binding: binding.key() })?;
    let because = match tolerance(taints, &placement.cluster_tolerations, now) {
        Tolerance::Untainted | Tolerance::Forever => return Ok(EvictPlan::Keep),
        Tolerance::For { remaining_ms } if remaining_ms > 0 => return Ok(EvictPlan::KeepFor { remaining_ms }),
        Tolerance::For { .. } => Because::rule(REASON_TAINT_UNTOLERATED, "the toleration of the taint has run out"),
        Tolerance::Not(taint) => Because::rule(REASON_TAINT_UNTOLERATED, format!("the taint {taint} is not tolerated")),
    };
    let failover = binding.spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
    let mut spec = binding.spec.clone();
    let task = GracefulEvictionTask {
        purge_mode: Some(failover.map_or(default_purge_mode, |failover| failover.purge_mode)),
        reason: REASON_TAINT_UNTOLERATED.to_owned(),
        producer: PRODUCER_TAINT_MANAGER.to_owned(),
        ..GracefulEvictionTask::default()
    };
    let task = graceful_evict(&mut spec, &cluster.name, task);
    Ok(EvictPlan::Evict { spec: Box::new(spec), task: Box::new(task), because })
}

/// Moves a cluster from the scheduling result to the eviction tasks: the one edit that failover consists of
/// (Karmada: `binding_types_helper.go:GracefulEvictCluster`). The entry goes even if a task for the cluster is
/// there already; then no second one is added. Returns the task that is in force.
pub fn graceful_evict(spec: &mut BindingSpec, cluster: &str, mut task: GracefulEvictionTask) -> GracefulEvictionTask {
    let position = spec.clusters.iter().position(|target| target.name == cluster);
    let evicted = position.map(|position| spec.clusters.remove(position));
    if let Some(existing) = spec.graceful_eviction_tasks.iter().find(|task| task.from_cluster == cluster) {
        return existing.clone();
    }
    cluster.clone_into(&mut task.from_cluster);
    let Some(evicted) = evicted else { return task };
    task.replicas = (evicted.replicas > 0).then_some(evicted.replicas);
    spec.graceful_eviction_tasks.push(task.clone());
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TargetCluster;

    fn taint(key: &str, added_s: Option<i64>) -> Taint {
        Taint {
            key: key.to_owned(),
            value: String::new(),
            effect: TaintEffect::NoExecute,
            time_added: added_s.map(|seconds| Time::from_millis(seconds * 1000)),
        }
    }

    fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            toleration_seconds: seconds,
            ..Toleration::default()
        }
    }

    #[test]
    fn tolerations_follow_karmada() {
        let now = Time::from_millis(100_000);
        let check = |taints: &[Taint], tolerations: &[Toleration], expected: Tolerance| {
            assert_eq!(tolerance(taints, tolerations, now), expected, "{taints:?} {tolerations:?}");
        };
        let for_ms = |remaining_ms| Tolerance::For { remaining_ms };
        check(&[], &[], Tolerance::Untainted);
        check(&[taint("a", Some(90))], &[], Tolerance::Not(taint("a", Some(90))));
        check(&[taint("a", Some(90))], &[tolerates("a", None)], Tolerance::Forever);
        check(&[taint("a", Some(90))], &[tolerates("a", Some(30))], for_ms(20_000));
        check(&[taint("a", Some(90))], &[tolerates("a", Some(5))], for_ms(0));
        // The first matching toleration is the one that is used.
        check(&[taint("a", Some(90))], &[tolerates("", None), tolerates("a", Some(5))], Tolerance::Forever);
        // A used toleration counts for every taint it matches.
        check(
            &[taint("a", Some(90)), taint("b", Some(80))],
            &[tolerates("a", None), tolerates("", Some(30))],
            for_ms(10_000),
        );
        check(&[taint("a", None)], &[tolerates("a", Some(5))], Tolerance::Forever);
    }

    #[test]
    fn the_entry_goes_even_if_a_task_is_there() {
        let mut spec = BindingSpec {
            clusters: vec![TargetCluster::new("member1", 1), TargetCluster::new("member2", 2)],
            ..BindingSpec::default()
        };
        graceful_evict(&mut spec, "member2", GracefulEvictionTask::default());
        assert_eq!(spec.clusters, [TargetCluster::new("member1", 1)]);
        assert_eq!(spec.graceful_eviction_tasks[0].replicas, Some(2));
        spec.clusters.push(TargetCluster::new("member2", 3));
        graceful_evict(&mut spec, "member2", GracefulEvictionTask::default());
        assert_eq!((spec.clusters.len(), spec.graceful_eviction_tasks.len()), (1, 1));
        graceful_evict(&mut spec, "member9", GracefulEvictionTask::default());
        assert_eq!(spec.graceful_eviction_tasks.len(), 1);
    }
}
