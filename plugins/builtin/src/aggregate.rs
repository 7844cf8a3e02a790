//! Aggregation of the member clusters' reports into a template's status. (Karmada:
//! `pkg/resourceinterpreter/default/native/aggregatestatus.go`.)
//!
//! An item without a status contributes nothing, but it counts for conditions that must hold in all clusters.
//! Workloads keep the fields of the template's status that the rule does not compute; all other kinds get a new
//! status. A status that does not change stays as it is, so that an absent status stays absent.

use std::cmp::max;

use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::shape::{Malformed, count, list, members, text};
use bulkhead_core::time::Time;
use bulkhead_core::typed::Shape;
use serde_json::{Map, Value, json};

use crate::aggregated_items::{collected, leading_phase, sums, time};
use crate::{aggregate_job, aggregate_load_balancer, aggregate_pod, reflect, statuses};

/// Result of a rule for the template's status.
#[derive(Debug, PartialEq)]
pub(crate) enum Aggregated {
    /// There is no rule for the kind.
    NoRule,
    /// The status does not change.
    Unchanged,
    /// The new status.
    Status(Value),
}

/// Returns the new status of a template. The list of items may be missing.
pub(crate) fn status(
    kind: (&str, &str),
    object: &Value,
    items: Option<&[AggregatedStatusItem]>,
    now: Time,
) -> Result<Aggregated, Malformed> {
    let Some(shape) = statuses::of(kind) else { return Ok(Aggregated::NoRule) };
    statuses::check_object(kind, object)?;
    let old = statuses::status(object);
    let is_settled = match kind {
        ("v1", "Service") => text(object, &["spec", "type"])? != "LoadBalancer",
        ("batch/v1", "Job") => aggregate_job::finished(&shape.printed(old))?.is_some(),
        _ => false,
    };
    if is_settled {
        return Ok(Aggregated::Unchanged);
    }
    // Without a list Karmada prints the pod's status anew, and a missing one as an empty one.
    if kind == ("v1", "Pod") && items.is_none() {
        return Ok(Aggregated::Status(shape.printed(old)));
    }
    let items = items.unwrap_or_default();
    let counters = reflect::counters(kind);
    for (cluster, member) in collected(items) {
        let generations = if counters.is_some() { statuses::GENERATIONS } else { Shape::Any };
        let checked = shape.check(member, "").and_then(|()| generations.check(member, ""));
        checked.map_err(|error| Malformed::new(format!("status in {cluster}: {error}")))?;
    }
    if let Some(counters) = counters {
        return workload(kind.1, shape, object, items, counters);
    }
    let new = match kind {
        ("v1", "Service") | ("networking.k8s.io/v1", "Ingress") => aggregate_load_balancer::status(kind, items)?,
        ("batch/v1", "Job") => aggregate_job::status(&shape.printed(old), items, now)?,
        ("batch/v1", "CronJob") => cron_job(items)?,
        ("v1", "Pod") => aggregate_pod::status(items)?,
        ("v1", "PersistentVolume") => volume(items)?,
        ("v1", "PersistentVolumeClaim") => claim(items)?,
        ("policy/v1", "PodDisruptionBudget") => disruption_budget(items)?,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => autoscaler(items)?,
        _ => return Ok(Aggregated::NoRule),
    };
    // An empty list of a new status counts as a change where the template has no list, as in Karmada.
    Ok(if shape.is_same(old, &new) { Aggregated::Unchanged } else { Aggregated::Status(shape.printed(&new)) })
}

