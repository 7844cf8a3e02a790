//! The automatic `NoExecute` taints of Karmada before 1.14.

use bulkhead_core::call::{Call, CallKind, ClusterTaintCall, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::model::{ConditionStatus, TaintEffect};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::not_asked;
use crate::ready_condition::follow;

/// Evicts from a cluster that has not been ready for longer than a timeout. Karmada removed this rule (commit
/// 2496cf3c0) in favour of `ClusterTaintPolicy`; a flag enables it for users who depend on it.
///
/// The duration of the status is computed from the condition's `lastTransitionTime`. A condition without one causes
/// no eviction.
pub struct FailoverEviction {
    id: PolicyId,
    capabilities: Vec<Capability>,
    timeout_s: u32,
}

impl FailoverEviction {
    /// Creates the policy with a timeout in seconds.
    pub fn new(timeout_s: u32) -> Self {
        let capabilities = vec![Capability::any(CallKind::ClusterTaint)];
        Self {
            id: PolicyId::builtin("FailoverEviction"),
            capabilities,
            timeout_s,
        }
    }

    fn changes(&self, call: &ClusterTaintCall<'_>) -> Vec<TaintChange> {
        let Some(ready) = call.cluster.ready() else {
            return Vec::new();
        };
        let effect = &TaintEffect::NoExecute;
        if ready.status == ConditionStatus::True {
            return follow(
                ready.status,
                effect,
                &Reason::new("ClusterReady", "the cluster is ready"),
            );
        }
        let overdue = |since: bulkhead_core::time::Time| call.now > since.plus_seconds(i64::from(self.timeout_s));
        if !ready.last_transition_time.is_some_and(overdue) {
            return Vec::new();
        }
        let message = format!(
            "Ready has been {} for more than {} s",
            ready.status.as_str(),
            self.timeout_s
        );
        follow(ready.status, effect, &Reason::new("EvictionTimeout", message))
    }
}

impl Policy for FailoverEviction {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::ClusterTaint(call) => Ok(Reply::ClusterTaint(TaintVerdict {
                changes: self.changes(call),
            })),
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{Cluster, Condition};
    use bulkhead_core::time::Time;

    use super::*;
    use crate::ready_condition::in_short;

    fn check(status: ConditionStatus, since_s: Option<i64>, now_s: i64, expected: &[&str]) {
        let mut cluster = Cluster::default();
        let mut ready = Condition::new("Ready", status, "R", "m", Time::from_millis(0));
        ready.last_transition_time = since_s.map(|seconds| Time::from_millis(seconds * 1000));
        cluster.status.conditions.push(ready);
        let call = ClusterTaintCall {
            cluster: &cluster,
            now: Time::from_millis(now_s * 1000),
        };
        let actual = in_short(FailoverEviction::new(300).call(&Call::ClusterTaint(call)));
        assert_eq!(actual, expected, "{status:?} since {since_s:?} at {now_s}");
    }

    #[test]
    fn a_cluster_is_tainted_after_the_timeout_only() {
        let (down, gone, up) = (ConditionStatus::False, ConditionStatus::Unknown, ConditionStatus::True);
        check(down, Some(0), 300, &[]);
        check(down, Some(0), 301, &["+not-ready:NoExecute", "-unreachable:NoExecute"]);
        check(gone, Some(0), 300, &[]);
        check(gone, Some(0), 301, &["+unreachable:NoExecute", "-not-ready:NoExecute"]);
        check(down, None, 9999, &[]);
        check(up, Some(0), 1, &["-not-ready:NoExecute", "-unreachable:NoExecute"]);
    }

    #[test]
    fn a_cluster_without_ready_condition_is_left_alone() {
        let cluster = Cluster::default();
        let call = ClusterTaintCall {
            cluster: &cluster,
            now: Time::from_millis(0),
        };
        assert!(in_short(FailoverEviction::new(0).call(&Call::ClusterTaint(call))).is_empty());
    }
}
