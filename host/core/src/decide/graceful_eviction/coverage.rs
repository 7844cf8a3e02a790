//! Coverage check: compares a healthy report with the replicas placed on its cluster.
//!
//! A report has no creation time. When replicas move to a cluster that already has some, its report remains `Healthy`
//! for the old number until the new replicas are dispatched, started and observed. Karmada accepts this report and
//! deletes the old copy too early (see its pull request 7129). Here, the replicas in the report have to reach the
//! number placed on the cluster. Until then, eviction checks see the health as unknown.
//!
//! A task with purge mode `Directly` keeps no copy: the Work of its cluster is deleted at once. If that cluster is not
//! ready, the Work stays, and Karmada applies nothing to the other clusters until the task ends (Karmada:
//! `pkg/controllers/binding/binding_controller.go`). The added replicas of the replacement would never be reported, so
//! its report counts without them.
//!
//! A report without a replica count is accepted, because there is nothing to compare: an interpreter of a kind with
//! replicas should reflect `availableReplicas`. The replicas of a workload can differ from its placement: its cluster
//! scales it (a `HorizontalPodAutoscaler` with retained replicas) or an override changes them. Such a workload may stay
//! below the placement and then keeps the old copy until the grace period ends.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask, Health, PurgeMode, Reports};

/// Rule for accepting a healthy report as one of a replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementHealth {
    /// Accept it if it has at least as many available replicas as are placed on the cluster, or no replica count.
    #[default]
    Covering,
    /// Accept it regardless of its replica count (Karmada).
    Reported,
}

/// Cluster that reports `Healthy` with fewer replicas than are placed on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortfall<'a> {
    cluster: &'a str,
    available: i64,
    placed: i32,
}

impl fmt::Display for Shortfall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            available,
            placed,
        } = self;
        write!(f, "{cluster} reports Healthy with {available} of {placed} replicas")
    }
}

/// Returns true if the replacement waits for the end of the task: its cluster is to be purged directly, and is not ready.
/// `sources` are the known clusters.
pub(super) fn waits_for_end(sources: &[Cluster], task: &GracefulEvictionTask) -> bool {
    let is_ready = |cluster: &Cluster| cluster.name == task.from_cluster && cluster.is_ready();
    task.purge_mode == Some(PurgeMode::Directly) && !sources.iter().any(is_ready)
}

/// Returns the healthy reports that do not cover their placement, in target order.
pub(super) fn shortfalls(binding: &Binding, rule: ReplacementHealth) -> Vec<Shortfall<'_>> {
    if rule == ReplacementHealth::Reported {
        return Vec::new();
    }
    let mut reports = Reports::new(&binding.status.aggregated_status);
    let targets = binding.spec.clusters.iter().filter(|target| target.replicas > 0);
    let short = targets.filter_map(|target| {
        let item = reports
            .of(&target.name)
            .filter(|item| item.health == Some(Health::Healthy))?;
        let available = available(item.status.as_ref()?)?;
        let shortfall = Shortfall {
            cluster: &target.name,
            available,
            placed: target.replicas,
        };
        (available < i64::from(target.replicas)).then_some(shortfall)
    });
    short.collect()
}

/// Returns the reports, with unknown health for those with a shortfall.
pub(super) fn masked(observed: &[AggregatedStatusItem], shortfalls: &[Shortfall<'_>]) -> Vec<AggregatedStatusItem> {
    let mut masked = observed.to_vec();
    for item in &mut masked {
        if shortfalls
            .iter()
            .any(|shortfall| shortfall.cluster == item.cluster_name)
        {
            item.health = Some(Health::Unknown);
        }
    }
    masked
}

/// Returns the available replicas in a status; `None` if it has no replica counters. Go omits counters that are 0, so
/// a counter that is missing beside another one is 0.
fn available(status: &Value) -> Option<i64> {
    let number = |field: &str| status.get(field).and_then(Value::as_i64);
    number("availableReplicas")
        .or_else(|| number("readyReplicas"))
        .or_else(|| number("replicas").map(|_| 0))
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
        check(
            2,
            "Healthy",
            json!({"readyReplicas": 2, "availableReplicas": 1}),
            Some(1),
        );
        // Go omits zeros.
        check(2, "Healthy", json!({"replicas": 2}), Some(0));
        // No replicas are placed, or none are counted.
        check(0, "Healthy", json!({"replicas": 0}), None);
        check(2, "Healthy", json!({"active": 2}), None);
        check(2, "Healthy", json!(null), None);
        check(2, "Healthy", json!({"availableReplicas": "many"}), None);
        // Only healthy reports are checked.
        check(4, "Unhealthy", json!({"availableReplicas": 2}), None);
        check(4, "Unknown", json!({"availableReplicas": 2}), None);
    }
}
