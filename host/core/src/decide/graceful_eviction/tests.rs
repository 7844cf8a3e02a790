//! One task of a binding that left `m1` at second 0, and its result.

mod changed_template;
mod karmada;
mod last_place;

use serde_json::{Value, json};

use super::*;
use crate::call::{Call, CallKind, EvictionVerdict, Reason, Reply};
use crate::model::Health;
use crate::policy::{Capability, Fault, FaultKind, Policy, PolicyId};
use std::sync::Arc;

mod unconfirmed;

/// Eviction check with a fixed reply or one that depends on the call.
struct FixedReply<F>(PolicyId, Vec<Capability>, F);

impl<F: Fn(&Call<'_>) -> Result<Reply, Fault> + Send + Sync> Policy for FixedReply<F> {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        self.2(call)
    }
}

fn policies(say: fn() -> Result<Reply, Fault>) -> PolicySet {
    asking(move |_| say())
}

fn asking(say: impl Fn(&Call<'_>) -> Result<Reply, Fault> + Send + Sync + 'static) -> PolicySet {
    let says = FixedReply(
        PolicyId::builtin("Says"),
        vec![Capability::any(CallKind::EvictionCheck)],
        say,
    );
    PolicySet::new(vec![Arc::new(says) as Arc<dyn Policy>])
}

#[expect(clippy::unnecessary_wraps, reason = "what a policy says")]
fn hold() -> Result<Reply, Fault> {
    let reason = Reason::new("Ill", "the new copy is ill");
    Ok(Reply::EvictionCheck(EvictionVerdict::Hold {
        reason,
        recheck_after_s: None,
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "what a policy says")]
fn release() -> Result<Reply, Fault> {
    Ok(Reply::EvictionCheck(EvictionVerdict::Release(Reason::new(
        "Well",
        "the new copy is well",
    ))))
}

/// Trusts the reported health of `m2`.
fn trusting(call: &Call<'_>) -> Result<Reply, Fault> {
    let Call::EvictionCheck(call) = call else {
        return fault();
    };
    let health = call.observed[0].health.unwrap();
    let message = format!("m2 is {}", health.as_str());
    Ok(Reply::EvictionCheck(match health {
        Health::Healthy => EvictionVerdict::Release(Reason::new("Well", message)),
        _ => EvictionVerdict::Hold {
            reason: Reason::new("Ill", message),
            recheck_after_s: None,
        },
    }))
}

fn fault() -> Result<Reply, Fault> {
    Err(Fault::new(FaultKind::Trap, "unreachable"))
}

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1000)
}

fn cluster(name: &str, ready: &str, taints: Value) -> Cluster {
    let conditions = json!([{"type": "Ready", "status": ready, "reason": "R", "message": ""}]);
    let spec = json!({"syncMode": "Push", "taints": taints});
    serde_json::from_value(json!({"name": name, "spec": spec, "status": {"conditions": conditions}})).unwrap()
}

/// Returns a binding with three replicas on `targets`, which report unhealthy copies. `seen` is true if the scheduler
/// observed the generation; `scheduled` is its condition. `task` overrides a task that left `m1` with one replica
/// because of a taint.
fn binding(targets: Value, seen: bool, scheduled: &str, task: &Value) -> Binding {
    let mut whole = json!({
        "fromCluster": "m1", "purgeMode": "Gracefully", "replicas": 1, "reason": "TaintUntolerated",
        "producer": "TaintManager", "creationTimestamp": "1970-01-01T00:00:00Z",
    });
    for (field, value) in task.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let whole: Value = whole
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let placement = json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}});
    let report = |target: &Value| json!({"clusterName": target["name"], "applied": true, "health": "Unhealthy"});
    let reports: Vec<_> = targets.as_array().into_iter().flatten().map(report).collect();
    serde_json::from_value(json!({
        "namespace": "default", "name": "nginx-deployment", "generation": 5,
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"},
            "replicas": 3, "placement": placement, "clusters": targets, "gracefulEvictionTasks": [whole],
        },
        "status": {
            "schedulerObservedGeneration": if seen { 5 } else { 4 },
            "aggregatedStatus": reports,
            "conditions": [{"type": "Scheduled", "status": scheduled, "reason": "R", "message": ""}],
        },
    }))
    .unwrap()
}

/// Returns the state of a binding `now_s` seconds after its task, without the clusters that it leaves.
fn snapshot<'a>(binding: &'a Binding, unconfirmed: &'a UnconfirmedTargets, now_s: i64) -> GracefulEvictionSnapshot<'a> {
    let options = GracefulEvictionOptions::default();
    GracefulEvictionSnapshot {
        binding,
        sources: &[],
        unconfirmed,
        options,
        now: at(now_s),
    }
}

