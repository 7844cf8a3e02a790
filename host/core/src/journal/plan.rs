//! Plans in the form that journals store and compare. Every field is destructured by name, so a new field breaks the
//! build until it is handled here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::canonical::canonical;
use crate::combine::{Attribution, Diagnostics, HealthOutcome, PolicyFault};
use crate::decide::application_failover::FailoverPlan;
use crate::decide::eviction::Judgement;
use crate::decide::eviction::taint_based::NoAppliedPlacement;
use crate::decide::failback::{FailbackPlan, Return};
use crate::decide::graceful_eviction::GracefulEvictionPlan;
use crate::decide::schedule::{FailedTerm, Outcome, ScheduleError, SchedulePlan};
use crate::decide::taint::TaintPlan;
use crate::model::{GracefulEvictionTask, Taint};

/// Builds an object without null, empty-list and empty-object members.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    members
        .into_iter()
        .filter(|(_, value)| says(value))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Encodes an optional change, so that a list that becomes empty differs from a list that does not change.
fn change<T: serde::Serialize>(value: Option<&T>) -> Value {
    value.map_or(Value::Null, |value| json!({ "becomes": value }))
}

fn encode_diagnostics(diagnostics: &Diagnostics) -> Value {
    let Diagnostics { faults, divergences } = diagnostics;
    let fault = |fault: &PolicyFault| {
        let PolicyFault { policy, fault } = fault;
        json!({"policy": policy, "kind": fault.kind, "message": fault.message})
    };
    object([
        ("faults", faults.iter().map(fault).collect()),
        ("divergences", canonical(divergences)),
    ])
}

fn about_taints(list: &[(Taint, Attribution)]) -> Value {
    list.iter()
        .map(|(taint, attribution)| json!({"taint": taint, "because": attribution}))
        .collect()
}

fn about_tasks(list: &[(GracefulEvictionTask, Attribution)]) -> Value {
    list.iter()
        .map(|(task, attribution)| json!({"task": task, "because": attribution}))
        .collect()
}

fn about_clusters(list: &[(String, Attribution)]) -> Value {
    list.iter()
        .map(|(cluster, attribution)| json!({"cluster": cluster, "because": attribution}))
        .collect()
}

/// Encodes a plan for the taints of a cluster.
pub fn taint(plan: &TaintPlan) -> Value {
    let TaintPlan {
        taints,
        owners,
        history,
        added,
        removed,
        diagnostics,
    } = plan;
    object([
        ("taints", change(taints.as_ref())),
        ("owners", change(owners.as_ref())),
        ("history", change(history.as_ref())),
        ("added", about_taints(added)),
        ("removed", about_taints(removed)),
        ("remarks", encode_diagnostics(diagnostics)),
    ])
}

