//! Which taints a cluster should carry, from the cluster-taint policies.

use crate::call::{ClusterTaintCall, TaintChange};
use crate::combine::{self, Because, Remarks};
use crate::model::{Cluster, Taint};
use crate::policy::PolicySet;
use crate::time::Time;

/// What to change about a cluster's taints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintPlan {
    /// The complete new list; absent when nothing changes.
    pub taints: Option<Vec<Taint>>,
    /// Taints that are new, each with who asked for it.
    pub added: Vec<(Taint, Because)>,
    /// Taints that go, each with who asked for it.
    pub removed: Vec<(Taint, Because)>,
    /// Policies that changed nothing because of a fault.
    pub remarks: Remarks,
}

/// Decides the taints of one cluster. New taints come at the end and carry `now`; taints that nobody mentions,
/// values of existing taints and their `timeAdded` stay as they are.
pub fn decide(cluster: &Cluster, policies: &PolicySet, now: Time) -> TaintPlan {
    let outcome = combine::cluster_taint(policies, ClusterTaintCall { cluster, now });
    let before = &cluster.spec.taints;
    let mut taints = before.clone();
    let mut plan = TaintPlan { remarks: outcome.remarks, ..TaintPlan::default() };
    for (policy, change) in outcome.changes {
        match change {
            TaintChange::Add { mut taint, reason } => {
                if !taints.iter().any(|there| there.same_identity(&taint)) {
                    taint.time_added = Some(now.truncated());
                    plan.added.push((taint.clone(), Because::policy(&policy, reason)));
                    taints.push(taint);
                }
            }
            TaintChange::Remove { key, effect, reason } => {
                let there = taints.iter().position(|taint| taint.key == key && taint.effect == effect);
                if let Some(position) = there {
                    plan.removed.push((taints.remove(position), Because::policy(&policy, reason)));
                }
            }
        }
    }
    // What was added and removed in one pass never was.
    plan.added.retain(|(taint, _)| taints.contains(taint));
    plan.removed.retain(|(taint, _)| before.contains(taint));
    if taints != *before {
        plan.taints = Some(taints);
    }
    plan
}

/// The event text for a list of taints (Karmada: `pkg/util/helper/taint.go:GenerateTaintsMessage`).
pub fn taints_message(taints: &[Taint]) -> String {
    if taints.is_empty() {
        return "cluster now does not have taints".to_owned();
    }
    let one = |taint: &Taint| {
        let value = if taint.value.is_empty() { String::new() } else { format!("Value:{},", taint.value) };
        format!("{{Key:{},{value}Effect:{}}}", taint.key, taint.effect.as_str())
    };
    format!("cluster now has taints([{}])", taints.iter().map(one).collect::<Vec<_>>().join(","))
}
