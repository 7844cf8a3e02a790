//! Outlines of decisions: the parts of their inputs that an index of a journal needs.

use std::fmt;
use std::sync::Arc;

use bulkhead_core::journal::{DecisionInput, DecisionRecord, Limits, PolicySlot, RecordedCall};
use bulkhead_core::time::Time;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::cluster_outline::ClusterOutline;
use crate::decode::{DecisionForm, Fleet, FleetLookup};
use crate::stored::{Stored, StoredDecision};

/// Outline of a decision. Reading it costs a fraction of the whole, because bindings and objects are skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionOutline {
    /// Evaluation time.
    pub now: Time,
    /// Digest of the stored inputs, as 32 hexadecimal digits.
    pub snapshot: String,
    /// True for the placement of a binding, which reads all clusters.
    pub is_placement: bool,
    /// Rate limits under which an eviction got its slot; `None` for other decisions.
    pub limits: Option<Limits>,
    /// Policies that could be called, in order.
    pub policies: Vec<PolicySlot>,
    /// Recorded calls, in order.
    pub calls: Vec<RecordedCall>,
    /// Time until the next check, in milliseconds, if the plan has one.
    pub again_after_ms: Option<i64>,
    /// Clusters that the decision read, sorted by name.
    pub clusters: Fleet<ClusterOutline>,
}

impl From<&StoredDecision> for DecisionOutline {
    fn from(stored: &StoredDecision) -> Self {
        let DecisionRecord {
            now,
            input,
            policies,
            calls,
            clusters,
            ..
        } = &stored.decision;
        let limits = match input {
            DecisionInput::Evict { limits, .. } => Some(limits.clone()),
            _ => None,
        };
        Self {
            now: *now,
            snapshot: stored.snapshot.clone(),
            is_placement: matches!(input, DecisionInput::Schedule { .. }),
            limits,
            policies: policies.clone(),
            calls: calls.clone(),
            again_after_ms: stored.again_after_ms(),
            clusters: clusters.iter().map(|cluster| Arc::new((&**cluster).into())).collect(),
        }
    }
}

impl Stored {
    /// Returns the record with the outline of its decision.
    pub fn into_outline(self) -> Stored<DecisionOutline> {
        Stored {
            record: self.record,
            decision: self.decision.map(|decision| DecisionOutline::from(&*decision).into()),
        }
    }
}

impl StoredDecision {
    /// Returns the time until the next check, in milliseconds, if the plan has one.
    pub fn again_after_ms(&self) -> Option<i64> {
        Plan::deserialize(&self.decision.plan).ok()?.again_after_ms
    }
}

/// Stored form of an outline.
#[derive(Debug, Deserialize)]
pub struct OutlineHead {
    /// Key of the clusters; absent if the decision read none.
    fleet: Option<String>,
    snapshot: String,
    /// Milliseconds since the Unix epoch.
    now: i64,
    question: Question,
    policies: Vec<PolicySlot>,
    calls: Vec<RecordedCall>,
    plan: Plan,
}

/// Input of a decision, which has one of the members.
#[derive(Debug, Deserialize)]
struct Question {
    evict: Option<Evict>,
    schedule: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Evict {
    limits: Limits,
}

/// Plan, of which only the time until the next check is read. A plan may also be a word, or null.
#[derive(Debug, Default)]
struct Plan {
    again_after_ms: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlanMembers {
    again_after_ms: Option<i64>,
    wait: Option<Wait>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wait {
    again_after_ms: Option<i64>,
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlanVisitor;

        impl<'de> Visitor<'de> for PlanVisitor {
            type Value = Plan;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a plan")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Plan, A::Error> {
                let PlanMembers { again_after_ms, wait } =
                    PlanMembers::deserialize(MapAccessDeserializer::new(members))?;
                let of_wait = wait.and_then(|wait| wait.again_after_ms);
                Ok(Plan {
                    again_after_ms: again_after_ms.or(of_wait),
                })
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Plan, E> {
                Ok(Plan::default())
            }

            fn visit_unit<E: Error>(self) -> Result<Plan, E> {
                Ok(Plan::default())
            }
        }

        deserializer.deserialize_any(PlanVisitor)
    }
}

impl DecisionForm for DecisionOutline {
    type Head = OutlineHead;
    type Cluster = ClusterOutline;

    fn complete(head: OutlineHead, _payload: &[u8], fleet: &FleetLookup<'_, ClusterOutline>) -> Result<Self, String> {
        Ok(Self {
            now: Time::from_millis(head.now),
            snapshot: head.snapshot,
            is_placement: head.question.schedule.is_some(),
            limits: head.question.evict.map(|evict| evict.limits),
            policies: head.policies,
            calls: head.calls,
            again_after_ms: head.plan.again_after_ms,
            clusters: head.fleet.map(|key| fleet(&key)).transpose()?.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_has_the_time_until_its_next_check_itself_or_in_its_wait() {
        for (plan, expected) in [
            (json!({"held": [], "againAfterMs": 5}), Some(5)),
            (json!({"wait": {"because": {}, "againAfterMs": 7}}), Some(7)),
            (json!({"wait": {"leftMs": 9}}), None),
            (json!({"keep": "forever"}), None),
            (json!("rest"), None),
            (json!(null), None),
        ] {
            let again = |plan: Plan| plan.again_after_ms;
            let of_value = Plan::deserialize(&plan).map(again).unwrap();
            let of_text = serde_json::from_str(&plan.to_string()).map(again).unwrap();
            assert_eq!((of_value, of_text), (expected, expected), "{plan}");
        }
    }
}
