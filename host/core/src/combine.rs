//! Combination of several replies, and the fail-static table for faults.
//!
//! | kind | combined | a fault |
//! | --- | --- | --- |
//! | health | the first verdict or the worst; healthy if no policy covers the kind, as in Karmada | unknown |
//! | cluster taint | changes of all policies, in order | the policy changes nothing |
//! | filter | unfit if any policy rejects the cluster; the first reason counts | stays where it runs, is not placed anew |
//! | score | weighted sum over the policies | the policy is excluded from the sum and reported |
//! | eviction check | by default released if one policy releases and none holds | held |
//! | interpret | the first policy that has a rule decides | an error, nothing is changed |
//!
//! [`Composition`](crate::composition::Composition) selects the rule for kinds with more than one. A policy that
//! returns [`FaultKind::Unsupported`] abstains. Shadow policies are called after the decision, see [`shadow`].

pub mod shadow;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::shadow::Divergence;
use crate::call::{
    Call, ClusterTaintCall, EvictionCheckCall, EvictionVerdict, FilterCall, FilterVerdict, HealthCall, InterpretCall,
    Interpretation, Reason, Reply, ScoreCall, TaintChange,
};
use crate::composition::{EvictionRule, HealthRule};
use crate::model::{Binding, Cluster, Health};
use crate::policy::{Fault, FaultKind, Policy, PolicyEntry, PolicyId, PolicySet};
use crate::snapshot::{Candidates, ClusterSnapshot};
use crate::time::Time;

/// Fault of a policy, with the identity of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// Policy that was called.
    pub policy: PolicyId,
    /// Fault that it returned.
    pub fault: Fault,
}

impl PolicyFault {
    /// Returns the fault as a reason that names the policy.
    pub fn reason(&self) -> Reason {
        Reason::new(self.fault.kind.code(), format!("{}: {}", self.policy, self.fault))
    }
}

/// Diagnostics of the policy calls, independent of the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// Faults of the policies.
    pub faults: Vec<PolicyFault>,
    /// Shadow policies that would have decided differently.
    pub divergences: Vec<Divergence>,
}

impl Diagnostics {
    /// Appends the diagnostics of another call.
    pub fn extend(&mut self, other: Self) {
        self.faults.extend(other.faults);
        self.divergences.extend(other.divergences);
    }
}

/// Reason with its source; without a policy, the source is a rule of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// Policy that gave the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// Explanation.
    pub reason: Reason,
}

impl Attribution {
    /// Attributes a reason to a rule of the host.
    pub fn rule(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            policy: None,
            reason: Reason::new(code, message),
        }
    }

    /// Attributes a reason to a policy.
    pub fn policy(policy: &PolicyId, reason: Reason) -> Self {
        Self {
            policy: Some(policy.clone()),
            reason,
        }
    }
}

impl From<&PolicyFault> for Attribution {
    fn from(fault: &PolicyFault) -> Self {
        Self {
            policy: Some(fault.policy.clone()),
            reason: Reason::new(fault.fault.kind.code(), fault.fault.to_string()),
        }
    }
}

/// Calls the policy and returns its reply; `None` if it abstains.
pub(crate) fn ask(entry: &PolicyEntry, call: &Call<'_>) -> Result<Option<Reply>, PolicyFault> {
    match entry.policy.call(call) {
        Ok(reply) => Ok(Some(reply)),
        Err(fault) if fault.kind == FaultKind::Unsupported => Ok(None),
        Err(fault) => Err(PolicyFault {
            policy: entry.policy.id().clone(),
            fault,
        }),
    }
}

fn bad_reply(policy: &dyn Policy, message: String) -> PolicyFault {
    PolicyFault {
        policy: policy.id().clone(),
        fault: Fault::new(FaultKind::BadReply, message),
    }
}

fn wrong_kind(policy: &dyn Policy, reply: &Reply) -> PolicyFault {
    bad_reply(policy, format!("answered with a {} reply", reply.kind()))
}

