//! Whether a healthy report covers what is placed on its cluster now.
//!
//! A report says nothing about when it was made. When replicas move to a cluster that has some already, it goes on
//! saying `Healthy` about the few that it had, until the new ones are dispatched, started and looked at. Karmada takes
//! that word and lets the old copy go (its pull request 7129 tells how). Here the replicas that the same report shows
//! have to reach the number that is placed there; until they do, eviction checks are told that the health is unknown.
//!
//! A report without any number of replicas is taken at its word: there is nothing to hold against it. A workload whose
//! replicas are not the placement's, because its cluster scales it (a `HorizontalPodAutoscaler` with retained replicas)
//! or an override does, may stay below what is placed there, and keeps the old copy until the grace period is over.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{AggregatedStatusItem, Binding, Health, Reports};

/// When a healthy report counts as one of a replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementHealth {
    /// When it shows at least as many available replicas as are placed on the cluster.
    #[default]
    Covering,
    /// Whatever number of replicas it shows (Karmada).
    Reported,
}

/// A cluster that reports `Healthy` with fewer replicas than are placed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortfall<'a> {
    cluster: &'a str,
    available: i64,
    placed: i32,
}

impl fmt::Display for Shortfall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, available, placed } = self;
        write!(f, "{cluster} reports Healthy with {available} of {placed} replicas")
    }
}

/// The healthy reports that do not cover their placement, in the order of the targets.
pub(super) fn shortfalls(binding: &Binding, rule: ReplacementHealth) -> Vec<Shortfall<'_>> {
    if rule == ReplacementHealth::Reported {
        return Vec::new();
    }
    let mut reports = Reports::new(&binding.status.aggregated_status);
    let targets = binding.spec.clusters.iter().filter(|target| target.replicas > 0);
    let short = targets.filter_map(|target| {
        let item = reports.of(&target.name).filter(|item| item.health == Some(Health::Healthy))?;
        let available = available(item.status.as_ref()?)?;
        let shortfall = Shortfall { cluster: &target.name, available, placed: target.replicas };
        (available < i64::from(target.replicas)).then_some(shortfall)
    });
    short.collect()
}

/// The reports with the health of those that fall short unknown.
pub(super) fn masked(observed: &[AggregatedStatusItem], shortfalls: &[Shortfall<'_>]) -> Vec<AggregatedStatusItem> {
    let mut masked = observed.to_vec();
    for item in &mut masked {
        if shortfalls.iter().any(|shortfall| shortfall.cluster == item.cluster_name) {
            item.health = Some(Health::Unknown);
        }
    }
    masked
}

/// The replicas that a status shows at work; none if it counts no replicas. Go leaves out a counter that is 0, so one
/// that is missing beside another is 0.
fn available(status: &Value) -> Option<i64> {
    let number = |field: &str| status.get(field).and_then(Value::as_i64);
    number("availableReplicas").or_else(|| number("readyReplicas")).or_else(|| number("replicas").map(|_| 0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_healthy_report_has_to_show_as_many_replicas_as_are_placed() {
        let check = |placed: i32, health: &str, status: Value, expected: Option<i64>| {
            let binding: Binding = serde_json::from_value(json!({
                "name": "b",
                "spec": {
                    "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                    "clusters": [{"name": "m1", "replicas": placed}, {"name": "m2"}],
                },
                "status": {"aggregatedStatus": [{"clusterName": "m1", "health": health, "status": status}]},
            }))
            .unwrap();
            let found = shortfalls(&binding, ReplacementHealth::Covering);
            let available: Vec<_> = found.iter().map(|shortfall| shortfall.available).collect();
            assert_eq!(available, Vec::from_iter(expected), "{placed} {health} {status}");
            assert_eq!(shortfalls(&binding, ReplacementHealth::Reported), []);
            let masked = masked(&binding.status.aggregated_status, &found);
            let unknown = masked.iter().any(|item| item.health == Some(Health::Unknown));
            assert_eq!(unknown, expected.is_some() || health == "Unknown");
        };
        check(4, "Healthy", json!({"replicas": 2, "availableReplicas": 2}), Some(2));
        check(2, "Healthy", json!({"replicas": 2, "availableReplicas": 2}), None);
        check(2, "Healthy", json!({"replicas": 3, "availableReplicas": 3}), None);
        check(2, "Healthy", json!({"replicas": 2, "readyReplicas": 2}), None);
        check(2, "Healthy", json!({"readyReplicas": 2, "availableReplicas": 1}), Some(1));
        // Go leaves out zeros.
        check(2, "Healthy", json!({"replicas": 2}), Some(0));
        // Nothing is placed, or nothing is counted.
        check(0, "Healthy", json!({"replicas": 0}), None);
        check(2, "Healthy", json!({"active": 2}), None);
        check(2, "Healthy", json!(null), None);
        check(2, "Healthy", json!({"availableReplicas": "many"}), None);
        // Whoever does not claim to be healthy needs no second look.
        check(4, "Unhealthy", json!({"availableReplicas": 2}), None);
        check(4, "Unknown", json!({"availableReplicas": 2}), None);
    }
}
