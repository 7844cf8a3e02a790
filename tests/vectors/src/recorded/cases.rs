//! End-to-end cases: one scheduling round as the controller runs it, with given API server responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bulkhead_core::call::Peer;
use bulkhead_core::decide::schedule::capacity::{AccurateEstimates, Assumptions};
use bulkhead_core::decide::schedule::{
    self, IN_TREE, IN_TREE_WORKLOAD_AFFINITY, Retry, ScheduleEvent, SchedulerOptions, SchedulingSnapshot, Trigger,
    WriteError,
};
use bulkhead_core::model::{Binding, Condition, ConditionStatus, TargetCluster};
use bulkhead_core::names::keys;
use bulkhead_core::policy::{Policy, PolicySet};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::SchedulingPolicy;
use serde_json::{Map, Value, json};

use super::{Report, federation};

/// 2026-06-01: later than every time in the cases.
const NOW_MS: i64 = 1_780_272_000_000;

/// Runs one case and compares every expected field.
pub(super) fn run(case: &Value, report: &mut Report) {
    let name = case
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("unnamed case")
        .to_owned();
    let expected = case.get("expected").cloned().unwrap_or_default();
    match round(case) {
        Ok(got) => {
            let (expected, got) = differences(&expected, &got);
            report.record(name, expected, Ok(got));
        }
        Err(error) => report.record(name, expected, Err(error)),
    }
}

/// Returns the differing fields of both sides.
fn differences(expected: &Value, got: &Value) -> (Value, Value) {
    let (mut left, mut right) = (Map::new(), Map::new());
    let mut compare = |field: &str, expected: Value, got: Value| {
        if expected != got {
            left.insert(field.to_owned(), expected);
            right.insert(field.to_owned(), got);
        }
    };
    let field = |side: &Value, name: &str| side.get(name).cloned().unwrap_or_default();
    for name in ["trigger", "condition", "requeue", "observedGeneration", "lastScheduled"] {
        compare(name, field(expected, name), field(got, name));
    }
    let any_order = expected["anyOrder"] == true;
    let order = |clusters: Value| if any_order { sorted(clusters) } else { clusters };
    compare(
        "clusters",
        order(field(expected, "clusters")),
        order(field(got, "clusters")),
    );
    compare(
        "affinityName",
        text(expected, "affinityName"),
        text(got, "affinityName"),
    );
    compare(
        "appliedUpdated",
        json!(expected["appliedUpdated"] == true),
        field(got, "appliedUpdated"),
    );
    if let Some(message) = expected.get("message") {
        compare("message", message.clone(), field(got, "message"));
    }
    if let Some(allowed) = expected.get("messageOneOf").and_then(Value::as_array)
        && !allowed.contains(&field(got, "message"))
    {
        compare("messageOneOf", json!(allowed), field(got, "message"));
    }
    if let Some(events) = expected.get("events") {
        let known_order = !any_order || events.as_array().is_none_or(Vec::is_empty);
        if known_order {
            compare("events", events.clone(), field(got, "events"));
        }
    }
    (Value::Object(left), Value::Object(right))
}