/// Combined health of an object, with its attribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthOutcome {
    /// The combined health.
    pub health: Health,
    /// Policy or rule that determined the health, with the reason.
    pub attribution: Attribution,
    /// Fault, if it made the health unknown, and shadow policies with a different verdict.
    pub diagnostics: Diagnostics,
}

/// Combines the health verdicts on an object.
pub fn health(policies: &PolicySet, call: HealthCall<'_>) -> HealthOutcome {
    let call = Call::Health(call);
    let mut opinions = policies.answering(&call).filter_map(|entry| opinion(entry, &call));
    let decided = match policies.composition().health {
        HealthRule::FirstOpinion => opinions.next(),
        HealthRule::WorstOpinion => opinions.reduce(|worst, next| {
            if severity_rank(&next) > severity_rank(&worst) {
                next
            } else {
                worst
            }
        }),
    };
    let mut outcome = decided.unwrap_or_else(|| {
        let attribution = Attribution::rule(
            "NoInterpreter",
            "no health interpreter covers this kind, so it counts as healthy",
        );
        HealthOutcome {
            health: Health::Healthy,
            attribution,
            diagnostics: Diagnostics::default(),
        }
    });
    outcome.diagnostics.divergences = shadow::health(policies, &call, outcome.health);
    outcome
}

/// Returns the verdict of one policy; `None` if it abstains.
fn opinion(entry: &PolicyEntry, call: &Call<'_>) -> Option<HealthOutcome> {
    let policy = entry.policy.as_ref();
    let fault = match ask(entry, call) {
        Ok(Some(Reply::Health(verdict))) => {
            let attribution = Attribution::policy(policy.id(), verdict.reason);
            return Some(HealthOutcome {
                health: verdict.health,
                attribution,
                diagnostics: Diagnostics::default(),
            });
        }
        Ok(Some(reply)) => wrong_kind(policy, &reply),
        Ok(None) => return None,
        Err(fault) => fault,
    };
    let attribution = Attribution::from(&fault);
    let diagnostics = Diagnostics {
        faults: vec![fault],
        divergences: Vec::new(),
    };
    Some(HealthOutcome {
        health: Health::Unknown,
        attribution,
        diagnostics,
    })
}

fn severity_rank(outcome: &HealthOutcome) -> u8 {
    match outcome.health {
        Health::Healthy => 0,
        Health::Unknown => 1,
        Health::Unhealthy => 2,
    }
}

/// Combined changes to the taints of a cluster, in order and attributed to policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintOutcome {
    /// The changes of all policies.
    pub changes: Vec<(PolicyId, TaintChange)>,
    /// Faults of policies, which change nothing, and shadow policies with different changes.
    pub diagnostics: Diagnostics,
}

/// Combines the taint changes of all policies.
pub fn cluster_taint(policies: &PolicySet, call: ClusterTaintCall<'_>) -> TaintOutcome {
    let call = Call::ClusterTaint(call);
    let mut outcome = TaintOutcome::default();
    for entry in policies.answering(&call) {
        let policy = entry.policy.as_ref();
        match ask(entry, &call) {
            Ok(Some(Reply::ClusterTaint(verdict))) => {
                outcome
                    .changes
                    .extend(verdict.changes.into_iter().map(|change| (policy.id().clone(), change)));
            }
            Ok(Some(reply)) => outcome.diagnostics.faults.push(wrong_kind(policy, &reply)),
            Ok(None) => {}
            Err(fault) => outcome.diagnostics.faults.push(fault),
        }
    }
    outcome.diagnostics.divergences = shadow::cluster_taint(policies, &call, &outcome.changes);
    outcome
}

/// Combined filter verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterOutcome {
    /// Per candidate, in the order of the call: `None` if it fits, otherwise the first rejection with its policy and
    /// reason.
    pub rejections: Vec<Option<Box<Attribution>>>,
    /// Faults, and shadow policies that would have accepted other clusters.
    pub diagnostics: Diagnostics,
}

