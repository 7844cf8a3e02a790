//! Aggregation of the member clusters' reports into a template's status. (Karmada:
//! `pkg/resourceinterpreter/default/native/aggregatestatus.go`.)
//!
//! An item without a status contributes nothing, but it counts for conditions that must hold in all clusters. Fields
//! that a rule does not compute keep their value in the template.

use std::cmp::max;

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::time::Time;
use serde_json::{Map, Value, json};

use crate::reflect::{Counter, workload_counters, write_counter};
use crate::{aggregate_job, aggregate_load_balancer, aggregate_pod};
use bulkhead_core::shape::{Malformed, count, field, list, members, text};

/// Result of a rule for the template's status.
#[derive(Debug, PartialEq)]
pub(crate) enum Aggregated {
    /// There is no rule for the kind.
    NoRule,
    /// The status does not change.
    Unchanged,
    /// The new status.
    Status(Map<String, Value>),
}

/// Returns the new status of a template.
pub(crate) fn status(
    kind: (&str, &str),
    object: &Value,
    items: &[AggregatedStatusItem],
    now: Time,
) -> Result<Aggregated, Malformed> {
    if let Some(counters) = workload_counters(kind) {
        return workload(kind.1, object, items, counters).map(Aggregated::Status);
    }
    match kind {
        ("v1", "Service") if text(object, &["spec", "type"])? != "LoadBalancer" => Ok(Aggregated::Unchanged),
        ("v1", "Service") | ("networking.k8s.io/v1", "Ingress") => {
            aggregate_load_balancer::status(items).map(Aggregated::Status)
        }
        ("batch/v1", "Job") => aggregate_job::status(object, items, now),
        ("batch/v1", "CronJob") => cron_job(object, items).map(Aggregated::Status),
        // Without items Karmada does not change the pod's status.
        ("v1", "Pod") if items.is_empty() => Ok(Aggregated::Unchanged),
        ("v1", "Pod") => aggregate_pod::status(items).map(Aggregated::Status),
        ("v1", "PersistentVolume") => volume(object, items).map(Aggregated::Status),
        ("v1", "PersistentVolumeClaim") => claim(object, items).map(Aggregated::Status),
        ("policy/v1", "PodDisruptionBudget") => disruption_budget(object, items).map(Aggregated::Status),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => autoscaler(object, items).map(Aggregated::Status),
        _ => Ok(Aggregated::NoRule),
    }
}

/// Returns the template's own status, the starting point of the aggregation.
pub(crate) fn old_status(object: &Value) -> Result<Map<String, Value>, Malformed> {
    Ok(members(object, &["status"])?.cloned().unwrap_or_default())
}

/// Returns the collected statuses, each with its cluster.
pub(crate) fn collected(items: &[AggregatedStatusItem]) -> impl Iterator<Item = (&str, &Value)> {
    items.iter().filter_map(|item| item.status.as_ref().map(|status| (item.cluster_name.as_str(), status)))
}

/// Returns the sum of a counter over all clusters.
pub(crate) fn sum(items: &[AggregatedStatusItem], name: &str) -> Result<i64, Malformed> {
    let mut total = 0_i64;
    for (cluster, status) in collected(items) {
        let in_cluster = |error: Malformed| Malformed::new(format!("status in {cluster}: {error}"));
        total = total.saturating_add(count(status, &[name]).map_err(in_cluster)?);
    }
    Ok(total)
}

/// Returns the time in a field.
pub(crate) fn time(object: &Value, name: &str) -> Result<Option<Time>, Malformed> {
    let Some(value) = field(object, &[name])? else { return Ok(None) };
    let malformed = |_| Malformed::new(format!("{name} is not a time"));
    serde_json::from_value(value.clone()).map(Some).map_err(malformed)
}

fn workload(
    kind: &str,
    object: &Value,
    items: &[AggregatedStatusItem],
    counters: &[Counter],
) -> Result<Map<String, Value>, Malformed> {
    let mut status = old_status(object)?;
    for counter in counters {
        write_counter(&mut status, counter, sum(items, counter.name)?);
    }
    let generation = count(object, &["metadata", "generation"])?;
    let mut up_to_date = 0;
    for (_, member) in collected(items) {
        let member_generation = count(member, &["generation"])?;
        let template_generation = count(member, &["resourceTemplateGeneration"])?;
        // For StatefulSet only, Karmada compares with the member's generation instead of the template's.
        let wanted = if kind == "StatefulSet" { member_generation } else { generation };
        if count(member, &["observedGeneration"])? >= member_generation && template_generation >= wanted {
            up_to_date += 1;
        }
    }
    if up_to_date == items.len() {
        let counter = Counter { name: "observedGeneration", omitted_when_zero: true };
        write_counter(&mut status, &counter, generation);
    }
    Ok(status)
}