fn text(side: &Value, name: &str) -> Value {
    json!(side.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn sorted(clusters: Value) -> Value {
    let mut clusters: Vec<Value> = clusters.as_array().cloned().unwrap_or_default();
    clusters.sort_by_key(Value::to_string);
    Value::Array(clusters)
}

/// State that a scheduler keeps between bindings.
struct Scheduler {
    clusters: Arc<ClusterSnapshot>,
    policies: PolicySet,
    options: SchedulerOptions,
    accurate: Option<AccurateEstimates>,
    peers: Vec<(String, Peer)>,
    assumptions: Assumptions,
    refusal: Option<WriteError>,
}

impl Scheduler {
    fn new(case: &Value) -> Result<Self, String> {
        let settings = case.get("options").cloned().unwrap_or_default();
        let gate = |name: &str, default: bool| {
            settings
                .pointer(&format!("/featureGates/{name}"))
                .and_then(Value::as_bool)
                .unwrap_or(default)
        };
        let defaults = SchedulerOptions::default();
        let options = SchedulerOptions {
            multiple_pod_templates: gate("MultiplePodTemplatesScheduling", defaults.multiple_pod_templates),
            resource_models: gate("CustomizedClusterResourceModeling", defaults.resource_models),
            overcommit_protection: gate("SchedulingOvercommitProtection", defaults.overcommit_protection),
            empty_workload_propagation: settings["emptyWorkload"] == true,
            evicts_standing: false,
            spares_lost: false,
        };
        Ok(Self {
            clusters: federation::clusters(case.get("clusters"))?,
            policies: policies(settings.get("plugins"), gate("WorkloadAffinity", false)),
            options,
            accurate: settings.get("accurate").and_then(Value::as_object).map(accurate),
            peers: peers(case.get("existing"))?,
            assumptions: Assumptions::default(),
            refusal: settings.get("patchError").and_then(Value::as_str).map(refusal),
        })
    }

    /// Returns the peers of a binding: the other bindings in its namespace.
    fn peers_of(&self, binding: &Binding) -> Vec<Peer> {
        let namespace = binding.namespace.as_deref().unwrap_or_default();
        let others = self
            .peers
            .iter()
            .filter(|(of, peer)| of == namespace && peer.binding != binding.name);
        others.map(|(_, peer)| peer.clone()).collect()
    }
}

fn policies(plugins: Option<&Value>, workload_affinity: bool) -> PolicySet {
    let list: Vec<String> = match plugins.and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec!["*".to_owned()],
    };
    let mut known = IN_TREE.to_vec();
    if workload_affinity {
        known.extend(IN_TREE_WORKLOAD_AFFINITY);
    }
    let enabled = schedule::enabled_plugins(&list, &known);
    let policy = |name: &String| SchedulingPolicy::by_name(name).map(|policy| Arc::new(policy) as Arc<dyn Policy>);
    PolicySet::new(enabled.iter().filter_map(policy).collect())
}

fn accurate(answers: &Map<String, Value>) -> AccurateEstimates {
    let answer = |value: &Value| {
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| format!("{value} is no answer"))
    };
    AccurateEstimates(
        answers
            .iter()
            .map(|(cluster, value)| (cluster.clone(), answer(value)))
            .collect(),
    )
}

fn peers(existing: Option<&Value>) -> Result<Vec<(String, Peer)>, String> {
    let peer = |short: &Value| {
        let binding = federation::binding(short)?;
        let peer = Peer {
            affinity_group: binding.spec.affinity_group().to_owned(),
            anti_affinity_group: binding.spec.anti_affinity_group().to_owned(),
            clusters: binding.spec.clusters.iter().map(|target| target.name.clone()).collect(),
            binding: binding.name,
        };
        Ok((binding.namespace.unwrap_or_default(), peer))
    };
    existing
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(peer)
        .collect()
}

/// Returns the API server's rejection for a name that cases use.
fn refusal(name: &str) -> WriteError {
    let message = match name {
        "quota" => "quota exceeded by test",
        "forbidden" => "denied by test",
        "namespaceTerminating" => "ns terminating",
        other => other,
    };
    WriteError {
        message: message.to_owned(),
        quota_exceeded: name == "quota",
    }
}

/// Runs the round of the case's binding, after the rounds of the preceding bindings.
fn round(case: &Value) -> Result<Value, String> {
    let mut scheduler = Scheduler::new(case)?;
    let now = Time::from_millis(NOW_MS);
    for before in case.get("before").and_then(Value::as_array).into_iter().flatten() {
        let mut binding = federation::binding(before)?;
        let _ = schedule_one(&mut scheduler, &mut binding, now)?;
    }
    let mut binding = federation::binding(case.get("binding").unwrap_or(&Value::Null))?;
    let (was_scheduled, was_applied) = (binding.status.last_scheduled_time, applied(&binding));
    let round = schedule_one(&mut scheduler, &mut binding, now)?;
    let last_scheduled = match binding.status.last_scheduled_time {
        None => "unset",
        Some(time) if Some(time) == was_scheduled => "unchanged",
        Some(_) => "now",
    };
    let scheduled = Condition::find(&binding.status.conditions, "Scheduled");
    Ok(json!({
        "trigger": round.trigger,
        "clusters": binding.spec.clusters.iter().map(target).collect::<Vec<_>>(),
        "condition": scheduled.map(|condition| json!([condition.status.as_str(), condition.reason])),
        "message": scheduled.filter(|condition| condition.status == ConditionStatus::False).map(|c| &c.message),
        "requeue": round.requeue,
        "observedGeneration": binding.status.scheduler_observed_generation,
        "affinityName": binding.status.scheduler_observed_affinity_name,
        "lastScheduled": last_scheduled,
        "appliedUpdated": applied(&binding) != was_applied,
        "events": distinct(&round.events),
    }))
}

