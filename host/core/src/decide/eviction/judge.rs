//! Eviction verdict for one binding: all checks between an open slot and the write.

use std::borrow::Borrow;

use super::pause::{EvictionPause, PauseScope, paused};
use super::target::{PreCheck, has_target, would_return};
use crate::combine::Attribution;
use crate::decide::eviction::taint_based::{self, EvictError, EvictOptions, EvictPlan, Evictable, NoAppliedPlacement};
use crate::decide::reasons::REASON_DRAINED;
use crate::model::{BindingSpec, Cluster, GracefulEvictionTask};
use crate::time::Time;

/// Milliseconds for which a cluster that became ready keeps its workloads regardless of its taints. The taints of the
/// failure are removed in that time.
const SETTLE_MS: i64 = 5_000;

/// Inputs of the decision.
#[derive(Clone, Copy, Debug)]
pub struct JudgeSnapshot<'a, C> {
    /// Current binding, which may have changed since it was queued.
    pub binding: Evictable<'a>,
    /// Cluster to leave; absent if it no longer exists.
    pub cluster: Option<&'a Cluster>,
    /// All known clusters.
    pub clusters: &'a [C],
    /// Options that select the taints that evict.
    pub options: EvictOptions,
    /// Check that must succeed before the eviction.
    pub pre_check: PreCheck,
    /// Eviction pauses.
    pub pauses: &'a [EvictionPause],
    /// Evaluation time.
    pub now: Time,
}

/// Verdict on a binding whose slot is open.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// No eviction is needed: the binding or the taint is gone, or the taint is tolerated now.
    Unneeded,
    /// No eviction yet: the taint is tolerated for a limited time.
    Later {
        /// Remaining toleration, in milliseconds.
        remaining_ms: i64,
    },
    /// The binding should be evicted but has to wait.
    Wait {
        /// Reason for waiting.
        attribution: Attribution,
        /// Delay until the next check, in milliseconds; if absent, the caller decides.
        again_after_ms: Option<i64>,
    },
    /// The binding is evicted.
    Evict {
        /// Complete new spec.
        spec: Box<BindingSpec>,
        /// New task.
        task: Box<GracefulEvictionTask>,
        /// Reason for the eviction.
        attribution: Attribution,
    },
}

/// Decides on the eviction of a binding from a cluster now. It is evicted if a taint requires it, no pause applies,
/// a target cluster exists, and it would not return to the cluster at once.
///
/// # Errors
///
/// Returns an error if the placement of the last scheduling cannot be read.
pub fn judge<C: Borrow<Cluster>>(snapshot: JudgeSnapshot<'_, C>) -> Result<Judgement, NoAppliedPlacement> {
    let JudgeSnapshot {
        binding,
        cluster,
        clusters,
        options,
        pre_check,
        pauses,
        now,
    } = snapshot;
    let (spec, task, attribution) = match taint_based::decide(binding, cluster, options, now) {
        Ok(EvictPlan::Keep) => return Ok(Judgement::Unneeded),
        Ok(EvictPlan::KeepFor { remaining_ms }) => return Ok(Judgement::Later { remaining_ms }),
        Ok(EvictPlan::Evict {
            spec,
            task,
            attribution,
        }) => (spec, task, attribution),
        Err(EvictError::NoAppliedPlacement(error)) => return Err(error),
        Err(EvictError::Preserve { source, .. }) => {
            let attribution = Attribution::rule("StateNotPreserved", source.to_string());
            return Ok(Judgement::Wait {
                attribution,
                again_after_ms: None,
            });
        }
    };
    if let Some(remaining_ms) = cluster.and_then(|cluster| settles_for(cluster, now))
        && task.reason != REASON_DRAINED
    {
        return Ok(Judgement::Later { remaining_ms });
    }
    let source = cluster.map_or("", |cluster| cluster.name.as_str());
    let scope = PauseScope {
        cluster: source,
        workload: &binding.spec.resource,
    };
    if let Some(paused) = paused(pauses, scope, now) {
        let again_after_ms = paused.until.map(|until| until.millis_since(now));
        return Ok(Judgement::Wait {
            attribution: paused.attribution(),
            again_after_ms,
        });
    }
    let resource = || NoAppliedPlacement {
        resource: binding.spec.resource.to_string(),
    };
    let placement = taint_based::placement_in(binding.annotations).ok_or_else(resource)?;
    if !has_target(pre_check, binding.spec, &placement, source, clusters, now) {
        let message = "no other cluster can run the workload, so an eviction would only remove it";
        return Ok(Judgement::Wait {
            attribution: Attribution::rule("NoTargetCluster", message),
            again_after_ms: None,
        });
    }
    if would_return(binding.spec, &placement, source, clusters, now) {
        return Ok(Judgement::Wait {
            attribution: returns(),
            again_after_ms: None,
        });
    }
    Ok(Judgement::Evict {
        spec,
        task,
        attribution,
    })
}

