//! A `ClusterTaintPolicy` object as a policy.

use bulkhead_core::affinity;
use bulkhead_core::call::{Call, CallKind, ClusterTaintCall, Reason, Reply, TaintChange, TaintVerdict};
use bulkhead_core::decide::taint::{CLUSTER_TAINT_POLICY, REMOVE_ON_CONDITIONS};
use bulkhead_core::model::{
    ADD_ON_MATCH_SECONDS, Cluster, ClusterTaintPolicySpec, ConditionStatus, MatchCondition, PolicyTaint,
    REMOVE_ON_MISMATCH_SECONDS, Taint, TaintEffect,
};
use bulkhead_core::policy::{Capability, Fault, Policy, PolicyId};
use bulkhead_core::time::Time;

use crate::not_asked;

/// Maximum number of changes of a condition within the damping window that do not count as flapping.
const FLAPS_MAX: usize = 4;

/// Options for taints of policies, beyond Karmada's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaintPolicyOptions {
    /// True if a policy removes a taint that it added when it no longer declares it or no longer selects the cluster.
    /// Karmada leaves such taints in place.
    pub cleans_up: bool,
    /// Length of the damping window in seconds; 0 disables damping, as in Karmada. If a condition has changed more
    /// than four times within the window, taints that depend on it are not removed, so that a flapping cluster stays
    /// unusable.
    pub damping_window_s: i64,
}

/// One `ClusterTaintPolicy` (Karmada: `pkg/controllers/taint/clustertaintpolicy_controller.go:Reconcile`), in
/// Karmada's format or in that of the proposal "Optimize Cluster Failover".
///
/// A policy with [`faults`](ClusterTaintPolicySpec::faults) changes no taint.
///
/// Changes are emitted even if they have no effect on the existing taints. Additions and removals match by (key,
/// effect) alone, so a later policy depends only on the order of the changes.
pub struct ClusterTaintPolicyRule {
    id: PolicyId,
    capabilities: Vec<Capability>,
    spec: ClusterTaintPolicySpec,
    options: TaintPolicyOptions,
}

impl ClusterTaintPolicyRule {
    /// Creates the policy of an object. Taints with an unknown effect are ignored: a control plane would reject the
    /// whole list of taints because of one.
    pub fn new(name: &str, mut spec: ClusterTaintPolicySpec, options: TaintPolicyOptions) -> Self {
        for taints in [&mut spec.taints, &mut spec.taints_to_add] {
            taints.retain(|taint| !taint.effect.is_foreign());
        }
        let id = PolicyId::builtin(&format!("{CLUSTER_TAINT_POLICY}{name}"));
        Self {
            id,
            capabilities: vec![Capability::any(CallKind::ClusterTaint)],
            spec,
            options,
        }
    }

    /// Returns one policy for each object, in the order in which they apply: oldest first. Karmada does not define
    /// the order of objects of the same age; here it is by name.
    pub fn all(mut objects: Vec<(String, Time, ClusterTaintPolicySpec)>, options: TaintPolicyOptions) -> Vec<Self> {
        objects.sort_by(|(name, created, _), (other_name, other_created, _)| {
            created.cmp(other_created).then_with(|| name.cmp(other_name))
        });
        objects
            .into_iter()
            .map(|(name, _, spec)| Self::new(&name, spec, options))
            .collect()
    }

    fn name(&self) -> &str {
        self.id.name.strip_prefix(CLUSTER_TAINT_POLICY).unwrap_or(&self.id.name)
    }

    fn reason(&self, code: &str) -> Reason {
        Reason::new(code, format!("ClusterTaintPolicy {}", self.name()))
    }

    /// Returns a reason that has the window.
    fn reason_after(&self, code: &str, window_s: i32) -> Reason {
        Reason::new(code, format!("ClusterTaintPolicy {}, after {window_s} s", self.name()))
    }

    fn changes(&self, call: &ClusterTaintCall<'_>) -> Vec<TaintChange> {
        let (spec, cluster) = (&self.spec, call.cluster);
        // Without a misspelt field the policy would be wider than its author wrote it.
        if !spec.faults().is_empty() {
            return Vec::new();
        }
        let selected = spec
            .target()
            .is_none_or(|affinity| affinity::matches(affinity, cluster));
        if !selected {
            let declared = spec
                .taints
                .iter()
                .chain(&spec.taints_to_add)
                .filter(|_| self.options.cleans_up);
            return declared
                .map(|taint| self.remove(&taint.key, &taint.effect, "ClusterNotTargeted"))
                .collect();
        }
        // Additions come before removals, so a taint is removed if both lists of conditions hold.
        let mut changes = Vec::new();
        let (adds, removes) = (
            Requirement::all(&spec.add_on_conditions),
            Requirement::all(&spec.remove_on_conditions),
        );
        changes.extend(
            spec.taints
                .iter()
                .filter(|taint| {
                    adds.as_ref()
                        .is_some_and(|adds| adds.held_for(call, true, taint.add_on_match_seconds.unwrap_or(0)))
                })
                .map(|taint| self.add(taint, "AddOnConditions")),
        );
        changes.extend(
            spec.taints
                .iter()
                .filter(|taint| {
                    removes.as_ref().is_some_and(|removes| {
                        removes.held_for(call, true, taint.remove_on_mismatch_seconds.unwrap_or(0))
                            && self.is_stable(removes, call)
                    })
                })
                .map(|taint| self.remove(&taint.key, &taint.effect, REMOVE_ON_CONDITIONS)),
        );
        for taint in &spec.taints_to_add {
            changes.extend(self.follow_match(taint, call));
        }
        if self.options.cleans_up {
            changes.extend(self.no_longer_declared(cluster));
        }
        changes
    }