/// Returns `held`, `released` or `called off`, with the code of the reason; `stamped` if the task only got its
/// timestamp.
fn summary(plan: &GracefulEvictionPlan) -> String {
    for (word, list) in [
        ("held", &plan.held),
        ("released", &plan.released),
        ("called off", &plan.called_off),
    ] {
        if let [(_, attribution)] = list.as_slice() {
            return format!("{word}: {}", attribution.reason.code);
        }
    }
    "stamped".to_owned()
}

fn elsewhere() -> Value {
    json!([{"name": "m2", "replicas": 3}])
}

#[test]
fn a_task_ends_as_its_fields_and_the_checks_say() {
    let check = |task: Value, now_s: i64, say: fn() -> Result<Reply, Fault>, expected: &str| {
        let binding = binding(elsewhere(), true, "True", &task);
        let snapshot = snapshot(&binding, &CONFIRMED, now_s);
        assert_eq!(
            summary(&decide(snapshot, &policies(say))),
            expected,
            "{task} at {now_s}"
        );
    };
    check(json!({}), 600, hold, "held: Ill");
    check(json!({}), 601, hold, "released: GracePeriodExceeded");
    check(json!({}), 1, release, "released: Well");
    check(json!({}), 1, fault, "held: PluginTrapped");
    check(json!({"gracePeriodSeconds": 30}), 30, hold, "held: Ill");
    check(
        json!({"gracePeriodSeconds": 30}),
        31,
        hold,
        "released: GracePeriodExceeded",
    );
    check(json!({"gracePeriodSeconds": 900}), 601, hold, "held: Ill");
    check(
        json!({"suppressDeletion": true}),
        10_000,
        release,
        "held: DeletionSuppressed",
    );
    check(
        json!({"suppressDeletion": false}),
        1,
        hold,
        "released: DeletionConfirmed",
    );
    check(json!({"purgeMode": "Directly"}), 1, hold, "held: Ill");
    check(
        json!({"purgeMode": "Never"}),
        601,
        hold,
        "released: GracePeriodExceeded",
    );
    // Tasks of other programs: in doubt, the old copy is kept.
    check(json!({"creationTimestamp": null}), 10_000, release, "stamped");
    check(
        json!({"creationTimestamp": "2999-01-01T00:00:00Z"}),
        10_000,
        release,
        "stamped",
    );
    check(
        json!({"creationTimestamp": "1970-01-01T00:00:30Z"}),
        1,
        hold,
        "held: Ill",
    );
    check(json!({"gracePeriodSeconds": 0}), 1, hold, "held: Ill");
    check(json!({"gracePeriodSeconds": -7}), 1, hold, "held: Ill");
    check(
        json!({"purgeMode": "Eventually"}),
        10_000,
        release,
        "held: UnknownPurgeMode",
    );
    check(
        json!({"purgeMode": "Eventually", "suppressDeletion": false}),
        1,
        hold,
        "released: DeletionConfirmed",
    );
    check(
        json!({"purgeMode": null, "producer": null, "reason": null}),
        1,
        release,
        "released: Well",
    );
    check(json!({"fromCluster": "m2"}), 1, release, "called off: TargetAgain");
    check(
        json!({"fromCluster": "m2", "suppressDeletion": true}),
        1,
        release,
        "called off: TargetAgain",
    );
}

#[test]
fn a_result_that_is_not_there_yet_one_that_is_empty_and_one_that_is_present_differ() {
    use PurgeWithoutReplacement::{AfterGracePeriod, IfPlaced, OnlyByPolicy};
    let check = |targets: Value, seen, scheduled, own: Value, purge_without_replacement, expected: &str| {
        let binding = binding(targets.clone(), seen, scheduled, &json!({"gracePeriodSeconds": own}));
        let options = GracefulEvictionOptions {
            purge_without_replacement,
            ..GracefulEvictionOptions::default()
        };
        let snapshot = GracefulEvictionSnapshot {
            options,
            ..snapshot(&binding, &CONFIRMED, 601)
        };
        assert_eq!(
            summary(&decide(snapshot, &policies(hold))),
            expected,
            "{targets} {seen} {scheduled} {own} {options:?}"
        );
    };
    let (none, over) = ("held: NoReplacement", "released: GracePeriodExceeded");
    check(elsewhere(), true, "True", json!(null), IfPlaced, over);
    check(elsewhere(), false, "True", json!(null), IfPlaced, none);
    check(elsewhere(), false, "False", json!(null), IfPlaced, none);
    check(json!([]), true, "True", json!(null), IfPlaced, none);
    check(json!([]), false, "False", json!(null), IfPlaced, none);
    check(json!([]), false, "False", json!(30), IfPlaced, none);
    check(elsewhere(), true, "True", json!(null), OnlyByPolicy, "held: Ill");
    check(elsewhere(), true, "True", json!(30), OnlyByPolicy, over);
    check(json!([]), false, "False", json!(30), OnlyByPolicy, none);
    for (targets, seen, scheduled) in [
        (elsewhere(), true, "True"),
        (json!([]), false, "False"),
        (json!([]), true, "True"),
    ] {
        check(targets, seen, scheduled, json!(null), AfterGracePeriod, over);
    }
}

