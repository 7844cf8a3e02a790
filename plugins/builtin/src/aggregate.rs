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

use crate::aggregated_items::{Sums, collected, leading_phase, number, sums, time};
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
    let Some(shape) = statuses::of(kind) else {
        return Ok(Aggregated::NoRule);
    };
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
    if let Some(counters) = reflect::counters(kind) {
        return workload(kind.1, shape, object, items, counters);
    }
    for (cluster, member) in collected(items) {
        shape.check(member, "").map_err(|error| of_cluster(cluster, &error))?;
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
    Ok(if shape.is_same(old, &new) {
        Aggregated::Unchanged
    } else {
        Aggregated::Status(shape.printed(&new))
    })
}

fn of_cluster(cluster: &str, error: &Malformed) -> Malformed {
    Malformed::new(format!("status in {cluster}: {error}"))
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
    let (mut up_to_date, mut sums) = (0, Sums::of(counters));
    for (cluster, member) in collected(items) {
        let of_member = add(shape, member, &mut sums).map_err(|error| of_cluster(cluster, &error))?;
        // For StatefulSet only, Karmada compares with the member's generation instead of the template's.
        let wanted = if kind == "StatefulSet" {
            of_member.own
        } else {
            generation
        };
        if of_member.observed >= of_member.own && of_member.template >= wanted {
            up_to_date += 1;
        }
    }
    let mut computed = sums.into_fields();
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

/// Generations in the status that a cluster reports of a workload.
#[derive(Default)]
struct Generations {
    own: i64,
    observed: i64,
    /// Generation of the template that the cluster's copy was made from.
    template: i64,
}

/// Checks a workload's status, adds its counters and returns its generations. One pass takes half the time of a search for
/// each field.
fn add(shape: Shape, status: &Value, sums: &mut Sums<'_>) -> Result<Generations, Malformed> {
    let mut generations = Generations::default();
    let Some(fields) = status.as_object() else {
        return shape.check(status, "").map(|()| generations);
    };
    for (name, value) in fields {
        // Karmada adds two of the generations to the fields of the API: `native/status_type.go`.
        let generation = match name.as_str() {
            "generation" => &mut generations.own,
            "observedGeneration" => &mut generations.observed,
            "resourceTemplateGeneration" => &mut generations.template,
            _ => {
                if let Some(shape) = shape.field(name) {
                    shape.check(value, name)?;
                    sums.add(name, value)?;
                }
                continue;
            }
        };
        Shape::Int64.check(value, name)?;
        *generation = number(value)?;
    }
    Ok(generations)
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
    let mut status = sums(
        items,
        &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
    )?;
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
    assert_eq!(
        actual,
        expected.map_err(str::to_owned),
        "{kind:?} {object} from {statuses:?}"
    );
}

#[cfg(test)]
mod tests;