    /// Returns the change of a taint in the proposal's format: added after the match has lasted, removed after the
    /// mismatch has.
    fn follow_match(&self, taint: &PolicyTaint, call: &ClusterTaintCall<'_>) -> Option<TaintChange> {
        let Some(required) = Requirement::all(&self.spec.match_conditions) else {
            return Some(self.add(taint, "NoMatchConditions"));
        };
        let add_s = taint.add_on_match_seconds.unwrap_or(ADD_ON_MATCH_SECONDS);
        let remove_s = taint.remove_on_mismatch_seconds.unwrap_or(REMOVE_ON_MISMATCH_SECONDS);
        if required.held_for(call, true, add_s) {
            let PolicyTaint { key, effect, value, .. } = taint.clone();
            let reason = self.reason_after("MatchConditions", add_s);
            return Some(TaintChange::Add {
                taint: Taint {
                    key,
                    value,
                    effect,
                    time_added: None,
                },
                reason,
            });
        }
        let mismatched = required.held_for(call, false, remove_s) && self.is_stable(&required, call);
        let reason = || self.reason_after("MatchConditionsEnded", remove_s);
        let (key, effect) = (taint.key.clone(), taint.effect.clone());
        mismatched.then(|| TaintChange::Remove {
            key,
            effect,
            reason: reason(),
        })
    }

    fn is_stable(&self, required: &Requirement<'_>, call: &ClusterTaintCall<'_>) -> bool {
        let window_s = self.options.damping_window_s;
        window_s <= 0
            || call
                .cluster
                .condition_history
                .changes_within(&required.types, window_s, call.now)
                <= FLAPS_MAX
    }

    /// Returns removals of the taints that this policy added before it was edited.
    fn no_longer_declared(&self, cluster: &Cluster) -> Vec<TaintChange> {
        let declared = |taint: &&Taint| {
            self.spec
                .taints
                .iter()
                .chain(&self.spec.taints_to_add)
                .any(|own| own.key == taint.key && own.effect == taint.effect)
        };
        let owned = cluster
            .spec
            .taints
            .iter()
            .filter(|taint| cluster.taint_owner(taint) == Some(&self.id.name));
        owned
            .filter(|taint| !declared(taint))
            .map(|taint| self.remove(&taint.key, &taint.effect, "NoLongerDeclared"))
            .collect()
    }

    fn add(&self, taint: &PolicyTaint, code: &str) -> TaintChange {
        let PolicyTaint { key, effect, value, .. } = taint.clone();
        TaintChange::Add {
            taint: Taint {
                key,
                value,
                effect,
                time_added: None,
            },
            reason: self.reason(code),
        }
    }

    fn remove(&self, key: &str, effect: &TaintEffect, code: &str) -> TaintChange {
        TaintChange::Remove {
            key: key.to_owned(),
            effect: effect.clone(),
            reason: self.reason(code),
        }
    }
}

impl Policy for ClusterTaintPolicyRule {
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

/// Conditions that must all hold.
struct Requirement<'a> {
    required: &'a [MatchCondition],
    types: Vec<&'a str>,
}

impl<'a> Requirement<'a> {
    /// Returns `None` for an empty list, whose meaning depends on the caller.
    fn all(required: &'a [MatchCondition]) -> Option<Self> {
        let types = required
            .iter()
            .map(|required| required.condition_type.as_str())
            .collect();
        (!required.is_empty()).then_some(Self { required, types })
    }

    /// Returns true if "all conditions hold" has been equal to `wanted` for the given time. A negative time counts as
    /// 0.
    fn held_for(&self, call: &ClusterTaintCall<'_>, wanted: bool, seconds: i32) -> bool {
        let cluster = call.cluster;
        let status = |type_: &&str| {
            cluster
                .status
                .conditions
                .iter()
                .find(|condition| condition.type_ == **type_)
                .map(|condition| condition.status)
        };
        let now: Vec<_> = self.types.iter().map(status).collect();
        if self.holds(&now) != wanted {
            return false;
        }
        seconds <= 0
            || call.now
                >= cluster
                    .condition_history
                    .held_since(&self.types, |statuses| self.holds(statuses))
                    .plus_seconds(i64::from(seconds))
    }

    fn holds(&self, statuses: &[Option<ConditionStatus>]) -> bool {
        self.required
            .iter()
            .zip(statuses)
            .all(|(required, status)| holds(required, *status))
    }
}

/// Returns true if a condition holds. A missing condition satisfies neither operator.
fn holds(required: &MatchCondition, status: Option<ConditionStatus>) -> bool {
    let Some(status) = status else { return false };
    let listed = required.status_values.iter().any(|value| value == status.as_str());
    match required.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