/// Aggregates workloads. The generation is observed when every cluster has observed it; without any cluster it is.
fn workload(
    kind: &str,
    shape: Shape,
    object: &Value,
    items: &[AggregatedStatusItem],
    counters: &[&str],
) -> Result<Aggregated, Malformed> {
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
    let mut computed = sums(items, counters)?;
    if up_to_date == items.len() {
        computed.insert("observedGeneration".to_owned(), generation.into());
    }
    let mut is_same = true;
    for (name, value) in &computed {
        is_same &= *value == json!(count(object, &["status", name])?);
    }
    // Of a DaemonSet only, Karmada compares the whole status, so that one with conditions is always printed anew.
    if kind == "DaemonSet" {
        let rest = members(object, &["status"])?.into_iter().flatten();
        let rest = rest.filter(|(name, _)| *name != "observedGeneration" && !counters.contains(&name.as_str()));
        let rest: Map<_, _> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
        is_same &= shape.printed(&Value::Object(rest)) == shape.printed(&Value::Null);
    }
    if is_same {
        return Ok(Aggregated::Unchanged);
    }
    let mut status = members(object, &["status"])?.cloned().unwrap_or_default();
    status.extend(computed);
    Ok(Aggregated::Status(shape.printed(&Value::Object(status))))
}

fn cron_job(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    let mut active = Vec::new();
    let (mut scheduled, mut succeeded) = (None, None);
    for (_, member) in collected(items) {
        active.extend_from_slice(list(member, &["active"])?);
        scheduled = max(scheduled, time(member, "lastScheduleTime")?);
        succeeded = max(succeeded, time(member, "lastSuccessfulTime")?);
    }
    let active = (!active.is_empty()).then_some(active);
    Ok(json!({"active": active, "lastScheduleTime": scheduled, "lastSuccessfulTime": succeeded}))
}

fn volume(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    Ok(json!({"phase": leading_phase(items, &["Failed", "Pending", "Available", "Bound", "Released"])?}))
}

/// Aggregates claims. The phase is Lost if any claim is; otherwise that of the last claim that is not Bound, also an
/// empty one; otherwise Bound, even without any cluster.
fn claim(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    let mut phase = "Bound";
    for (_, member) in collected(items) {
        match text(member, &["phase"])? {
            "Lost" => return Ok(json!({"phase": "Lost"})),
            "Bound" => {}
            other => phase = other,
        }
    }
    Ok(json!({"phase": phase}))
}