/// Returns the reason to hold an eviction that would be undone (see [`would_return`]).
pub(crate) fn returns() -> Attribution {
    let message = "the scheduler would select this cluster again when the eviction ends, because nothing keeps the \
                   workload away and no other cluster is new to it";
    Attribution::rule("WouldReturn", message)
}

/// Milliseconds until the taints of a cluster that became ready a moment ago count.
fn settles_for(cluster: &Cluster, now: Time) -> Option<i64> {
    let ready_since = cluster.ready().filter(|_| cluster.is_ready())?.last_transition_time?;
    let age_ms = now.millis_since(ready_since);
    (0..SETTLE_MS).contains(&age_ms).then_some(SETTLE_MS - age_ms)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Binding;
    use crate::names::keys;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    /// Judgement at 60 s of a workload on `m1`, which has a taint and was ready from a moment on.
    fn judged(taint: &str, ready: &str, since: i64) -> Judgement {
        let cluster = |name: &str, taints: Value| {
            json!({
                "name": name, "spec": {"syncMode": "Push", "taints": taints},
                "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at(since)}]},
            })
        };
        let taints = json!([{"key": taint, "effect": "NoExecute"}]);
        let mut clusters = json!([cluster("m1", taints), cluster("m2", json!([]))]);
        clusters[1]["status"]["conditions"][0]["status"] = json!("True");
        let clusters: Vec<Cluster> = serde_json::from_value(clusters).unwrap();
        let binding: Binding = serde_json::from_value(json!({
            "namespace": "default", "name": "b", "annotations": {keys::APPLIED_PLACEMENT: "{}"},
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "clusters": [{"name": "m1", "replicas": 1}],
            },
        }))
        .unwrap();
        let options = EvictOptions {
            no_execute: true,
            ..EvictOptions::default()
        };
        judge(JudgeSnapshot {
            binding: Evictable::from(&binding),
            cluster: Some(&clusters[0]),
            clusters: &clusters,
            options,
            pre_check: PreCheck::Feasible,
            pauses: &[],
            now: at(60),
        })
        .unwrap()
    }

    #[test]
    fn a_cluster_that_has_just_become_ready_keeps_its_workloads_until_its_taints_settle() {
        let evicts = |judgement: Judgement| matches!(judgement, Judgement::Evict { .. });
        let lost = "cluster.karmada.io/not-ready";
        assert!(evicts(judged(lost, "False", 60)), "a failure does not settle");
        assert_eq!(judged(lost, "True", 60), Judgement::Later { remaining_ms: 5_000 });
        assert_eq!(judged(lost, "True", 56), Judgement::Later { remaining_ms: 1_000 });
        assert!(evicts(judged(lost, "True", 55)));
        assert!(
            evicts(judged(lost, "True", 1_000)),
            "a time in the future delays nothing"
        );
        assert!(
            evicts(judged(keys::DRAIN_TAINT, "True", 60)),
            "a drain concerns ready clusters"
        );
    }
}
