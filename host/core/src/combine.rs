//! What several answers amount to, and what a fault means: the fail-static table.
//!
//! | kind | combined | a fault |
//! | --- | --- | --- |
//! | health | the first policy that covers the kind decides; none: healthy, as in Karmada | unknown |
//! | cluster taint | changes of all policies, in order | that policy changes nothing |
//! | filter | unfit if any policy says so; the first one speaks | stays where it runs, is not placed anew there |
//! | score | sum | the policy is left out of the sum and reported |
//! | eviction check | released if one releases and none holds | held |
//! | interpret | the first policy that has a rule decides | an error, nothing is changed |

use serde::{Deserialize, Serialize};

use crate::call::{
    Call, ClusterTaintCall, EvictionCheckCall, EvictionVerdict, FilterCall, FilterVerdict, HealthCall, InterpretCall,
    Interpretation, Reason, Reply, ScoreCall, TaintChange,
};
use crate::model::Health;
use crate::policy::{Fault, FaultKind, Policy, PolicyId, PolicySet};

/// A fault together with who had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// The policy that was asked.
    pub policy: PolicyId,
    /// What went wrong.
    pub fault: Fault,
}

impl PolicyFault {
    /// The fault as a reason that names the policy.
    pub fn reason(&self) -> Reason {
        Reason::new(self.fault.kind.code(), format!("{}: {}", self.policy, self.fault))
    }
}

/// A reason together with the policy that gave it; no policy means that the host's own rule applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// Why.
    pub reason: Reason,
}

impl Because {
    /// The host's own rule.
    pub fn rule(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { policy: None, reason: Reason::new(code, message) }
    }

    /// A policy's answer.
    pub fn policy(policy: &PolicyId, reason: Reason) -> Self {
        Self { policy: Some(policy.clone()), reason }
    }
}

impl From<&PolicyFault> for Because {
    fn from(fault: &PolicyFault) -> Self {
        Self {
            policy: Some(fault.policy.clone()),
            reason: Reason::new(fault.fault.kind.code(), fault.fault.to_string()),
        }
    }
}

fn ask(policy: &dyn Policy, call: &Call<'_>) -> Result<Reply, PolicyFault> {
    policy.call(call).map_err(|fault| PolicyFault { policy: policy.id().clone(), fault })
}

fn wrong_kind(policy: &dyn Policy, reply: &Reply) -> PolicyFault {
    let message = format!("answered with a {} reply", reply.kind());
    PolicyFault { policy: policy.id().clone(), fault: Fault::new(FaultKind::BadReply, message) }
}

/// Health of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthOutcome {
    /// The combined health.
    pub health: Health,
    /// Who said so, and why.
    pub because: Because,
    /// The fault, when that is why the health is unknown.
    pub fault: Option<PolicyFault>,
}

/// Combined health of an object.
pub fn health(policies: &PolicySet, call: HealthCall<'_>) -> HealthOutcome {
    let call = Call::Health(call);
    let Some(policy) = policies.answering(&call).next() else {
        let because = Because::rule("NoInterpreter", "no health interpreter covers this kind, so it counts as healthy");
        return HealthOutcome { health: Health::Healthy, because, fault: None };
    };
    let fault = match ask(policy, &call) {
        Ok(Reply::Health(verdict)) => {
            let because = Because::policy(policy.id(), verdict.reason);
            return HealthOutcome { health: verdict.health, because, fault: None };
        }
        Ok(reply) => wrong_kind(policy, &reply),
        Err(fault) => fault,
    };
    HealthOutcome { health: Health::Unknown, because: Because::from(&fault), fault: Some(fault) }
}

/// Changes of a cluster's taints, each with who asked for it, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintOutcome {
    /// The changes of all policies.
    pub changes: Vec<(PolicyId, TaintChange)>,
    /// Policies that changed nothing because of a fault.
    pub faults: Vec<PolicyFault>,
}

/// Combined changes of a cluster's taints.
pub fn cluster_taint(policies: &PolicySet, call: ClusterTaintCall<'_>) -> TaintOutcome {
    let call = Call::ClusterTaint(call);
    let mut outcome = TaintOutcome::default();
    for policy in policies.answering(&call) {
        match ask(policy, &call) {
            Ok(Reply::ClusterTaint(verdict)) => {
                outcome.changes.extend(verdict.changes.into_iter().map(|change| (policy.id().clone(), change)));
            }
            Ok(reply) => outcome.faults.push(wrong_kind(policy, &reply)),
            Err(fault) => outcome.faults.push(fault),
        }
    }
    outcome
}

/// Combined filter verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterOutcome {
    /// Per candidate, in the order of the call: absent is fit, otherwise who rejected it first, and why.
    pub rejections: Vec<Option<Box<Because>>>,
    /// Faults on the way.
    pub faults: Vec<PolicyFault>,
}

