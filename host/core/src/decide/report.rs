//! Aggregated status of a binding, computed from its Works (Karmada: `pkg/util/helper/workstatus.go`).

use serde_json::Value;

use crate::model::{AggregatedStatusItem, Condition, ConditionStatus, Health};
use crate::time::Time;

/// Report of one Work; the caller excludes terminating Works.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkReport {
    /// Name of the member cluster.
    pub cluster: String,
    /// `Applied` condition of the Work.
    pub applied: Option<Condition>,
    /// Status and health of the manifest; absent until they are collected.
    pub manifest: Option<(Option<Value>, Option<Health>)>,
}

/// Returns the aggregated status, sorted by cluster.
pub fn aggregate(reports: &[WorkReport]) -> Vec<AggregatedStatusItem> {
    let mut items: Vec<_> = reports.iter().map(item).collect();
    items.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    items
}

fn item(report: &WorkReport) -> AggregatedStatusItem {
    let item = AggregatedStatusItem {
        cluster_name: report.cluster.clone(),
        ..AggregatedStatusItem::default()
    };
    let applied = report.applied.as_ref();
    if applied.is_none_or(|condition| condition.status != ConditionStatus::True) {
        let applied_message = applied.map(|condition| condition.message.clone()).unwrap_or_default();
        return AggregatedStatusItem {
            applied_message,
            health: Some(Health::Unknown),
            ..item
        };
    }
    match &report.manifest {
        None => AggregatedStatusItem {
            applied: true,
            health: Some(Health::Unknown),
            ..item
        },
        Some((status, health)) => AggregatedStatusItem {
            applied: true,
            status: status.clone(),
            health: *health,
            ..item
        },
    }
}

/// Returns a pair per cluster in `after`: true if it was healthy before, and true if it is healthy now.
pub fn health_changes<'a>(
    before: &'a [AggregatedStatusItem],
    after: &'a [AggregatedStatusItem],
) -> impl Iterator<Item = (bool, bool)> + 'a {
    let is_healthy = |item: &AggregatedStatusItem| item.health == Some(Health::Healthy);
    after.iter().map(move |item| {
        let before = before.iter().find(|before| before.cluster_name == item.cluster_name);
        (before.is_some_and(is_healthy), is_healthy(item))
    })
}

/// Returns the `FullyApplied` condition: True if every cluster that has or should have a Work reports it as applied.
pub fn fully_applied<'a>(
    items: &[AggregatedStatusItem],
    kept: impl ExactSizeIterator<Item = &'a str>,
    now: Time,
) -> Condition {
    let count = kept.len();
    let kept: Vec<_> = kept.collect();
    let all = count > 0
        && items.len() == count
        && items
            .iter()
            .all(|item| item.applied && kept.contains(&item.cluster_name.as_str()));
    let (status, reason, message) = if all {
        (
            ConditionStatus::True,
            "FullyAppliedSuccess",
            "All works have been successfully applied",
        )
    } else {
        let message = "Failed to apply all works, see status.aggregatedStatus for details";
        (ConditionStatus::False, "FullyAppliedFailed", message)
    };
    Condition::new("FullyApplied", status, reason, message, now)
}
