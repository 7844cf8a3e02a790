//! Health of objects in member clusters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, HealthCall};
use crate::combine::{self, Attribution, HealthOutcome};
use crate::model::Health;
use crate::policy::PolicySet;
use crate::time::Time;

/// Health of objects on which no interpreter has an opinion: none covers the kind, or each of them abstains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Uncovered {
    /// Such objects are healthy, as in Karmada.
    #[default]
    Healthy,
    /// The health of such objects is unknown.
    Unknown,
}

/// Inputs of a health decision.
#[derive(Clone, Copy, Debug)]
pub struct HealthSnapshot<'a> {
    /// Object as the member cluster reports it.
    pub object: &'a Arc<Value>,
    /// Health of the object if no interpreter has an opinion.
    pub uncovered: Uncovered,
    /// Evaluation time.
    pub now: Time,
}

/// Decides on the health of an object.
pub fn decide(snapshot: HealthSnapshot<'_>, policies: &PolicySet) -> HealthOutcome {
    let HealthSnapshot { object, uncovered, now } = snapshot;
    let call = HealthCall { object, now };
    let covered = policies.answering(&Call::Health(call.clone())).next().is_some();
    let mut outcome = combine::health(policies, call);
    // Only an opinion is attributed to a policy. An abstention is none, so it must not turn Unknown into Healthy.
    if outcome.attribution.policy.is_none() && uncovered == Uncovered::Unknown {
        outcome.health = Health::Unknown;
        let none = if covered {
            "every health interpreter abstains"
        } else {
            "no health interpreter covers this kind"
        };
        let message = format!("{none}, and the flags do not count such objects as healthy");
        outcome.attribution = Attribution::rule("NoInterpreter", message);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::{CallKind, Reply};
    use crate::policy::{Capability, Fault, FaultKind, Policy, PolicyId};

    /// Health interpreter that fails in the same way at each call.
    struct Fails(PolicyId, [Capability; 1], FaultKind);

    impl Policy for Fails {
        fn id(&self) -> &PolicyId {
            &self.0
        }
        fn capabilities(&self) -> &[Capability] {
            &self.1
        }
        fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
            Err(Fault::new(self.2, "no"))
        }
    }

    fn check(interpreters: &[FaultKind], uncovered: Uncovered, expected: (Health, &str)) {
        let fails = |kind: &FaultKind| -> Arc<dyn Policy> {
            Arc::new(Fails(
                PolicyId::builtin("fails"),
                [Capability::any(CallKind::Health)],
                *kind,
            ))
        };
        let policies = PolicySet::new(interpreters.iter().map(fails).collect());
        let (object, now) = (Arc::new(json!({})), Time::from_millis(0));
        let outcome = decide(
            HealthSnapshot {
                object: &object,
                uncovered,
                now,
            },
            &policies,
        );
        assert_eq!(
            (outcome.health, outcome.attribution.reason.code.as_str()),
            expected,
            "{interpreters:?} {uncovered:?}"
        );
    }

    #[test]
    fn an_object_without_an_opinion_has_the_health_that_the_operator_sets() {
        use FaultKind::Unsupported;
        for abstentions in [&[] as &[FaultKind], &[Unsupported], &[Unsupported, Unsupported]] {
            check(abstentions, Uncovered::Healthy, (Health::Healthy, "NoInterpreter"));
            check(abstentions, Uncovered::Unknown, (Health::Unknown, "NoInterpreter"));
        }
    }

    #[test]
    fn a_fault_beside_an_abstention_is_unknown() {
        for uncovered in [Uncovered::Healthy, Uncovered::Unknown] {
            check(
                &[FaultKind::Unsupported, FaultKind::Trap],
                uncovered,
                (Health::Unknown, "PluginTrapped"),
            );
        }
    }
}
