//! What several answers amount to, and what a fault means: the fail-static table.
//!
//! | kind | combined | a fault |
//! | --- | --- | --- |
//! | health | the first opinion, or the worst; no policy: healthy, as in Karmada | unknown |
//! | cluster taint | changes of all policies, in order | that policy changes nothing |
//! | filter | unfit if any policy says so; the first one speaks | stays where it runs, is not placed anew there |
//! | score | sum, each with the weight of its policy | the policy is left out of the sum and reported |
//! | eviction check | by default released if one releases and none holds | held |
//! | interpret | the first policy that has a rule decides | an error, nothing is changed |
//!
//! [`Composition`](crate::composition::Composition) chooses where the table gives a choice. A policy that answers
//! [`FaultKind::Unsupported`] abstains. Policies in shadow are asked after the decision, see [`crate::shadow`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{
    Call, ClusterTaintCall, EvictionCheckCall, EvictionVerdict, FilterCall, FilterVerdict, HealthCall, InterpretCall,
    Interpretation, Reason, Reply, ScoreCall, TaintChange,
};
use crate::composition::{EvictionRule, HealthRule};
use crate::model::{Binding, Cluster, Health};
use crate::mutation::{self, Mutation};
use crate::policy::{Fault, FaultKind, Member, Policy, PolicyId, PolicySet};
use crate::shadow::{self, Divergence};
use crate::snapshot::{Candidates, ClusterSnapshot};
use crate::time::Time;

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

/// What is worth telling about the policies that were asked, whatever was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Who had a fault.
    pub faults: Vec<PolicyFault>,
    /// Who is in shadow and would have decided otherwise.
    pub divergences: Vec<Divergence>,
}

impl Remarks {
    /// Adds those of another question.
    pub fn extend(&mut self, other: Self) {
        self.faults.extend(other.faults);
        self.divergences.extend(other.divergences);
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

/// The policy's reply; none if it has no opinion.
pub(crate) fn ask(member: &Member, call: &Call<'_>) -> Result<Option<Reply>, PolicyFault> {
    match member.policy.call(call) {
        Ok(reply) => Ok(Some(reply)),
        Err(fault) if fault.kind == FaultKind::Unsupported => Ok(None),
        Err(fault) => Err(PolicyFault { policy: member.policy.id().clone(), fault }),
    }
}

fn bad_reply(policy: &dyn Policy, message: String) -> PolicyFault {
    PolicyFault { policy: policy.id().clone(), fault: Fault::new(FaultKind::BadReply, message) }
}

fn wrong_kind(policy: &dyn Policy, reply: &Reply) -> PolicyFault {
    bad_reply(policy, format!("answered with a {} reply", reply.kind()))
}

/// Health of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthOutcome {
    /// The combined health.
    pub health: Health,
    /// Who said so, and why.
    pub because: Because,
    /// The fault, when that is why the health is unknown, and shadows that would have said something else.
    pub remarks: Remarks,
}

/// Combined health of an object.
pub fn health(policies: &PolicySet, call: HealthCall<'_>) -> HealthOutcome {
    let call = Call::Health(call);
    let mut opinions = policies.answering(&call).filter_map(|member| opinion(member, &call));
    let decided = match policies.composition().health {
        HealthRule::FirstOpinion => opinions.next(),
        HealthRule::WorstOpinion => {
            opinions.reduce(|worst, next| if badness(&next) > badness(&worst) { next } else { worst })
        }
    };
    let mut outcome = decided.unwrap_or_else(|| {
        let because = Because::rule("NoInterpreter", "no health interpreter covers this kind, so it counts as healthy");
        HealthOutcome { health: Health::Healthy, because, remarks: Remarks::default() }
    });
    outcome.remarks.divergences = shadow::health(policies, &call, outcome.health);
    outcome
}

/// What one policy says; none if it has no opinion.
fn opinion(member: &Member, call: &Call<'_>) -> Option<HealthOutcome> {
    let policy = member.policy.as_ref();
    let fault = match ask(member, call) {
        Ok(Some(Reply::Health(verdict))) => {
            let because = Because::policy(policy.id(), verdict.reason);
            return Some(HealthOutcome { health: verdict.health, because, remarks: Remarks::default() });
        }
        Ok(Some(reply)) => wrong_kind(policy, &reply),
        Ok(None) => return None,
        Err(fault) => fault,
    };
    let because = Because::from(&fault);
    let remarks = Remarks { faults: vec![fault], divergences: Vec::new() };
    Some(HealthOutcome { health: Health::Unknown, because, remarks })
}

fn badness(outcome: &HealthOutcome) -> u8 {
    match outcome.health {
        Health::Healthy => 0,
        Health::Unknown => 1,
        Health::Unhealthy => 2,
    }
}

/// Changes of a cluster's taints, each with who asked for it, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintOutcome {
    /// The changes of all policies.
    pub changes: Vec<(PolicyId, TaintChange)>,
    /// Policies that changed nothing because of a fault, and shadows that would change something else.
    pub remarks: Remarks,
}

