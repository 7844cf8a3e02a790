//! Taints of clusters as determined by the cluster-taint policies, and the ownership of these taints.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::call::{CallKind, ClusterTaintCall, Reason, TaintChange};
use crate::combine::{self, Attribution, Diagnostics};
use crate::model::{Cluster, ConditionHistory, Taint, TaintEffect};
use crate::names::keys;
use crate::policy::{EngineKind, PolicyId, PolicySet};
use crate::time::Time;

/// Name prefix of policies that represent a `ClusterTaintPolicy`; followed by the object's name.
pub const CLUSTER_TAINT_POLICY: &str = "ClusterTaintPolicy/";

/// Reason code of a removal that follows `removeOnConditions` of a `ClusterTaintPolicy`. It covers a taint that has a
/// `timeAdded` and no recorded owner: Karmada records none, and after a take-over no other program removes what Karmada
/// added. Admission stamps every `NoExecute` taint, so this includes one of a person with the key and effect of the policy.
pub const REMOVE_ON_CONDITIONS: &str = "RemoveOnConditions";

/// Options for taint management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintOptions {
    /// True if a policy removes only taints that it added, and if these are removed when the policy is deleted. If
    /// false, a policy removes every taint with the key and effect that it names, and its deletion removes none, as
    /// in Karmada.
    pub cleans_up: bool,
    /// True if all `ClusterTaintPolicy` objects are known, so that a missing one was deleted.
    pub policies_are_complete: bool,
    /// True if the cluster answered its last probe although its status is not ready: it recovers, or its status cannot
    /// be written. Such a cluster gets no taint that evicts, except that of a drain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
}

/// Planned changes to a cluster's taints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintPlan {
    /// Complete new taint list; absent if it is unchanged.
    pub taints: Option<Vec<Taint>>,
    /// Complete new ownership map; absent if it is unchanged.
    pub owners: Option<BTreeMap<String, String>>,
    /// Complete new condition history; absent if it is unchanged.
    pub history: Option<ConditionHistory>,
    /// New taints, each with the policy that requested it.
    pub added: Vec<(Taint, Attribution)>,
    /// Removed taints, each with the policy that requested the removal.
    pub removed: Vec<(Taint, Attribution)>,
    /// Diagnostics of the policies; a policy with a fault changes nothing.
    pub diagnostics: Diagnostics,
}

impl TaintPlan {
    /// Returns true if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.taints.is_none() && self.owners.is_none() && self.history.is_none()
    }
}

/// Decides on the taints of one cluster. New taints are appended with `timeAdded` set to `now`. Other taints and
/// their `timeAdded` stay unchanged. A value changes only in a taint of the same owner.
///
/// A malformed record of owners is replaced with the next taint that is added, if no present taint may need an entry
/// in it. Otherwise, policies that remove only their own taints add none, because they could never remove it.
pub fn decide(cluster: &Cluster, policies: &PolicySet, options: TaintOptions, now: Time) -> TaintPlan {
    let mut plan = TaintPlan::default();
    let mut cluster = Cow::Borrowed(cluster);
    if remembers(policies) {
        let mut history = cluster.condition_history.clone();
        if history.observe(&cluster.status.conditions, now) {
            cluster.to_mut().condition_history = history.clone();
            plan.history = Some(history);
        }
    }
    let outcome = combine::cluster_taint(policies, ClusterTaintCall { cluster: &cluster, now });
    plan.diagnostics = outcome.diagnostics;
    let (taints, owners) = (cluster.spec.taints.clone(), cluster.taint_owners.clone());
    let owners_unknown = cluster.taint_owners_unknown && cluster.spec.taints.iter().any(needs_owner);
    let mut draft = Draft {
        taints,
        owners,
        owners_unknown,
        plan,
    };
    for (policy, change) in outcome.changes {
        match change {
            TaintChange::Add { taint, reason } => draft.add(&policy, taint, reason, options, now),
            TaintChange::Remove { key, effect, reason } => draft.remove(&policy, &key, effect, reason, options),
        }
    }
    if options.cleans_up && options.policies_are_complete {
        draft.remove_orphans(policies);
    }
    draft.finish(&cluster)
}

/// Returns true if the condition history is needed. The built-in rules read only the current conditions; other
/// policies may read the history.
fn remembers(policies: &PolicySet) -> bool {
    policies.iter().any(|policy| {
        let taints = policy
            .capabilities()
            .iter()
            .any(|capability| capability.kind == CallKind::ClusterTaint);
        taints && (policy.id().engine != EngineKind::Builtin || policy.id().name.starts_with(CLUSTER_TAINT_POLICY))
    })
}

/// Returns true if a policy may remove only taints that it added. The rules for the Ready condition have reserved
/// keys and correct them regardless of the owner, as in Karmada.
fn is_limited_to_own_taints(policy: &PolicyId) -> bool {
    policy.engine != EngineKind::Builtin || policy.name.starts_with(CLUSTER_TAINT_POLICY)
}