fn cron_job(object: &Value, items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let mut status = old_status(object)?;
    let mut active = Vec::new();
    let (mut scheduled, mut succeeded) = (None, None);
    for (_, member) in collected(items) {
        active.extend_from_slice(list(member, &["active"])?);
        scheduled = max(scheduled, time(member, "lastScheduleTime")?);
        succeeded = max(succeeded, time(member, "lastSuccessfulTime")?);
    }
    let times = [("lastScheduleTime", scheduled), ("lastSuccessfulTime", succeeded)];
    let times = times.map(|(name, time)| (name, time.map(|time| json!(time))));
    let active = ("active", (!active.is_empty()).then_some(Value::Array(active)));
    for (name, value) in times.into_iter().chain([active]) {
        match value {
            Some(value) => status.insert(name.to_owned(), value),
            None => status.remove(name),
        };
    }
    Ok(status)
}

fn with_phase(object: &Value, phase: &str) -> Result<Map<String, Value>, Malformed> {
    let mut status = old_status(object)?;
    if phase.is_empty() {
        status.remove("phase");
    } else {
        status.insert("phase".to_owned(), phase.into());
    }
    Ok(status)
}

/// Returns the first phase of `priorities` that any cluster is in; a missing status counts as Pending.
pub(crate) fn leading_phase(
    items: &[AggregatedStatusItem],
    priorities: &[&'static str],
) -> Result<&'static str, Malformed> {
    let mut phases = Vec::new();
    for item in items {
        phases.push(item.status.as_ref().map_or(Ok("Pending"), |status| text(status, &["phase"]))?);
    }
    Ok(priorities.iter().find(|phase| phases.contains(*phase)).copied().unwrap_or_default())
}

fn volume(object: &Value, items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    with_phase(object, leading_phase(items, &["Failed", "Pending", "Available", "Bound", "Released"])?)
}

/// Aggregates claims. The phase is Lost if any claim is; otherwise that of the last claim that is not Bound;
/// otherwise Bound, even without any cluster.
fn claim(object: &Value, items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let mut phase = "Bound";
    for (_, member) in collected(items) {
        match text(member, &["phase"])? {
            "Lost" => return with_phase(object, "Lost"),
            "Bound" => {}
            other => phase = other,
        }
    }
    with_phase(object, phase)
}

fn disruption_budget(object: &Value, items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let mut status = old_status(object)?;
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        write_counter(&mut status, &Counter { name, omitted_when_zero: false }, sum(items, name)?);
    }
    let mut disrupted = Map::new();
    for (cluster, member) in collected(items) {
        let pods = members(member, &["disruptedPods"])?.into_iter().flatten();
        disrupted.extend(pods.map(|(pod, since)| (format!("{cluster}/{pod}"), since.clone())));
    }
    if disrupted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".to_owned(), Value::Object(disrupted));
    }
    Ok(status)
}

/// Aggregates autoscalers. `currentMetrics` is null unless the template has some, as serialized by Karmada's typed
/// struct.
fn autoscaler(object: &Value, items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let mut status = old_status(object)?;
    let current = Counter { name: "currentReplicas", omitted_when_zero: true };
    write_counter(&mut status, &current, sum(items, current.name)?);
    let desired = Counter { name: "desiredReplicas", omitted_when_zero: false };
    write_counter(&mut status, &desired, sum(items, desired.name)?);
    status.entry("currentMetrics").or_insert(Value::Null);
    Ok(status)
}

/// Returns items for tests from a cluster's name and its status; null for none.
#[cfg(test)]
pub(crate) fn items(statuses: &[(&str, Value)]) -> Vec<AggregatedStatusItem> {
    let item = |(cluster, status): &(&str, Value)| AggregatedStatusItem {
        cluster_name: (*cluster).to_owned(),
        status: Some(status.clone()).filter(|status| !status.is_null()),
        ..AggregatedStatusItem::default()
    };
    statuses.iter().map(item).collect()
}