#[test]
fn an_eviction_is_called_off_in_one_write_when_its_cluster_is_well_again_first() {
    let check = |targets: Value, task: Value, source: &Cluster, expected: Option<Value>| {
        let mut binding = binding(targets, false, "False", &task);
        binding.status.aggregated_status =
            serde_json::from_value(json!([{"clusterName": "m1", "health": "Healthy"}])).unwrap();
        let sources = std::slice::from_ref(source);
        let plan = decide(
            GracefulEvictionSnapshot {
                sources,
                ..snapshot(&binding, &CONFIRMED, 100)
            },
            &policies(hold),
        );
        let clusters = plan
            .clusters
            .as_ref()
            .map(|clusters| serde_json::to_value(clusters).unwrap());
        assert_eq!(clusters, expected, "{task} {source:?}");
        assert_eq!(
            expected.is_some(),
            plan.tasks == Some(Vec::new()),
            "task and target change together"
        );
    };
    let no_execute = json!([{"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:00Z"}]);
    let (well, lost) = (cluster("m1", "True", json!([])), cluster("m1", "False", json!([])));
    check(
        json!([]),
        json!({}),
        &well,
        Some(json!([{"name": "m1", "replicas": 1}])),
    );
    let two = json!([{"name": "m2", "replicas": 2}]);
    check(
        two.clone(),
        json!({}),
        &well,
        Some(json!([{"name": "m2", "replicas": 2}, {"name": "m1", "replicas": 1}])),
    );
    // At most the missing replicas are restored, so replicas placed elsewhere do not run twice.
    check(
        two,
        json!({"replicas": 3}),
        &well,
        Some(json!([{"name": "m2", "replicas": 2}, {"name": "m1", "replicas": 1}])),
    );
    // A task of another program may name no number.
    check(
        json!([]),
        json!({"replicas": null}),
        &well,
        Some(json!([{"name": "m1", "replicas": 3}])),
    );
    check(elsewhere(), json!({}), &well, None);
    check(json!([]), json!({}), &lost, None);
    check(json!([]), json!({}), &cluster("m1", "True", no_execute), None);
    // A copy that stands may stay beside the taint; one that was purged would have to be created anew.
    let closed = cluster("m1", "True", json!([{"key": "k", "effect": "NoSchedule"}]));
    check(
        json!([]),
        json!({}),
        &closed,
        Some(json!([{"name": "m1", "replicas": 1}])),
    );
    check(json!([]), json!({"purgeMode": "Directly"}), &closed, None);
    check(json!([]), json!({}), &cluster("m9", "True", json!([])), None);
    check(
        json!([]),
        json!({"reason": "ApplicationFailure"}),
        &well,
        Some(json!([{"name": "m1", "replicas": 1}])),
    );
    check(
        json!([]),
        json!({"reason": "Maintenance", "producer": "somebody"}),
        &well,
        None,
    );
    check(json!([]), json!({"suppressDeletion": true}), &well, None);
}

#[test]
fn a_task_without_a_number_gets_the_missing_replicas_that_no_other_recovered_cluster_had() {
    let check = |second: &Cluster, expected: Value| {
        let mut binding = binding(
            json!([]),
            false,
            "False",
            &json!({"fromCluster": "m2", "replicas": null}),
        );
        let numbered = GracefulEvictionTask {
            from_cluster: "m1".to_owned(),
            replicas: Some(3),
            ..binding.spec.graceful_eviction_tasks[0].clone()
        };
        binding.spec.graceful_eviction_tasks.push(numbered);
        let sources = [cluster("m2", "True", json!([])), second.clone()];
        let snapshot = GracefulEvictionSnapshot {
            sources: &sources,
            ..snapshot(&binding, &CONFIRMED, 100)
        };
        let clusters = decide(snapshot, &policies(hold)).clusters;
        assert_eq!(serde_json::to_value(clusters).unwrap(), expected, "{second:?}");
    };
    check(
        &cluster("m1", "True", json!([])),
        json!([{"name": "m1", "replicas": 3}]),
    );
    check(
        &cluster("m1", "False", json!([])),
        json!([{"name": "m2", "replicas": 3}]),
    );
}

