//! Whether a binding leaves a cluster now: everything that is asked between "its slot is open" and the write.

use std::borrow::Borrow;

use super::pause::{EvictionPause, PauseScope, paused};
use super::target::{PreCheck, has_target};
use crate::combine::Because;
use crate::decide::evict::{self, EvictError, EvictOptions, EvictPlan, Evictable, NoAppliedPlacement};
use crate::model::{BindingSpec, Cluster, GracefulEvictionTask};
use crate::time::Time;

/// What the decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct JudgeSnapshot<'a, C> {
    /// The binding as it is now, not as it was when it was put into the queue.
    pub binding: Evictable<'a>,
    /// The cluster that it is to leave; absent when it is gone.
    pub cluster: Option<&'a Cluster>,
    /// Every cluster there is.
    pub clusters: &'a [C],
    /// Which taints evict, and how.
    pub options: EvictOptions,
    /// What must be true before.
    pub pre_check: PreCheck,
    /// Pauses of evictions.
    pub pauses: &'a [EvictionPause],
    /// The time to reason with.
    pub now: Time,
}

/// What is to be done about a binding whose slot is open.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Nothing, for good: the binding or the taint is gone, or the taint is tolerated now.
    Unneeded,
    /// Nothing yet: it is tolerated for a time.
    Later {
        /// What is left of it, in milliseconds.
        remaining_ms: i64,
    },
    /// It should leave and may not.
    Wait {
        /// Why.
        because: Because,
        /// When to look again, in milliseconds; absent leaves it to the caller.
        again_after_ms: Option<i64>,
    },
    /// It leaves.
    Evict {
        /// The complete new spec.
        spec: Box<BindingSpec>,
        /// The new task.
        task: Box<GracefulEvictionTask>,
        /// Why.
        because: Because,
    },
}

/// Decides whether a binding leaves a cluster now. It does if a taint says so, no person paused it, and there is
/// somewhere to go.
///
/// # Errors
///
/// The placement that the binding was last scheduled with cannot be read.
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