/// Combines the filter verdicts for all candidates.
pub fn filter(policies: &PolicySet, call: FilterCall<'_>) -> FilterOutcome {
    let mut outcome = FilterOutcome {
        rejections: vec![None; call.clusters.len()],
        ..FilterOutcome::default()
    };
    let (binding, clusters) = (call.binding, call.clusters);
    let call = Call::Filter(call);
    for entry in policies.answering(&call) {
        let policy = entry.policy.as_ref();
        let fault = match ask(entry, &call) {
            Ok(Some(Reply::Filter(verdicts))) if verdicts.len() == clusters.len() => {
                for (rejection, verdict) in outcome.rejections.iter_mut().zip(verdicts) {
                    if let FilterVerdict::Unfit(reason) = verdict {
                        rejection.get_or_insert_with(|| Box::new(Attribution::policy(policy.id(), reason)));
                    }
                }
                continue;
            }
            Ok(Some(Reply::Filter(verdicts))) => bad_reply(
                policy,
                format!("{} verdicts for {} clusters", verdicts.len(), clusters.len()),
            ),
            Ok(Some(reply)) => wrong_kind(policy, &reply),
            Ok(None) => continue,
            Err(fault) => fault,
        };
        for (rejection, cluster) in outcome.rejections.iter_mut().zip(clusters.iter()) {
            if !binding.spec.targets(&cluster.name) {
                rejection.get_or_insert_with(|| Box::new(Attribution::from(&fault)));
            }
        }
        outcome.diagnostics.faults.push(fault);
    }
    outcome.diagnostics.divergences = shadow::filter(policies, &call, &outcome.rejections);
    outcome
}

/// Scores of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyScores {
    /// Policy that gave the scores.
    pub policy: PolicyId,
    /// Factor by which they are multiplied in the sum.
    pub weight: u32,
    /// Unweighted score per cluster, in the order of the call.
    pub scores: Vec<i64>,
}

/// Combined scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreOutcome {
    /// Weighted sum per cluster, in the order of the call.
    pub totals: Vec<i64>,
    /// Scores of each policy.
    pub by_policy: Vec<PolicyScores>,
    /// Faults of policies, which are excluded from the sum, and shadow policies that would have preferred other
    /// clusters.
    pub diagnostics: Diagnostics,
}

/// Combines the scores of all feasible clusters.
pub fn score(policies: &PolicySet, call: ScoreCall<'_>) -> ScoreOutcome {
    let count = call.clusters.len();
    let mut outcome = ScoreOutcome {
        totals: vec![0; count],
        ..ScoreOutcome::default()
    };
    let call = Call::Score(call);
    for entry in policies.answering(&call) {
        let policy = entry.policy.as_ref();
        match ask(entry, &call) {
            Ok(Some(Reply::Score(scores))) if scores.len() == count => {
                for (total, score) in outcome.totals.iter_mut().zip(&scores) {
                    *total = total.saturating_add(score.saturating_mul(i64::from(entry.weight)));
                }
                let (policy, weight) = (policy.id().clone(), entry.weight);
                outcome.by_policy.push(PolicyScores { policy, weight, scores });
            }
            Ok(Some(Reply::Score(scores))) => {
                outcome.diagnostics.faults.push(bad_reply(
                    policy,
                    format!("{} scores for {count} clusters", scores.len()),
                ));
            }
            Ok(Some(reply)) => outcome.diagnostics.faults.push(wrong_kind(policy, &reply)),
            Ok(None) => {}
            Err(fault) => outcome.diagnostics.faults.push(fault),
        }
    }
    outcome.diagnostics.divergences = shadow::score(policies, &call, &outcome.totals);
    outcome
}

/// Returns the eviction order of a binding as determined by the given plugins. Each plugin scores the cluster that
/// the binding leaves; a higher sum is evicted first. A plugin that faults contributes 0.
pub fn eviction_order(policies: &PolicySet, binding: &Binding, source: &Arc<Cluster>, now: Time) -> (i64, Diagnostics) {
    let snapshot = ClusterSnapshot::new([Arc::clone(source)]);
    let outcome = score(
        policies,
        ScoreCall {
            binding,
            clusters: Candidates::of_rows(&snapshot, &[0]),
            now,
        },
    );
    (outcome.totals.first().copied().unwrap_or(0), outcome.diagnostics)
}