/// Checks a new status; null stands for `NoRule` and `"unchanged"` for `Unchanged`.
#[cfg(test)]
pub(crate) fn check(kind: (&str, &str), object: Value, statuses: &[(&str, Value)], expected: Result<Value, &str>) {
    let actual = status(kind, &object, &items(statuses), Time::from_millis(0)).map(|aggregated| match aggregated {
        Aggregated::NoRule => Value::Null,
        Aggregated::Unchanged => json!("unchanged"),
        Aggregated::Status(status) => Value::Object(status),
    });
    let actual = actual.map_err(|error| error.to_string());
    assert_eq!(actual, expected.map_err(str::to_owned), "{kind:?} {object} from {statuses:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(replicas: i64, generations: (i64, i64, i64)) -> Value {
        let (generation, observed, template) = generations;
        json!({
            "replicas": replicas, "generation": generation, "observedGeneration": observed,
            "resourceTemplateGeneration": template,
        })
    }

    #[test]
    fn deployments_sum_and_advance_when_all_clusters_are_up_to_date() {
        let check = |old: Value, statuses: &[(&str, Value)], expected: Result<Value, &str>| {
            check(("apps/v1", "Deployment"), json!({"metadata": {"generation": 2}, "status": old}), statuses, expected);
        };
        let current = [("m1", member(2, (1, 1, 2))), ("m2", member(1, (4, 4, 2)))];
        check(Value::Null, &current, Ok(json!({"replicas": 3, "observedGeneration": 2})));
        let kept = json!({"collisionCount": 2, "conditions": [], "readyReplicas": 9});
        let expected = json!({"collisionCount": 2, "conditions": [], "replicas": 3, "observedGeneration": 2});
        check(kept, &current, Ok(expected));
        let behind = [("m1", member(2, (1, 1, 1))), ("m2", member(1, (4, 4, 2)))];
        check(json!({"observedGeneration": 1}), &behind, Ok(json!({"replicas": 3, "observedGeneration": 1})));
        let unseen = [("m1", member(2, (2, 1, 2)))];
        check(Value::Null, &unseen, Ok(json!({"replicas": 2})));
        let silent = [("m1", member(2, (1, 1, 2))), ("m2", Value::Null)];
        check(Value::Null, &silent, Ok(json!({"replicas": 2})));
        check(json!({"replicas": 3}), &[], Ok(json!({"observedGeneration": 2})));
        let malformed = "status in m1: replicas is a string, not an integer";
        check(Value::Null, &[("m1", json!({"replicas": "many"}))], Err(malformed));
    }

    #[test]
    fn stateful_sets_compare_with_the_members_generation() {
        let check = |status: Value, expected: Value| {
            let object = json!({"metadata": {"generation": 2}});
            check(("apps/v1", "StatefulSet"), object, &[("m1", status)], Ok(expected));
        };
        let reported = json!({"replicas": 2, "generation": 1, "resourceTemplateGeneration": 2});
        check(reported, json!({"replicas": 2, "availableReplicas": 0}));
        let expected = json!({"replicas": 2, "availableReplicas": 0, "observedGeneration": 2});
        check(member(2, (1, 1, 1)), expected);
    }

    #[test]
    fn daemon_sets_print_their_zeros() {
        let expected = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 0,
        });
        let reported = [("m1", json!({"desiredNumberScheduled": 1})), ("m2", json!({"desiredNumberScheduled": 2}))];
        check(("apps/v1", "DaemonSet"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn cron_jobs_take_the_latest_times() {
        let (early, late) = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z");
        let reported = [
            ("m1", json!({"active": [{"name": "a"}], "lastScheduleTime": late})),
            ("m2", json!({"active": [{"name": "b"}], "lastScheduleTime": early})),
        ];
        let expected = json!({"active": [{"name": "a"}, {"name": "b"}], "lastScheduleTime": late});
        check(("batch/v1", "CronJob"), json!({}), &reported, Ok(expected));
        let old = json!({"status": {"active": [{"name": "a"}], "lastScheduleTime": early}});
        check(("batch/v1", "CronJob"), old, &[], Ok(json!({})));
    }

    #[test]
    fn phases_of_volumes_and_claims() {
        let check = |kind: &str, phases: &[Option<&str>], expected: &str| {
            let status = |phase: Option<&str>| phase.map_or(Value::Null, |phase| json!({"phase": phase}));
            let statuses: Vec<_> = phases.iter().map(|phase| ("m", status(*phase))).collect();
            check(("v1", kind), json!({}), &statuses, Ok(json!({"phase": expected})));
        };
        check("PersistentVolume", &[Some("Pending"), Some("Failed")], "Failed");
        check("PersistentVolume", &[Some("Available"), Some("Pending")], "Pending");
        check("PersistentVolume", &[Some("Bound"), None], "Pending");
        check("PersistentVolume", &[Some("Released"), Some("Bound")], "Bound");
        check("PersistentVolumeClaim", &[], "Bound");
        check("PersistentVolumeClaim", &[None], "Bound");
        check("PersistentVolumeClaim", &[Some("Pending"), Some("Bound")], "Pending");
        check("PersistentVolumeClaim", &[Some("Lost"), Some("Pending")], "Lost");
    }

    #[test]
    fn budgets_and_autoscalers_sum() {
        let reported = [
            ("m1", json!({"currentHealthy": 1, "disruptedPods": {"p": "t"}})),
            ("m2", json!({"currentHealthy": 2, "desiredHealthy": 1})),
        ];
        let expected = json!({
            "currentHealthy": 3, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 0,
            "disruptedPods": {"m1/p": "t"},
        });
        check(("policy/v1", "PodDisruptionBudget"), json!({}), &reported, Ok(expected));
        let reported =
            [("m1", json!({"currentReplicas": 1, "desiredReplicas": 2})), ("m2", json!({"desiredReplicas": 2}))];
        let expected = json!({"currentMetrics": null, "currentReplicas": 1, "desiredReplicas": 4});
        check(("autoscaling/v2", "HorizontalPodAutoscaler"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn other_kinds_have_no_rule() {
        check(("example.io/v1", "Widget"), json!({}), &[], Ok(Value::Null));
        check(("v1", "Service"), json!({"spec": {"type": "ClusterIP"}}), &[], Ok(json!("unchanged")));
        check(("v1", "Pod"), json!({"status": {"phase": "Running"}}), &[], Ok(json!("unchanged")));
    }
}