/// Combined changes of a cluster's taints.
pub fn cluster_taint(policies: &PolicySet, call: ClusterTaintCall<'_>) -> TaintOutcome {
    let call = Call::ClusterTaint(call);
    let mut outcome = TaintOutcome::default();
    for member in policies.answering(&call) {
        let policy = member.policy.as_ref();
        match ask(member, &call) {
            Ok(Some(Reply::ClusterTaint(verdict))) => {
                outcome.changes.extend(verdict.changes.into_iter().map(|change| (policy.id().clone(), change)));
            }
            Ok(Some(reply)) => outcome.remarks.faults.push(wrong_kind(policy, &reply)),
            Ok(None) => {}
            Err(fault) => outcome.remarks.faults.push(fault),
        }
    }
    outcome.remarks.divergences = shadow::cluster_taint(policies, &call, &outcome.changes);
    outcome
}

/// Combined filter verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterOutcome {
    /// Per candidate, in the order of the call: absent is fit, otherwise who rejected it first, and why.
    pub rejections: Vec<Option<Box<Because>>>,
    /// Faults on the way, and shadows that would have let other clusters pass.
    pub remarks: Remarks,
}

/// Combined filter verdicts for all candidates.
pub fn filter(policies: &PolicySet, call: FilterCall<'_>) -> FilterOutcome {
    let mut outcome = FilterOutcome { rejections: vec![None; call.clusters.len()], ..FilterOutcome::default() };
    let (binding, clusters) = (call.binding, call.clusters);
    let call = Call::Filter(call);
    for member in policies.answering(&call) {
        let policy = member.policy.as_ref();
        let fault = match ask(member, &call) {
            Ok(Some(Reply::Filter(verdicts))) if verdicts.len() == clusters.len() => {
                for (rejection, verdict) in outcome.rejections.iter_mut().zip(verdicts) {
                    if let FilterVerdict::Unfit(reason) = verdict {
                        rejection.get_or_insert_with(|| Box::new(Because::policy(policy.id(), reason)));
                    }
                }
                continue;
            }
            Ok(Some(Reply::Filter(verdicts))) => {
                bad_reply(policy, format!("{} verdicts for {} clusters", verdicts.len(), clusters.len()))
            }
            Ok(Some(reply)) => wrong_kind(policy, &reply),
            Ok(None) => continue,
            Err(fault) => fault,
        };
        for (rejection, cluster) in outcome.rejections.iter_mut().zip(clusters.iter()) {
            if !binding.spec.targets(&cluster.name) {
                rejection.get_or_insert_with(|| Box::new(Because::from(&fault)));
            }
        }
        outcome.remarks.faults.push(fault);
    }
    outcome.remarks.divergences = shadow::filter(policies, &call, &outcome.rejections);
    outcome
}

/// Scores of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyScores {
    /// Who gave them.
    pub policy: PolicyId,
    /// What they are multiplied with in the sum.
    pub weight: u32,
    /// Per cluster, in the order of the call, before the weight.
    pub scores: Vec<i64>,
}

/// Combined scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreOutcome {
    /// Weighted sum per cluster, in the order of the call.
    pub totals: Vec<i64>,
    /// What each policy contributed.
    pub by_policy: Vec<PolicyScores>,
    /// Policies left out of the sum, and shadows that would have preferred other clusters.
    pub remarks: Remarks,
}

/// Combined scores for all feasible clusters.
pub fn score(policies: &PolicySet, call: ScoreCall<'_>) -> ScoreOutcome {
    let count = call.clusters.len();
    let mut outcome = ScoreOutcome { totals: vec![0; count], ..ScoreOutcome::default() };
    let call = Call::Score(call);
    for member in policies.answering(&call) {
        let policy = member.policy.as_ref();
        match ask(member, &call) {
            Ok(Some(Reply::Score(scores))) if scores.len() == count => {
                for (total, score) in outcome.totals.iter_mut().zip(&scores) {
                    *total = total.saturating_add(score.saturating_mul(i64::from(member.weight)));
                }
                let (policy, weight) = (policy.id().clone(), member.weight);
                outcome.by_policy.push(PolicyScores { policy, weight, scores });
            }
            Ok(Some(Reply::Score(scores))) => {
                outcome.remarks.faults.push(bad_reply(policy, format!("{} scores for {count} clusters", scores.len())));
            }
            Ok(Some(reply)) => outcome.remarks.faults.push(wrong_kind(policy, &reply)),
            Ok(None) => {}
            Err(fault) => outcome.remarks.faults.push(fault),
        }
    }
    outcome.remarks.divergences = shadow::score(policies, &call, &outcome.totals);
    outcome
}

