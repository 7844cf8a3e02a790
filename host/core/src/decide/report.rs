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
pub fn aggregate(reports: impl IntoIterator<Item = WorkReport>) -> Vec<AggregatedStatusItem> {
    let mut items: Vec<_> = reports.into_iter().map(item).collect();
    items.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    items
}

fn item(report: WorkReport) -> AggregatedStatusItem {
    let item = AggregatedStatusItem {
        cluster_name: report.cluster,
        health: Some(Health::Unknown),
        ..AggregatedStatusItem::default()
    };
    match (report.applied, report.manifest) {
        (Some(applied), _) if applied.status != ConditionStatus::True => AggregatedStatusItem {
            applied_message: applied.message,
            ..item
        },
        (None, _) => item,
        (Some(_), None) => AggregatedStatusItem { applied: true, ..item },
        (Some(_), Some((status, health))) => AggregatedStatusItem {
            applied: true,
            status,
            health,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Time {
        Time::from_millis(5_000)
    }

    fn report(
        cluster: &str,
        applied: Option<ConditionStatus>,
        manifest: Option<(Value, Option<Health>)>,
    ) -> WorkReport {
        WorkReport {
            cluster: cluster.to_owned(),
            applied: applied.map(|status| Condition::new("Applied", status, "R", "admission denied it", now())),
            manifest: manifest.map(|(status, health)| (Some(status), health)),
        }
    }

    fn item(cluster: &str, applied: bool, health: Option<Health>) -> AggregatedStatusItem {
        AggregatedStatusItem {
            cluster_name: cluster.to_owned(),
            applied,
            health,
            ..AggregatedStatusItem::default()
        }
    }

    /// Karmada: `workstatus.go:assembleWorkStatus`.
    #[test]
    fn a_status_counts_only_if_its_work_is_applied() {
        let collected = || Some((json!({"replicas": 2}), Some(Health::Healthy)));
        let unseen = |applied_message: &str| AggregatedStatusItem {
            applied_message: applied_message.to_owned(),
            ..item("m1", false, Some(Health::Unknown))
        };
        let seen = AggregatedStatusItem {
            status: Some(json!({"replicas": 2})),
            ..item("m1", true, Some(Health::Healthy))
        };
        for (applied, manifest, expected) in [
            (None, collected(), unseen("")),
            (Some(ConditionStatus::False), collected(), unseen("admission denied it")),
            (
                Some(ConditionStatus::Unknown),
                collected(),
                unseen("admission denied it"),
            ),
            (Some(ConditionStatus::True), collected(), seen),
            (
                Some(ConditionStatus::True),
                None,
                item("m1", true, Some(Health::Unknown)),
            ),
        ] {
            assert_eq!(aggregate([report("m1", applied, manifest)]), [expected], "{applied:?}");
        }
    }

    #[test]
    fn the_aggregated_status_is_sorted_by_cluster() {
        let reports = ["m3", "m1", "m2"].map(|cluster| report(cluster, Some(ConditionStatus::True), None));
        let clusters: Vec<_> = aggregate(reports).into_iter().map(|item| item.cluster_name).collect();
        assert_eq!(clusters, ["m1", "m2", "m3"]);
    }

    #[test]
    fn a_cluster_is_compared_with_its_own_earlier_report() {
        let before = [
            item("m1", true, Some(Health::Healthy)),
            item("m2", true, Some(Health::Unhealthy)),
        ];
        let after = [
            item("m2", true, Some(Health::Healthy)),
            item("m1", true, Some(Health::Unknown)),
            item("m3", true, Some(Health::Healthy)),
            item("m4", true, None),
        ];
        let changes: Vec<_> = health_changes(&before, &after).collect();
        assert_eq!(changes, [(false, true), (true, false), (false, true), (false, false)]);
    }

    /// Karmada: `workstatus.go:AggregateResourceBindingWorkStatus`, with the condition of `generateFullyAppliedCondition`.
    #[test]
    fn a_binding_is_fully_applied_if_every_cluster_with_a_work_reports_it_as_applied() {
        let check = |items: &[AggregatedStatusItem], kept: &[&str], expected: ConditionStatus| {
            let condition = fully_applied(items, kept.iter().copied(), now());
            let reason = match expected {
                ConditionStatus::True => "FullyAppliedSuccess",
                _ => "FullyAppliedFailed",
            };
            assert_eq!(
                (condition.status, condition.reason.as_str()),
                (expected, reason),
                "{items:?} {kept:?}"
            );
            assert_eq!(condition.type_, "FullyApplied");
        };
        let (one, other) = (item("m1", true, None), item("m2", true, None));
        let failed = item("m2", false, None);
        check(&[one.clone(), other.clone()], &["m1", "m2"], ConditionStatus::True);
        check(&[one.clone(), failed], &["m1", "m2"], ConditionStatus::False);
        check(std::slice::from_ref(&one), &["m1", "m2"], ConditionStatus::False);
        check(&[one.clone(), other], &["m1", "m3"], ConditionStatus::False);
        check(&[one], &[], ConditionStatus::False);
        check(&[], &[], ConditionStatus::False);
    }
}
