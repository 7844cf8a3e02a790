//! Eviction verdict for one binding: all checks between an open slot and the write.

use std::borrow::Borrow;

use super::pause::{EvictionPause, PauseScope, paused};
use super::target::{PreCheck, has_target};
use crate::combine::Because;
use crate::decide::evict::{self, EvictError, EvictOptions, EvictPlan, Evictable, NoAppliedPlacement};
use crate::model::{BindingSpec, Cluster, GracefulEvictionTask};
use crate::time::Time;

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
        because: Because,
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
        because: Because,
    },
}

/// Decides on the eviction of a binding from a cluster now. It is evicted if a taint requires it, no pause applies,
/// and a target cluster exists.
///
/// # Errors
///
/// Returns an error if the placement of the last scheduling cannot be read.
pub fn judge<C: Borrow<Cluster>>(snapshot: JudgeSnapshot<'_, C>) -> Result<Judgement, NoAppliedPlacement> {
    let JudgeSnapshot { binding, cluster, clusters, options, pre_check, pauses, now } = snapshot;
    let (spec, task, because) = match evict::decide(binding, cluster, options, now) {
        Ok(EvictPlan::Keep) => return Ok(Judgement::Unneeded),
        Ok(EvictPlan::KeepFor { remaining_ms }) => return Ok(Judgement::Later { remaining_ms }),
        Ok(EvictPlan::Evict { spec, task, because }) => (spec, task, because),
        Err(EvictError::NoAppliedPlacement(error)) => return Err(error),
        Err(EvictError::Preserve { source, .. }) => {
            let because = Because::rule("StateNotPreserved", source.to_string());
            return Ok(Judgement::Wait { because, again_after_ms: None });
        }
    };
    let source = cluster.map_or("", |cluster| cluster.name.as_str());
    let scope = PauseScope { cluster: source, workload: &binding.spec.resource };
    if let Some(paused) = paused(pauses, scope, now) {
        let again_after_ms = paused.until.map(|until| until.millis_since(now));
        return Ok(Judgement::Wait { because: paused.because(), again_after_ms });
    }
    let resource = || NoAppliedPlacement { resource: binding.spec.resource.to_string() };
    let placement = evict::placement_in(binding.annotations).ok_or_else(resource)?;
    if !has_target(pre_check, binding.spec, &placement, source, clusters) {
        let message = "no other cluster could run it, so leaving would only take it away";
        return Ok(Judgement::Wait { because: Because::rule("NoTargetCluster", message), again_after_ms: None });
    }
    Ok(Judgement::Evict { spec, task, because })
}