/// Combined filter verdicts for all candidates.
pub fn filter(policies: &PolicySet, call: FilterCall<'_>) -> FilterOutcome {
    let mut outcome = FilterOutcome { rejections: vec![None; call.clusters.len()], faults: Vec::new() };
    let (binding, clusters) = (call.binding, call.clusters);
    let call = Call::Filter(call);
    for policy in policies.answering(&call) {
        let fault = match ask(policy, &call) {
            Ok(Reply::Filter(verdicts)) if verdicts.len() == clusters.len() => {
                for (rejection, verdict) in outcome.rejections.iter_mut().zip(verdicts) {
                    if let FilterVerdict::Unfit(reason) = verdict {
                        rejection.get_or_insert_with(|| Box::new(Because::policy(policy.id(), reason)));
                    }
                }
                continue;
            }
            Ok(Reply::Filter(verdicts)) => {
                let message = format!("{} verdicts for {} clusters", verdicts.len(), clusters.len());
                PolicyFault { policy: policy.id().clone(), fault: Fault::new(FaultKind::BadReply, message) }
            }
            Ok(reply) => wrong_kind(policy, &reply),
            Err(fault) => fault,
        };
        for (rejection, cluster) in outcome.rejections.iter_mut().zip(clusters.iter()) {
            if !binding.spec.targets(&cluster.name) {
                rejection.get_or_insert_with(|| Box::new(Because::from(&fault)));
            }
        }
        outcome.faults.push(fault);
    }
    outcome
}

/// Scores of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyScores {
    /// Who gave them.
    pub policy: PolicyId,
    /// Per cluster, in the order of the call.
    pub scores: Vec<i64>,
}

/// Combined scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreOutcome {
    /// Sum per cluster, in the order of the call.
    pub totals: Vec<i64>,
    /// What each policy contributed.
    pub by_policy: Vec<PolicyScores>,
    /// Policies left out of the sum.
    pub faults: Vec<PolicyFault>,
}

/// Combined scores for all feasible clusters.
pub fn score(policies: &PolicySet, call: ScoreCall<'_>) -> ScoreOutcome {
    let count = call.clusters.len();
    let mut outcome = ScoreOutcome { totals: vec![0; count], ..ScoreOutcome::default() };
    let call = Call::Score(call);
    for policy in policies.answering(&call) {
        match ask(policy, &call) {
            Ok(Reply::Score(scores)) if scores.len() == count => {
                for (total, score) in outcome.totals.iter_mut().zip(&scores) {
                    *total = total.saturating_add(*score);
                }
                outcome.by_policy.push(PolicyScores { policy: policy.id().clone(), scores });
            }
            Ok(Reply::Score(scores)) => {
                let message = format!("{} scores for {count} clusters", scores.len());
                let fault = Fault::new(FaultKind::BadReply, message);
                outcome.faults.push(PolicyFault { policy: policy.id().clone(), fault });
            }
            Ok(reply) => outcome.faults.push(wrong_kind(policy, &reply)),
            Err(fault) => outcome.faults.push(fault),
        }
    }
    outcome
}

/// Combined answer to "may the old copy go?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionOutcome {
    /// Whether it may.
    pub released: bool,
    /// Who decided, and why.
    pub because: Because,
    /// When to ask again, in seconds; the earliest of all holds.
    pub recheck_after_s: Option<u32>,
    /// Faults, each of which holds.
    pub faults: Vec<PolicyFault>,
}

/// Combined eviction check. With no opinion at all the old copy is held.
pub fn eviction_check(policies: &PolicySet, call: EvictionCheckCall<'_>) -> EvictionOutcome {
    let call = Call::EvictionCheck(call);
    let (mut release, mut hold, mut recheck_after_s, mut faults) = (None, None, None::<u32>, Vec::new());
    for policy in policies.answering(&call) {
        let fault = match ask(policy, &call) {
            Ok(Reply::EvictionCheck(EvictionVerdict::Release(reason))) => {
                release.get_or_insert_with(|| Because::policy(policy.id(), reason));
                continue;
            }
            Ok(Reply::EvictionCheck(EvictionVerdict::Hold { reason, recheck_after_s: after })) => {
                hold.get_or_insert_with(|| Because::policy(policy.id(), reason));
                recheck_after_s = [recheck_after_s, after].into_iter().flatten().min();
                continue;
            }
            Ok(Reply::EvictionCheck(EvictionVerdict::Abstain)) => continue,
            Ok(reply) => wrong_kind(policy, &reply),
            Err(fault) => fault,
        };
        hold.get_or_insert_with(|| Because::from(&fault));
        faults.push(fault);
    }
    let released = hold.is_none() && release.is_some();
    let because = hold
        .or(release)
        .unwrap_or_else(|| Because::rule("NoOpinion", "no eviction check has an opinion, so the old copy is held"));
    EvictionOutcome { released, because, recheck_after_s, faults }
}

/// Result of an interpreter operation; `None` when no policy has a rule for that kind.
pub fn interpret(policies: &PolicySet, call: InterpretCall<'_>) -> Result<Option<Interpretation>, PolicyFault> {
    let call = Call::Interpret(call);
    for policy in policies.answering(&call) {
        match ask(policy, &call)? {
            Reply::Interpret(Some(interpretation)) => return Ok(Some(interpretation)),
            Reply::Interpret(None) => {}
            reply => return Err(wrong_kind(policy, &reply)),
        }
    }
    Ok(None)
}