#[test]
fn an_application_that_was_purged_first_starts_anew_where_it_was_if_it_fits_nowhere_else() {
    let check = |mode: &str, report: Value, expected: &str| {
        let task = json!({"reason": "ApplicationFailure", "purgeMode": mode});
        let mut binding = binding(json!([]), false, "False", &task);
        binding.status.aggregated_status = serde_json::from_value(report).unwrap();
        let sources = [cluster("m1", "True", json!([]))];
        let plan = decide(
            GracefulEvictionSnapshot {
                sources: &sources,
                ..snapshot(&binding, &CONFIRMED, 100)
            },
            &policies(hold),
        );
        assert_eq!(summary(&plan), expected, "{mode}");
    };
    let ill = json!([{"clusterName": "m1", "health": "Unhealthy"}]);
    check("Directly", json!([]), "called off: SourceRecovered");
    check("Directly", ill.clone(), "held: Ill");
    check("Gracefully", json!([]), "held: Ill");
    check("Gracefully", ill, "held: Ill");
}

/// S1: a requested rescheduling does not replace a healthy copy by an unhealthy one.
#[test]
fn a_healthy_copy_that_a_rescheduling_gives_up_outlives_every_grace_period() {
    use PurgeWithoutReplacement::{AfterGracePeriod, IfPlaced, OnlyByPolicy};
    let check = |reason: &str, health: &str, source: &Cluster, purge_without_replacement, expected: &str| {
        let mut binding = binding(elsewhere(), true, "True", &json!({"reason": reason}));
        let reports = json!([{"clusterName": "m1", "health": health}, {"clusterName": "m2", "health": "Unhealthy"}]);
        binding.status.aggregated_status = serde_json::from_value(reports).unwrap();
        let options = GracefulEvictionOptions {
            purge_without_replacement,
            ..GracefulEvictionOptions::default()
        };
        let sources = std::slice::from_ref(source);
        let snapshot = GracefulEvictionSnapshot {
            sources,
            options,
            ..snapshot(&binding, &CONFIRMED, 10_000)
        };
        let plan = decide(snapshot, &policies(hold));
        assert_eq!(summary(&plan), expected, "{reason} {health} {source:?} {options:?}");
    };
    let (well, lost) = (cluster("m1", "True", json!([])), cluster("m1", "False", json!([])));
    let (held, over) = ("held: Ill", "released: GracePeriodExceeded");
    for rule in [IfPlaced, AfterGracePeriod, OnlyByPolicy] {
        check("Rescheduled", "Healthy", &well, rule, held);
    }
    check("Rescheduled", "Unhealthy", &well, IfPlaced, over);
    check("Rescheduled", "Unknown", &well, IfPlaced, over);
    check("Rescheduled", "Healthy", &lost, IfPlaced, over);
    check(
        "Rescheduled",
        "Healthy",
        &cluster("m9", "True", json!([])),
        IfPlaced,
        over,
    );
    let no_execute = json!([{"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:00Z"}]);
    check(
        "Rescheduled",
        "Healthy",
        &cluster("m1", "True", no_execute),
        IfPlaced,
        over,
    );
    check(
        "Rescheduled",
        "Healthy",
        &cluster("m1", "True", json!([{"key": "k", "effect": "NoSchedule"}])),
        IfPlaced,
        held,
    );
    check("TaintUntolerated", "Healthy", &well, IfPlaced, over);
}

#[test]
fn it_looks_again_when_a_grace_period_ends_and_once_a_minute() {
    let check = |task: Value, now_s: i64, expected: Option<i64>| {
        let binding = binding(elsewhere(), true, "True", &task);
        let plan = decide(snapshot(&binding, &CONFIRMED, now_s), &policies(hold));
        assert_eq!(plan.again_after_ms, expected, "{task}");
    };
    check(json!({}), 100, Some(60_001));
    check(json!({}), 580, Some(20_001));
    check(json!({"gracePeriodSeconds": 30}), 10, Some(20_001));
    check(json!({"creationTimestamp": null}), 10, Some(600_001));
    check(json!({"suppressDeletion": true}), 10, None);
}
