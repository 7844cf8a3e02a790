//! Health of objects in member clusters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{Call, HealthCall};
use crate::combine::{self, Because, HealthOutcome};
use crate::model::Health;
use crate::policy::PolicySet;
use crate::time::Time;

/// Health of objects without an interpreter.
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
    /// Health of the object if it has no interpreter.
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
    if !covered && uncovered == Uncovered::Unknown {
        outcome.health = Health::Unknown;
        let message = "no health interpreter covers this kind, and the flags do not count such objects as healthy";
        outcome.because = Because::rule("NoInterpreter", message);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_interprets_is_as_the_operator_says() {
        let check = |uncovered, expected| {
            let (object, now) = (Arc::new(json!({})), Time::from_millis(0));
            let outcome = decide(HealthSnapshot { object: &object, uncovered, now }, &PolicySet::default());
            assert_eq!((outcome.health, outcome.because.reason.code.as_str()), (expected, "NoInterpreter"));
        };
        check(Uncovered::Healthy, Health::Healthy);
        check(Uncovered::Unknown, Health::Unknown);
    }
}