fn disruption_budget(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    let mut status = sums(items, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"])?;
    let mut disrupted = Map::new();
    for (cluster, member) in collected(items) {
        let pods = members(member, &["disruptedPods"])?.into_iter().flatten();
        disrupted.extend(pods.map(|(pod, since)| (format!("{cluster}/{pod}"), since.clone())));
    }
    status.insert("disruptedPods".to_owned(), Value::Object(disrupted));
    Ok(Value::Object(status))
}

fn autoscaler(items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    sums(items, &["currentReplicas", "desiredReplicas"]).map(Value::Object)
}

/// Checks a new status; null stands for `NoRule` and `"unchanged"` for `Unchanged`.
#[cfg(test)]
pub(crate) fn check(kind: (&str, &str), object: Value, statuses: &[(&str, Value)], expected: Result<Value, &str>) {
    let items = crate::aggregated_items::items(statuses);
    let items = Some(items.as_slice()).filter(|items| !items.is_empty());
    let actual = status(kind, &object, items, Time::from_millis(0)).map(|aggregated| match aggregated {
        Aggregated::NoRule => Value::Null,
        Aggregated::Unchanged => json!("unchanged"),
        Aggregated::Status(status) => status,
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
        let condition =
            json!({"type": "Available", "status": "True", "lastUpdateTime": null, "lastTransitionTime": null});
        let kept = json!({"collisionCount": 2, "conditions": [condition], "readyReplicas": 9, "extra": 1});
        let expected = json!({"collisionCount": 2, "conditions": [condition], "replicas": 3, "observedGeneration": 2});
        check(kept, &current, Ok(expected));
        let behind = [("m1", member(2, (1, 1, 1))), ("m2", member(1, (4, 4, 2)))];
        check(json!({"observedGeneration": 1}), &behind, Ok(json!({"replicas": 3, "observedGeneration": 1})));
        let unseen = [("m1", member(2, (2, 1, 2)))];
        check(Value::Null, &unseen, Ok(json!({"replicas": 2})));
        let silent = [("m1", member(2, (1, 1, 2))), ("m2", Value::Null)];
        check(Value::Null, &silent, Ok(json!({"replicas": 2})));
        check(json!({"replicas": 3}), &[], Ok(json!({"observedGeneration": 2})));
        let same = json!({"replicas": 3, "observedGeneration": 2, "extra": 1});
        check(same, &current, Ok(json!("unchanged")));
        let malformed = "status in m1: replicas is a string, not an integer";
        check(Value::Null, &[("m1", json!({"replicas": "many"}))], Err(malformed));
        let malformed = "status in m1: generation is a string, not an integer";
        check(Value::Null, &[("m1", json!({"generation": "2"}))], Err(malformed));
        check(Value::Null, &[("m1", json!([1]))], Err("status in m1: it is a list, not an object"));
        check(json!({"conditions": 1}), &current, Err("status.conditions is a number, not a list"));
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
    fn daemon_sets_with_conditions_are_printed_anew() {
        let zeros = json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        });
        let check = |old: Value, added: Option<(&str, Value)>| {
            let expected = match added {
                None => json!("unchanged"),
                Some((name, value)) => {
                    let mut expected = zeros.clone();
                    expected[name] = value;
                    expected
                }
            };
            check(("apps/v1", "DaemonSet"), json!({"status": old}), &[], Ok(expected));
        };
        check(json!({"extra": 1, "conditions": [], "collisionCount": null}), None);
        check(json!({"extra": 1, "collisionCount": 0}), Some(("collisionCount", json!(0))));
        let condition = json!({"type": "X", "status": "True", "lastTransitionTime": null});
        check(json!({"extra": 1, "conditions": [condition]}), Some(("conditions", json!([condition]))));
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
        let reported = [("m1", json!({"active": "a"}))];
        let malformed = "status in m1: active is a string, not a list";
        check(("batch/v1", "CronJob"), json!({}), &reported, Err(malformed));
    }

    #[test]
    fn an_absent_status_stays_absent_where_there_is_nothing_to_say() {
        let check = |kind: (&str, &str), statuses: &[(&str, Value)], expected: Value| {
            check(kind, json!({}), statuses, Ok(expected));
        };
        for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
            check(("apps/v1", kind), &[], json!("unchanged"));
            check(("apps/v1", kind), &[("m1", Value::Null)], json!("unchanged"));
        }
        for kind in ["Job", "CronJob"] {
            check(("batch/v1", kind), &[("m1", json!({}))], json!("unchanged"));
        }
        check(("v1", "PersistentVolume"), &[], json!("unchanged"));
        check(("v1", "PersistentVolume"), &[("m1", json!({"phase": "Odd"}))], json!("unchanged"));
        check(("v1", "PersistentVolumeClaim"), &[("m1", json!({}))], json!("unchanged"));
        check(("autoscaling/v2", "HorizontalPodAutoscaler"), &[("m1", json!({}))], json!("unchanged"));
        // The three kinds below have a list or a map that is empty in the new status and missing in the template.
        let zeros = json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        check(("policy/v1", "PodDisruptionBudget"), &[], zeros);
        check(("networking.k8s.io/v1", "Ingress"), &[], json!({"loadBalancer": {}}));
        check(("v1", "Pod"), &[("m1", json!({"phase": "Odd"}))], json!({}));
    }

    #[test]
    fn kinds_other_than_workloads_get_a_new_status() {
        let check = |kind: (&str, &str), old: Value, member: Value, expected: Value| {
            check(kind, json!({"status": old}), &[("m1", member)], Ok(expected));
        };
        let old = json!({"phase": "Pending", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]});
        check(("v1", "PersistentVolumeClaim"), old, json!({"phase": "Bound"}), json!({"phase": "Bound"}));
        let old = json!({"phase": "Bound", "reason": "x", "lastPhaseTransitionTime": "2024-01-01T00:00:00Z"});
        check(("v1", "PersistentVolume"), old, json!({"phase": "Bound"}), json!({"phase": "Bound"}));
        let odd = json!({"phase": "Odd"});
        check(("v1", "PersistentVolume"), json!({"phase": "Bound"}), odd.clone(), json!({}));
        check(("v1", "PersistentVolumeClaim"), json!({"phase": "Bound"}), odd.clone(), odd);
        let old = json!({"observedGeneration": 3, "conditions": [{"type": "DisruptionAllowed"}], "expectedPods": 9});
        let zeros = json!({"currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        check(("policy/v1", "PodDisruptionBudget"), old, json!({"currentHealthy": 1}), zeros);
        let autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler");
        let old = json!({"lastScaleTime": "2024-01-01T00:00:00Z", "currentMetrics": [{"type": "Pods"}]});
        let expected = json!({"currentMetrics": null, "desiredReplicas": 2});
        check(autoscaler, old, json!({"desiredReplicas": 2}), expected);
        let same = json!({"currentReplicas": 1, "desiredReplicas": 2, "extra": true});
        check(autoscaler, same, json!({"currentReplicas": 1, "desiredReplicas": 2}), json!("unchanged"));
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
            ("m1", json!({"currentHealthy": 1, "disruptedPods": {"p": "2024-01-01T00:00:00Z"}})),
            ("m2", json!({"currentHealthy": 2, "desiredHealthy": 1})),
        ];
        let expected = json!({
            "currentHealthy": 3, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 0,
            "disruptedPods": {"m1/p": "2024-01-01T00:00:00Z"},
        });
        check(("policy/v1", "PodDisruptionBudget"), json!({}), &reported, Ok(expected));
        let reported =
            [("m1", json!({"currentReplicas": 1, "desiredReplicas": 2})), ("m2", json!({"desiredReplicas": 2}))];
        let expected = json!({"currentMetrics": null, "currentReplicas": 1, "desiredReplicas": 4});
        check(("autoscaling/v2", "HorizontalPodAutoscaler"), json!({}), &reported, Ok(expected));
    }

    #[test]
    fn sums_wrap_around_as_in_go() {
        let large = |name: &str, more: i32| [("m1", json!({name: i32::MAX})), ("m2", json!({name: more}))];
        let wrapped = json!({"replicas": i32::MIN + 1, "observedGeneration": 1});
        let object = json!({"metadata": {"generation": 1}});
        let mut reported = large("replicas", 2);
        for (_, status) in &mut reported {
            status["resourceTemplateGeneration"] = json!(1);
        }
        check(("apps/v1", "Deployment"), object, &reported, Ok(wrapped));
        check(("batch/v1", "Job"), json!({}), &large("failed", 1), Ok(json!({"failed": i32::MIN})));
        let autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler");
        let wrapped = json!({"currentMetrics": null, "desiredReplicas": -2});
        check(autoscaler, json!({}), &large("desiredReplicas", i32::MAX), Ok(wrapped));
        let beyond = [("m1", json!({"replicas": i64::from(i32::MAX) + 1}))];
        check(("apps/v1", "Deployment"), json!({}), &beyond, Err("status in m1: replicas is outside of 32 bits"));
    }

    #[test]
    fn other_kinds_have_no_rule() {
        check(("example.io/v1", "Widget"), json!({}), &[], Ok(Value::Null));
        check(("v1", "Service"), json!({"spec": {"type": "ClusterIP"}}), &[], Ok(json!("unchanged")));
        let running = json!({"phase": "Running"});
        check(("v1", "Pod"), json!({"status": running}), &[], Ok(running));
        check(("v1", "Pod"), json!({}), &[], Ok(json!({})));
    }
}