/// Combined result of the eviction checks for one old copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionOutcome {
    /// True if the old copy is released.
    pub released: bool,
    /// Policy or rule that decided, with the reason.
    pub attribution: Attribution,
    /// Delay until the next check, in seconds; the shortest delay of all holds.
    pub recheck_after_s: Option<u32>,
    /// Faults, each of which counts as a hold, and shadow policies that would have decided differently.
    pub diagnostics: Diagnostics,
}

/// Combines the eviction checks. If all policies abstain, the old copy is held.
pub fn eviction_check(policies: &PolicySet, call: EvictionCheckCall<'_>) -> EvictionOutcome {
    let call = Call::EvictionCheck(call);
    let (mut releases, mut holds, mut recheck_after_s, mut faults) = (Vec::new(), Vec::new(), None::<u32>, Vec::new());
    for entry in policies.answering(&call) {
        let policy = entry.policy.as_ref();
        let fault = match ask(entry, &call) {
            Ok(Some(Reply::EvictionCheck(EvictionVerdict::Release(reason)))) => {
                releases.push(Attribution::policy(policy.id(), reason));
                continue;
            }
            Ok(Some(Reply::EvictionCheck(EvictionVerdict::Hold {
                reason,
                recheck_after_s: after,
            }))) => {
                holds.push(Attribution::policy(policy.id(), reason));
                recheck_after_s = [recheck_after_s, after].into_iter().flatten().min();
                continue;
            }
            Ok(None | Some(Reply::EvictionCheck(EvictionVerdict::Abstain))) => continue,
            Ok(Some(reply)) => wrong_kind(policy, &reply),
            Err(fault) => fault,
        };
        holds.push(Attribution::from(&fault));
        faults.push(fault);
    }
    let rule = policies.composition().eviction_check;
    let released = rule.releases(releases.len(), holds.len());
    let divergences = shadow::eviction_check(policies, &call, released);
    let said = if released { releases.first() } else { holds.first() };
    let attribution = said.cloned().unwrap_or_else(|| too_few(rule, releases.len()));
    EvictionOutcome {
        released,
        attribution,
        recheck_after_s,
        diagnostics: Diagnostics { faults, divergences },
    }
}

/// Returns the reason for keeping an old copy that no policy holds.
fn too_few(rule: EvictionRule, releases: usize) -> Attribution {
    match rule {
        EvictionRule::Quorum(least) if releases > 0 => Attribution::rule(
            "NoQuorum",
            format!("{releases} of {least} eviction checks release the old copy"),
        ),
        _ => Attribution::rule("NoOpinion", "no eviction check has an opinion, so the old copy is held"),
    }
}

/// Result of an interpreter operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterpretOutcome {
    /// Result; absent if no policy has a rule for the object kind.
    pub interpretation: Option<Interpretation>,
    /// Shadow policies with a different result.
    pub diagnostics: Diagnostics,
}

/// Interprets with the first policy that has a rule.
pub fn interpret(policies: &PolicySet, call: InterpretCall<'_>) -> Result<InterpretOutcome, PolicyFault> {
    let call = Call::Interpret(call);
    let mut interpretation = None;
    for entry in policies.answering(&call) {
        match ask(entry, &call)? {
            Some(Reply::Interpret(Some(answer))) => {
                interpretation = Some(answer);
                break;
            }
            None | Some(Reply::Interpret(None)) => {}
            Some(reply) => return Err(wrong_kind(entry.policy.as_ref(), &reply)),
        }
    }
    let divergences = shadow::interpret(policies, &call, interpretation.as_ref());
    Ok(InterpretOutcome {
        interpretation,
        diagnostics: Diagnostics {
            faults: Vec::new(),
            divergences,
        },
    })
}