/// How soon a binding leaves a cluster in comparison with others, by the plugins that order evictions: each is asked to
/// score the cluster that is left, and the higher sum goes first. A plugin that fails adds nothing.
pub fn eviction_order(policies: &PolicySet, binding: &Binding, source: &Arc<Cluster>, now: Time) -> (i64, Remarks) {
    let snapshot = ClusterSnapshot::new([Arc::clone(source)]);
    let outcome = score(policies, ScoreCall { binding, clusters: Candidates::of_rows(&snapshot, &[0]), now });
    (outcome.totals.first().copied().unwrap_or(0), outcome.remarks)
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
    /// Faults, each of which holds, and shadows that would have decided otherwise.
    pub remarks: Remarks,
}

/// Combined eviction check. With no opinion at all the old copy is held.
pub fn eviction_check(policies: &PolicySet, call: EvictionCheckCall<'_>) -> EvictionOutcome {
    let call = Call::EvictionCheck(call);
    let (mut releases, mut holds, mut recheck_after_s, mut faults) = (Vec::new(), Vec::new(), None::<u32>, Vec::new());
    for member in policies.answering(&call) {
        let policy = member.policy.as_ref();
        let fault = match ask(member, &call) {
            Ok(Some(Reply::EvictionCheck(EvictionVerdict::Release(reason)))) => {
                releases.push(Because::policy(policy.id(), reason));
                continue;
            }
            Ok(Some(Reply::EvictionCheck(EvictionVerdict::Hold { reason, recheck_after_s: after }))) => {
                holds.push(Because::policy(policy.id(), reason));
                recheck_after_s = [recheck_after_s, after].into_iter().flatten().min();
                continue;
            }
            Ok(None | Some(Reply::EvictionCheck(EvictionVerdict::Abstain))) => continue,
            Ok(Some(reply)) => wrong_kind(policy, &reply),
            Err(fault) => fault,
        };
        if mutation::on(Mutation::FaultReleases) {
            let (because, remarks) = (Because::from(&fault), Remarks::default());
            return EvictionOutcome { released: true, because, recheck_after_s, remarks };
        }
        holds.push(Because::from(&fault));
        faults.push(fault);
    }
    let rule = policies.composition().eviction_check;
    let released = rule.releases(releases.len(), holds.len());
    let divergences = shadow::eviction_check(policies, &call, released);
    let said = if released { releases.first() } else { holds.first() };
    let because = said.cloned().unwrap_or_else(|| too_few(rule, releases.len()));
    EvictionOutcome { released, because, recheck_after_s, remarks: Remarks { faults, divergences } }
}

/// Why the old copy is held although nobody holds it.
fn too_few(rule: EvictionRule, releases: usize) -> Because {
    match rule {
        EvictionRule::Quorum(least) if releases > 0 => {
            Because::rule("NoQuorum", format!("{releases} of {least} eviction checks release the old copy"))
        }
        _ => Because::rule("NoOpinion", "no eviction check has an opinion, so the old copy is held"),
    }
}

/// Result of an interpreter operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterpretOutcome {
    /// The result; absent when no policy has a rule for that kind.
    pub interpretation: Option<Interpretation>,
    /// Shadows that would have given another one.
    pub remarks: Remarks,
}

/// Interprets with the first policy that has a rule.
pub fn interpret(policies: &PolicySet, call: InterpretCall<'_>) -> Result<InterpretOutcome, PolicyFault> {
    let call = Call::Interpret(call);
    let mut interpretation = None;
    for member in policies.answering(&call) {
        match ask(member, &call)? {
            Some(Reply::Interpret(Some(told))) => {
                interpretation = Some(told);
                break;
            }
            None | Some(Reply::Interpret(None)) => {}
            Some(reply) => return Err(wrong_kind(member.policy.as_ref(), &reply)),
        }
    }
    let divergences = shadow::interpret(policies, &call, interpretation.as_ref());
    Ok(InterpretOutcome { interpretation, remarks: Remarks { faults: Vec::new(), divergences } })
}