fn applied(binding: &Binding) -> Option<String> {
    binding.annotations.get(keys::APPLIED_PLACEMENT).cloned()
}

fn target(target: &TargetCluster) -> Value {
    if target.components.is_empty() {
        return json!([target.name, target.replicas]);
    }
    let components: Vec<_> = target
        .components
        .iter()
        .map(|component| json!([component["name"], component["replicas"]]))
        .collect();
    json!([target.name, target.replicas, components])
}

fn distinct(events: &[ScheduleEvent]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let line = |event: &ScheduleEvent| {
        let kind = if event.succeeded { "Normal" } else { "Warning" };
        format!("{kind} {} {}", event.reason(), event.message)
    };
    events
        .iter()
        .map(line)
        .filter(|line| seen.insert(line.clone()))
        .collect()
}

struct Round {
    trigger: &'static str,
    requeue: &'static str,
    events: Vec<ScheduleEvent>,
}

fn schedule_one(scheduler: &mut Scheduler, binding: &mut Binding, now: Time) -> Result<Round, String> {
    let Some(placement) = binding.spec.placement.clone() else {
        return Err("the binding has no placement".to_owned());
    };
    if binding.deletion_timestamp.is_some() {
        return Ok(Round {
            trigger: "deleting",
            requeue: "none",
            events: vec![schedule::deleting_event(binding)],
        });
    }
    let Some(trigger) = schedule::trigger(binding, &placement, &scheduler.clusters, &scheduler.options) else {
        binding.status.scheduler_observed_generation = binding.generation;
        return Ok(Round {
            trigger: "none",
            requeue: "none",
            events: Vec::new(),
        });
    };
    let peers = scheduler.peers_of(binding);
    let assumed = if scheduler.options.overcommit_protection {
        scheduler.assumptions.by_cluster(now)
    } else {
        BTreeMap::new()
    };
    let snapshot = SchedulingSnapshot {
        binding,
        clusters: &scheduler.clusters,
        peers: &peers,
        accurate: scheduler.accurate.as_ref(),
        assumed: &assumed,
        options: &scheduler.options,
        now,
    };
    let plan = schedule::decide(snapshot, &scheduler.policies);
    let targets = plan.targets().map(<[TargetCluster]>::to_vec);
    let written = write(binding, targets, scheduler.refusal.as_ref());
    let conclusion = plan.conclude(binding, written);
    if plan.error().is_none() && written.is_ok() {
        scheduler.assumptions.assume(binding, &binding.spec.clusters, now);
    }
    conclusion.apply(&mut binding.status, binding.generation, now);
    let requeue = match conclusion.verdict.retry {
        Retry::Forget => "none",
        Retry::Unschedulable => "unschedulable",
        Retry::Backoff => "backoff",
    };
    Ok(Round {
        trigger: name(trigger),
        requeue,
        events: conclusion.events,
    })
}

/// Writes the result with the applied placement, unless nothing changes or the API server rejects the write.
fn write<'a>(
    binding: &mut Binding,
    targets: Option<Vec<TargetCluster>>,
    refusal: Option<&'a WriteError>,
) -> Result<(), &'a WriteError> {
    let Some(targets) = targets else { return Ok(()) };
    let placement = serde_json::to_string(&binding.spec.placement).unwrap_or_default();
    if binding.spec.clusters == targets && applied(binding).as_ref() == Some(&placement) {
        return Ok(());
    }
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    binding
        .annotations
        .insert(keys::APPLIED_PLACEMENT.to_owned(), placement);
    binding.spec.clusters = targets;
    Ok(())
}

fn name(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::PlacementChanged => "placement",
        Trigger::ReplicasChanged => "replicas",
        Trigger::RescheduleRequested => "reschedule",
        Trigger::Always => "always",
        Trigger::TargetTerminating => "terminating",
    }
}