/// Returns true if the owner of a taint matters. The keys of the rules for the Ready condition and of drains are
/// reserved, and these rules correct them regardless of the owner.
fn needs_owner(taint: &Taint) -> bool {
    ![keys::NOT_READY_TAINT, keys::UNREACHABLE_TAINT, keys::DRAIN_TAINT].contains(&taint.key.as_str())
}

/// True for a taint that evicts and does not stand for a drain.
fn evicts(taint: &Taint) -> bool {
    taint.effect.evicts() && taint.key != keys::DRAIN_TAINT
}

/// New taint list and ownership map under construction.
struct Draft {
    taints: Vec<Taint>,
    owners: BTreeMap<String, String>,
    /// True if a taint that is not in `owners` may have an owner, so that the record cannot be replaced.
    owners_unknown: bool,
    plan: TaintPlan,
}

impl Draft {
    fn add(&mut self, policy: &PolicyId, mut taint: Taint, reason: Reason, options: TaintOptions, now: Time) {
        let identity = taint.identity();
        let owned = self.owners.get(&identity) == Some(&policy.name);
        match self.taints.iter_mut().find(|existing| existing.same_identity(&taint)) {
            Some(existing) if owned && existing.value != taint.value => {
                existing.value = taint.value;
                self.plan
                    .added
                    .push((existing.clone(), Attribution::policy(policy, reason)));
            }
            Some(_) => {}
            None if options.answers && evicts(&taint) => {}
            None if self.owners_unknown && options.cleans_up && is_limited_to_own_taints(policy) => {}
            None => {
                taint.time_added = Some(now.truncated());
                self.plan
                    .added
                    .push((taint.clone(), Attribution::policy(policy, reason)));
                self.taints.push(taint);
                self.owners.insert(identity, policy.name.clone());
            }
        }
    }

    fn remove(&mut self, policy: &PolicyId, key: &str, effect: TaintEffect, reason: Reason, options: TaintOptions) {
        let Some(position) = self
            .taints
            .iter()
            .position(|taint| taint.key == key && taint.effect == effect)
        else {
            return;
        };
        let Some(known) = self.taints.get(position) else { return };
        let owner = self.owners.get(&known.identity());
        let cleans_up = options.cleans_up;
        let is_adopted = owner.is_none()
            && !self.owners_unknown
            && known.time_added.is_some()
            && reason.code == REMOVE_ON_CONDITIONS
            && policy.name.starts_with(CLUSTER_TAINT_POLICY);
        if cleans_up && is_limited_to_own_taints(policy) && owner != Some(&policy.name) && !is_adopted {
            return;
        }
        let taint = self.taints.remove(position);
        self.owners.remove(&taint.identity());
        self.plan.removed.push((taint, Attribution::policy(policy, reason)));
    }

    /// Removes taints of deleted `ClusterTaintPolicy` objects. Taints of a missing plugin stay, because an
    /// unavailable plugin must not change anything.
    fn remove_orphans(&mut self, policies: &PolicySet) {
        let is_orphan = |owner: &String| {
            owner.starts_with(CLUSTER_TAINT_POLICY) && !policies.iter().any(|policy| policy.id().name == *owner)
        };
        let orphans: Vec<_> = self
            .owners
            .iter()
            .filter(|(_, owner)| is_orphan(owner))
            .map(|(id, _)| id.clone())
            .collect();
        for identity in orphans {
            let owner = self.owners.remove(&identity).unwrap_or_default();
            if let Some(position) = self.taints.iter().position(|taint| taint.identity() == identity) {
                let message = format!("{owner}, which added the taint, was deleted");
                self.plan.removed.push((
                    self.taints.remove(position),
                    Attribution::rule("PolicyDeleted", message),
                ));
            }
        }
    }

    fn finish(self, before: &Cluster) -> TaintPlan {
        let Self {
            taints,
            mut owners,
            owners_unknown,
            mut plan,
        } = self;
        owners.retain(|identity, _| taints.iter().any(|taint| taint.identity() == *identity));
        // Taints that were added and removed in the same pass are not reported.
        plan.added.retain(|(taint, _)| taints.contains(taint));
        plan.removed.retain(|(taint, _)| before.spec.taints.contains(taint));
        // A malformed record is not replaced: the next decision would find no owner in it and adopt every taint.
        plan.owners = (owners != before.taint_owners && !owners_unknown).then_some(owners);
        plan.taints = (taints != before.spec.taints).then_some(taints);
        plan
    }
}

/// Returns the event message for a list of taints (Karmada: `pkg/util/helper/taint.go:GenerateTaintsMessage`).
pub fn taints_message(taints: &[Taint]) -> String {
    if taints.is_empty() {
        return "cluster now does not have taints".to_owned();
    }
    let one = |taint: &Taint| {
        let value = if taint.value.is_empty() {
            String::new()
        } else {
            format!("Value:{},", taint.value)
        };
        format!("{{Key:{},{value}Effect:{}}}", taint.key, taint.effect.as_str())
    };
    format!(
        "cluster now has taints([{}])",
        taints.iter().map(one).collect::<Vec<_>>().join(",")
    )
}

#[cfg(test)]
mod tests;