/// Encodes the verdict on one eviction.
pub fn evict(judged: &Result<Judgement, NoAppliedPlacement>) -> Value {
    match judged {
        Ok(Judgement::Unneeded) => json!({"keep": "forever"}),
        Ok(Judgement::Later { remaining_ms }) => json!({"keep": {"forMs": remaining_ms}}),
        Ok(Judgement::Wait {
            attribution,
            again_after_ms,
        }) => {
            json!({"wait": {"because": attribution, "againAfterMs": again_after_ms}})
        }
        Ok(Judgement::Evict {
            spec,
            task,
            attribution,
        }) => {
            json!({"evict": {
                "clusters": spec.clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks,
                "task": task, "because": attribution,
            }})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Encodes a plan for eviction tasks.
pub fn graceful_eviction(plan: &GracefulEvictionPlan) -> Value {
    // `rests_on_targets` is left out: a plan that is not confirmed takes no effect and is not recorded.
    let GracefulEvictionPlan {
        tasks,
        clusters,
        failed_templates,
        released,
        called_off,
        held,
        again_after_ms,
        diagnostics,
        rests_on_targets: _,
    } = plan;
    object([
        ("tasks", change(tasks.as_ref())),
        ("clusters", change(clusters.as_ref())),
        ("failedTemplates", change(failed_templates.as_ref())),
        ("released", about_tasks(released)),
        ("calledOff", about_tasks(called_off)),
        ("held", about_tasks(held)),
        ("againAfterMs", canonical(again_after_ms)),
        ("remarks", encode_diagnostics(diagnostics)),
    ])
}

/// Encodes a plan for a failed application.
pub fn failover(plan: &FailoverPlan) -> Value {
    let FailoverPlan {
        health_histories,
        spec,
        evicted,
        counting,
        paused,
        without_target,
        blocked,
        again_after_ms,
    } = plan;
    let spec = spec.as_ref().map(|spec| {
        json!({
            "clusters": spec.clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks, "rest": spec.rest,
        })
    });
    object([
        ("memory", change(health_histories.as_ref())),
        ("spec", change(spec.as_ref())),
        ("evicted", about_tasks(evicted)),
        ("counting", about_clusters(counting)),
        ("paused", about_clusters(paused)),
        ("blocked", canonical(&blocked.as_ref().map(ToString::to_string))),
        ("withoutTarget", about_clusters(without_target)),
        ("againAfterMs", canonical(again_after_ms)),
    ])
}

/// Encodes a plan for failback.
pub fn failback(plan: &FailbackPlan) -> Value {
    match plan {
        FailbackPlan::Rest => json!("rest"),
        FailbackPlan::Forget(attribution) => json!({"forget": attribution}),
        FailbackPlan::Wait { attribution, left_ms } => json!({"wait": {"because": attribution, "leftMs": left_ms}}),
        FailbackPlan::Return(back) => {
            let Return {
                spec,
                task,
                home,
                attribution,
            } = &**back;
            json!({"return": {
                "clusters": spec.clusters, "gracefulEvictionTasks": spec.graceful_eviction_tasks,
                "rescheduleTriggeredAt": spec.reschedule_triggered_at, "task": task, "home": home,
                "because": attribution,
            }})
        }
    }
}

/// Encodes a plan of the scheduler.
pub fn schedule(plan: &SchedulePlan) -> Value {
    // The explanation is left out: it is recomputed on request.
    let SchedulePlan {
        outcome,
        displaced,
        affinity_name,
        failed_terms,
        rejections,
        explanation: _,
        diagnostics,
    } = plan;
    let failed = |failed: &FailedTerm| json!({"index": failed.index, "error": error(&failed.error)});
    let outcome = match outcome {
        Outcome::Place(targets) => json!({ "place": targets }),
        Outcome::Clear(why) => json!({"clear": error(why)}),
        Outcome::Keep(why) => json!({"keep": error(why)}),
        Outcome::Nothing => json!("nothing"),
    };
    let mut rejected: BTreeMap<String, (&Attribution, Vec<&str>)> = BTreeMap::new();
    for (cluster, attribution) in rejections.iter() {
        rejected
            .entry(canonical(attribution).to_string())
            .or_insert((attribution, Vec::new()))
            .1
            .push(cluster);
    }
    let rejected: Value = rejected
        .values()
        .map(|(attribution, clusters)| json!({"because": attribution, "clusters": clusters}))
        .collect();
    object([
        ("outcome", outcome),
        ("displaced", canonical(displaced)),
        ("affinityName", canonical(affinity_name)),
        ("failedTerms", failed_terms.iter().map(failed).collect()),
        ("rejected", rejected),
        ("remarks", encode_diagnostics(diagnostics)),
    ])
}

fn error(error: &ScheduleError) -> Value {
    let kind = match error {
        ScheduleError::NoClusterFit(_) => "NoClusterFit",
        ScheduleError::Select(_) => "Select",
        ScheduleError::Assign(_) => "Assign",
        ScheduleError::Unschedulable(_) => "Unschedulable",
        ScheduleError::BadInput(_) => "BadInput",
        ScheduleError::NoPlacement => "NoPlacement",
    };
    json!({"kind": kind, "message": error.to_string()})
}

/// Encodes the health of an object.
pub fn health(outcome: &HealthOutcome) -> Value {
    let HealthOutcome {
        health,
        attribution,
        diagnostics,
    } = outcome;
    object([
        ("health", canonical(health)),
        ("because", canonical(attribution)),
        ("remarks", encode_diagnostics(diagnostics)),
    ])
}
