//! Shadow policies: called after a decision and compared with it, never applied.
//!
//! The reply of a shadow policy is compared with the decision made without it, per call kind. A fault of a shadow
//! policy is a divergence too, because it shows how the policy would affect decisions once enforced. An abstention
//! counts as agreement.

use serde::{Deserialize, Serialize};

use crate::call::{Call, EvictionVerdict, FilterVerdict, Interpretation, Reply, TaintChange};
use crate::combine::{self, Attribution};
use crate::model::Health;
use crate::policy::{PolicyId, PolicySet};

/// Maximum number of clusters that a divergence names.
const CLUSTERS_NAMED_MAX: usize = 5;

/// Disagreement of a shadow policy with a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// Shadow policy.
    pub policy: PolicyId,
    /// Decision made without it.
    pub enforced: String,
    /// Its own verdict.
    pub shadow: String,
}

/// Calls every shadow policy; `differs` returns the difference of a reply as `(enforced, shadow)`.
fn compare(
    policies: &PolicySet,
    call: &Call<'_>,
    enforced: impl Fn() -> String,
    differs: impl Fn(Reply) -> Option<(String, String)>,
) -> Vec<Divergence> {
    let diverging = policies.shadowing(call).filter_map(|entry| {
        let (enforced, shadow) = match combine::ask(entry, call) {
            Ok(None) => return None,
            Ok(Some(reply)) if reply.kind() == call.kind() => differs(reply)?,
            Ok(Some(reply)) => (enforced(), format!("a {} reply", reply.kind())),
            Err(fault) => (
                enforced(),
                fault.fault.kind.code().to_owned() + ": " + &fault.fault.message,
            ),
        };
        Some(Divergence {
            policy: entry.policy.id().clone(),
            enforced,
            shadow,
        })
    });
    diverging.collect()
}

pub(crate) fn health(policies: &PolicySet, call: &Call<'_>, decided: Health) -> Vec<Divergence> {
    let enforced = || decided.as_str().to_owned();
    compare(policies, call, enforced, |reply| match reply {
        Reply::Health(verdict) if verdict.health != decided => {
            Some((enforced(), format!("{} ({})", verdict.health.as_str(), verdict.reason)))
        }
        _ => None,
    })
}

pub(crate) fn cluster_taint(
    policies: &PolicySet,
    call: &Call<'_>,
    decided: &[(PolicyId, TaintChange)],
) -> Vec<Divergence> {
    let changes = |changes: &[&TaintChange]| -> String {
        let texts: Vec<_> = changes.iter().map(|change| describe(change)).collect();
        if texts.is_empty() {
            "no change".to_owned()
        } else {
            texts.join(", ")
        }
    };
    let enforced = || changes(&decided.iter().map(|(_, change)| change).collect::<Vec<_>>());
    compare(policies, call, enforced, |reply| match reply {
        Reply::ClusterTaint(verdict) => {
            let shadow = changes(&verdict.changes.iter().collect::<Vec<_>>());
            let enforced = enforced();
            (shadow != enforced).then_some((enforced, shadow))
        }
        _ => None,
    })
}

fn describe(change: &TaintChange) -> String {
    match change {
        TaintChange::Add { taint, .. } => format!("+{taint}"),
        TaintChange::Remove { key, effect, .. } => format!("-{key}:{}", effect.as_str()),
    }
}

pub(crate) fn filter(policies: &PolicySet, call: &Call<'_>, decided: &[Option<Box<Attribution>>]) -> Vec<Divergence> {
    let Call::Filter(asked) = call else { return Vec::new() };
    let enforced = || {
        format!(
            "{} of {} fit",
            decided.iter().filter(|why| why.is_none()).count(),
            decided.len()
        )
    };
    compare(policies, call, enforced, |reply| match reply {
        Reply::Filter(verdicts) => {
            let fits = |verdict: &FilterVerdict| !matches!(verdict, FilterVerdict::Unfit(_));
            let other = asked.clusters.iter().zip(decided).zip(&verdicts);
            let (names, _): (Vec<_>, Vec<_>) = other
                .filter(|((_, decided), verdict)| decided.is_none() != fits(verdict))
                .map(|((cluster, _), verdict)| (cluster.name.as_str(), verdict))
                .unzip();
            let fit = verdicts.iter().filter(|verdict| fits(verdict)).count();
            let shadow = format!("{fit} of {} fit; differs for {}", verdicts.len(), shortened(&names));
            (!names.is_empty()).then(|| (enforced(), shadow))
        }
        _ => None,
    })
}

pub(crate) fn score(policies: &PolicySet, call: &Call<'_>, decided: &[i64]) -> Vec<Divergence> {
    let Call::Score(asked) = call else { return Vec::new() };
    // Only the set of best clusters counts, not the score difference.
    let best = |scores: &[i64]| -> Vec<&str> {
        let most = scores.iter().max();
        let named = asked
            .clusters
            .iter()
            .zip(scores)
            .filter(|(_, score)| Some(*score) == most);
        named.map(|(cluster, _)| cluster.name.as_str()).collect()
    };
    let enforced = || format!("prefers {}", shortened(&best(decided)));
    compare(policies, call, enforced, |reply| match reply {
        Reply::Score(scores) => {
            let shadow = best(&scores);
            (shadow != best(decided)).then(|| (enforced(), format!("prefers {}", shortened(&shadow))))
        }
        _ => None,
    })
}

