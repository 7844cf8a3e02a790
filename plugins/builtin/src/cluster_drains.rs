//! Taint of clusters that are being drained.

use std::collections::BTreeMap;

use bulkhead_core::call::{Call, CallKind, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::model::{Taint, TaintEffect};
use bulkhead_core::names::keys::DRAIN_TAINT;
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};

use crate::not_asked;

/// Policy of all `ClusterDrain` objects: adds the taint to the clusters that they name and removes it from all
/// others. The key belongs to this policy, so it removes the taint even if something else added it.
pub struct ClusterDrains {
    id: PolicyId,
    capabilities: Vec<Capability>,
    /// Name of the drain by cluster.
    drains: BTreeMap<String, String>,
}

impl ClusterDrains {
    /// Creates the policy from drains: name of the object and of its cluster. If several drains name a cluster, the
    /// first by name is the reason.
    pub fn new(mut drains: Vec<(String, String)>) -> Self {
        drains.sort();
        let drains = drains
            .into_iter()
            .rev()
            .map(|(name, cluster)| (cluster, name))
            .collect();
        let capabilities = vec![Capability::any(CallKind::ClusterTaint)];
        Self {
            id: PolicyId::builtin("ClusterDrains"),
            capabilities,
            drains,
        }
    }

    fn change(&self, cluster: &str) -> TaintChange {
        let (key, effect) = (DRAIN_TAINT.to_owned(), TaintEffect::NoExecute);
        if let Some(name) = self.drains.get(cluster) {
            let taint = Taint {
                key,
                value: String::new(),
                effect,
                time_added: None,
            };
            TaintChange::Add {
                taint,
                reason: Reason::new("ClusterDrain", format!("ClusterDrain {name}")),
            }
        } else {
            let reason = Reason::new("NoClusterDrain", "no ClusterDrain names the cluster");
            TaintChange::Remove { key, effect, reason }
        }
    }
}

impl Policy for ClusterDrains {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::ClusterTaint(call) => Ok(Reply::ClusterTaint(TaintVerdict {
                changes: vec![self.change(&call.cluster.name)],
            })),
            _ => Err(not_asked(&self.id, call)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::ClusterTaintCall;
    use bulkhead_core::model::Cluster;
    use bulkhead_core::time::Time;

    use super::*;
    use crate::ready_condition::in_short;

    #[test]
    fn only_a_cluster_that_a_drain_names_is_tainted() {
        let drains = ClusterDrains::new(vec![("b".into(), "member1".into()), ("a".into(), "member1".into())]);
        let check = |name: &str, expected: &str| {
            let cluster = Cluster {
                name: name.to_owned(),
                ..Cluster::default()
            };
            let call = Call::ClusterTaint(ClusterTaintCall {
                cluster: &cluster,
                now: Time::from_millis(0),
            });
            assert_eq!(in_short(drains.call(&call)), [expected]);
        };
        check("member1", "+bulkhead.dev/drain:NoExecute");
        check("member2", "-bulkhead.dev/drain:NoExecute");
    }
}
