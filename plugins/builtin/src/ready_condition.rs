//! `NoSchedule` taints that follow a cluster's Ready condition.

use bulkhead_core::call::{Call, CallKind, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::model::{Cluster, ConditionStatus, Taint, TaintEffect};
use bulkhead_core::names::keys::{NOT_READY_TAINT, UNREACHABLE_TAINT};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::not_asked;

/// Prevents scheduling to a cluster that is not ready. (Karmada:
/// `pkg/controllers/cluster/cluster_controller.go:taintClusterByCondition`.)
pub struct ReadyCondition {
    id: PolicyId,
    capabilities: Vec<Capability>,
}

impl Default for ReadyCondition {
    fn default() -> Self {
        Self {
            id: PolicyId::builtin("ReadyCondition"),
            capabilities: vec![Capability::any(CallKind::ClusterTaint)],
        }
    }
}

impl Policy for ReadyCondition {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::ClusterTaint(call) => Ok(Reply::ClusterTaint(TaintVerdict {
                changes: changes(call.cluster),
            })),
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

fn changes(cluster: &Cluster) -> Vec<TaintChange> {
    let effect = &TaintEffect::NoSchedule;
    let Some(ready) = cluster.ready() else {
        return vec![add(
            NOT_READY_TAINT,
            effect,
            &Reason::new("ReadyMissing", "the cluster has no Ready condition"),
        )];
    };
    let reason = Reason::new(format!("Ready{}", ready.status.as_str()), ready.message.clone());
    follow(ready.status, effect, &reason)
}

/// Returns the two taint changes for a Ready status.
pub(crate) fn follow(status: ConditionStatus, effect: &TaintEffect, reason: &Reason) -> Vec<TaintChange> {
    match status {
        ConditionStatus::False => {
            vec![
                add(NOT_READY_TAINT, effect, reason),
                remove(UNREACHABLE_TAINT, effect, reason),
            ]
        }
        ConditionStatus::Unknown => {
            vec![
                add(UNREACHABLE_TAINT, effect, reason),
                remove(NOT_READY_TAINT, effect, reason),
            ]
        }
        ConditionStatus::True => {
            vec![
                remove(NOT_READY_TAINT, effect, reason),
                remove(UNREACHABLE_TAINT, effect, reason),
            ]
        }
    }
}

fn add(key: &str, effect: &TaintEffect, reason: &Reason) -> TaintChange {
    let taint = Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: effect.clone(),
        time_added: None,
    };
    TaintChange::Add {
        taint,
        reason: reason.clone(),
    }
}

fn remove(key: &str, effect: &TaintEffect, reason: &Reason) -> TaintChange {
    TaintChange::Remove {
        key: key.to_owned(),
        effect: effect.clone(),
        reason: reason.clone(),
    }
}

/// Formats changes for tests: `+key:effect` and `-key:effect`.
#[cfg(test)]
pub(crate) fn in_short(reply: Result<Reply, Fault>) -> Vec<String> {
    let Ok(Reply::ClusterTaint(verdict)) = reply else {
        panic!("{reply:?}")
    };
    let short = |key: &str, effect: &TaintEffect| {
        format!(
            "{}:{}",
            key.strip_prefix("cluster.karmada.io/").unwrap_or(key),
            effect.as_str()
        )
    };
    let changes = verdict.changes.iter().map(|change| match change {
        TaintChange::Add { taint, .. } => format!("+{}", short(&taint.key, &taint.effect)),
        TaintChange::Remove { key, effect, .. } => format!("-{}", short(key, effect)),
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::ClusterTaintCall;
    use bulkhead_core::model::Condition;
    use bulkhead_core::time::Time;

    use super::*;

    fn check(ready: Option<ConditionStatus>, expected: &[&str]) {
        let now = Time::from_millis(0);
        let mut cluster = Cluster::default();
        cluster
            .status
            .conditions
            .extend(ready.map(|status| Condition::new("Ready", status, "R", "m", now)));
        let call = Call::ClusterTaint(ClusterTaintCall { cluster: &cluster, now });
        assert_eq!(in_short(ReadyCondition::default().call(&call)), expected, "{ready:?}");
    }

    #[test]
    fn taints_follow_the_ready_condition() {
        check(None, &["+not-ready:NoSchedule"]);
        check(
            Some(ConditionStatus::True),
            &["-not-ready:NoSchedule", "-unreachable:NoSchedule"],
        );
        check(
            Some(ConditionStatus::False),
            &["+not-ready:NoSchedule", "-unreachable:NoSchedule"],
        );
        check(
            Some(ConditionStatus::Unknown),
            &["+unreachable:NoSchedule", "-not-ready:NoSchedule"],
        );
    }
}