fn shortened(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(CLUSTERS_NAMED_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(CLUSTERS_NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

pub(crate) fn eviction_check(policies: &PolicySet, call: &Call<'_>, released: bool) -> Vec<Divergence> {
    let enforced = || if released { "released" } else { "held" }.to_owned();
    compare(policies, call, enforced, |reply| match reply {
        Reply::EvictionCheck(EvictionVerdict::Release(reason)) if !released => {
            Some((enforced(), format!("release ({reason})")))
        }
        Reply::EvictionCheck(EvictionVerdict::Hold { reason, .. }) if released => {
            Some((enforced(), format!("hold ({reason})")))
        }
        _ => None,
    })
}

pub(crate) fn interpret(policies: &PolicySet, call: &Call<'_>, decided: Option<&Interpretation>) -> Vec<Divergence> {
    let enforced = || decided.map_or("no rule", |_| "an interpretation").to_owned();
    compare(policies, call, enforced, |reply| match reply {
        Reply::Interpret(Some(answer)) if Some(&answer) != decided => {
            Some((enforced(), "another interpretation".to_owned()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::call::{CallKind, HealthCall, HealthVerdict, Reason};
    use crate::composition::{Composition, HealthRule, Mode};
    use crate::policy::{Capability, Fault, FaultKind, Policy, PolicyEntry};
    use crate::time::Time;

    struct FixedReply(PolicyId, [Capability; 1], Result<Health, FaultKind>);

    impl Policy for FixedReply {
        fn id(&self) -> &PolicyId {
            &self.0
        }
        fn capabilities(&self) -> &[Capability] {
            &self.1
        }
        fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
            match self.2 {
                Ok(health) => Ok(Reply::Health(HealthVerdict {
                    health,
                    reason: Reason::new("Said", "so"),
                })),
                Err(kind) => Err(Fault::new(kind, "no")),
            }
        }
    }

    fn entry(name: &str, mode: Mode, says: Result<Health, FaultKind>) -> PolicyEntry {
        let policy = Arc::new(FixedReply(
            PolicyId::builtin(name),
            [Capability::any(CallKind::Health)],
            says,
        ));
        PolicyEntry {
            policy,
            mode,
            weight: 1,
        }
    }

    fn ask(entries: Vec<PolicyEntry>, rule: HealthRule) -> combine::HealthOutcome {
        let rules = Composition {
            health: rule,
            ..Composition::default()
        };
        let object = Arc::new(json!({}));
        combine::health(
            &PolicySet::composed(entries, rules),
            HealthCall {
                object: &object,
                now: Time::from_millis(0),
            },
        )
    }

    #[test]
    fn a_shadow_is_compared_and_never_counts() {
        let check = |says, expected: Option<&str>| {
            let entries = vec![
                entry("a", Mode::Enforce, Ok(Health::Healthy)),
                entry("b", Mode::Shadow, says),
            ];
            let outcome = ask(entries, HealthRule::WorstOpinion);
            assert_eq!(outcome.health, Health::Healthy);
            let shadows: Vec<_> = outcome
                .diagnostics
                .divergences
                .iter()
                .map(|divergence| divergence.shadow.as_str())
                .collect();
            assert_eq!(shadows, expected.into_iter().collect::<Vec<_>>());
        };
        check(Ok(Health::Healthy), None);
        check(Ok(Health::Unhealthy), Some("Unhealthy (Said: so)"));
        check(Err(FaultKind::Unsupported), None);
        check(Err(FaultKind::Trap), Some("PluginTrapped: no"));
    }

    #[test]
    fn a_policy_that_is_off_is_not_called() {
        let entries = vec![
            entry("a", Mode::Off, Ok(Health::Unhealthy)),
            entry("b", Mode::Enforce, Ok(Health::Healthy)),
        ];
        let outcome = ask(entries, HealthRule::WorstOpinion);
        assert_eq!(
            (outcome.health, outcome.diagnostics.divergences),
            (Health::Healthy, Vec::new())
        );
    }

    #[test]
    fn the_rule_says_whose_health_counts() {
        let check = |says: [Result<Health, FaultKind>; 2], rule, expected| {
            let entries = says.into_iter().map(|says| entry("a", Mode::Enforce, says)).collect();
            assert_eq!(ask(entries, rule).health, expected);
        };
        let (healthy, sick, abstains) = (Ok(Health::Healthy), Ok(Health::Unhealthy), Err(FaultKind::Unsupported));
        check([healthy, sick], HealthRule::FirstOpinion, Health::Healthy);
        check([abstains, sick], HealthRule::FirstOpinion, Health::Unhealthy);
        check(
            [Err(FaultKind::Trap), healthy],
            HealthRule::FirstOpinion,
            Health::Unknown,
        );
        check([healthy, sick], HealthRule::WorstOpinion, Health::Unhealthy);
        check(
            [Err(FaultKind::Trap), healthy],
            HealthRule::WorstOpinion,
            Health::Unknown,
        );
        check([abstains, abstains], HealthRule::WorstOpinion, Health::Healthy);
    }
}
