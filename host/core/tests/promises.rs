//! Property tests of the safety promises for starting and finishing evictions, over arbitrary bindings. No copy is
//! lost, a copy in doubt is kept, and no task ends twice. Covers S1, S4, S6, S7 and S8 of
//! `docs/src/explanation/promises.md`, as far as a decision can guarantee them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::call::{Call, CallKind, EvictionVerdict, Reason, Reply};
use bulkhead_core::decide::application_failover::{self, FailoverOptions, FailoverSnapshot, HEALTH_HISTORY};
use bulkhead_core::decide::eviction::PreCheck;
use bulkhead_core::decide::graceful_eviction::{
    self, CONFIRMED, GracefulEvictionOptions, GracefulEvictionPlan, GracefulEvictionSnapshot, PurgeWithoutReplacement,
    ReplacementHealth, RestoreSource, ScheduleResult, result,
};
use bulkhead_core::model::{
    AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask, Health, PurgeMode, TargetCluster,
};
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugins_builtin::ResourceHealth;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: [&str; 4] = ["m1", "m2", "m3", "m4"];
const NOW_S: i64 = 10_000;

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1000)
}

/// Eviction check with a fixed reply.
struct FixedReply(PolicyId, Vec<Capability>, fn() -> Result<Reply, Fault>);

impl FixedReply {
    fn policy(name: &str, say: fn() -> Result<Reply, Fault>) -> Arc<dyn Policy> {
        Arc::new(Self(
            PolicyId::builtin(name),
            vec![Capability::any(CallKind::EvictionCheck)],
            say,
        ))
    }
}

impl Policy for FixedReply {
    fn id(&self) -> &PolicyId {
        &self.0
    }

    fn capabilities(&self) -> &[Capability] {
        &self.1
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        self.2()
    }
}

fn fault() -> Result<Reply, Fault> {
    Err(Fault::new(FaultKind::Trap, "unreachable"))
}

#[expect(clippy::unnecessary_wraps, reason = "what a policy says")]
fn nonsense() -> Result<Reply, Fault> {
    Ok(Reply::Score(vec![7]))
}

#[expect(clippy::unnecessary_wraps, reason = "what a policy says")]
fn hold() -> Result<Reply, Fault> {
    let reason = Reason::new("Frozen", "nothing moves today");
    Ok(Reply::EvictionCheck(EvictionVerdict::Hold {
        reason,
        recheck_after_s: None,
    }))
}

fn health_rule() -> Arc<dyn Policy> {
    Arc::new(ResourceHealth::default())
}

fn a_task(cluster: &'static str) -> impl Strategy<Value = Value> {
    let created = prop_oneof![
        1 => Just(Value::Null),
        6 => (0..NOW_S + 5000).prop_map(|seconds| json!(at(seconds))),
    ];
    let mode = prop_oneof![
        4 => prop::sample::select(vec!["Directly", "Gracefully", "Never", "Immediately"]).prop_map(Value::from),
        1 => Just(json!("Eventually")),
        1 => Just(Value::Null),
    ];
    let reason = prop::sample::select(vec!["TaintUntolerated", "ApplicationFailure", "Maintenance"]);
    let suppress = prop_oneof![6 => Just(Value::Null), 1 => Just(json!(true)), 1 => Just(json!(false))];
    let seconds = prop_oneof![3 => Just(Value::Null), 3 => (-5_i64..2000).prop_map(Value::from)];
    let replicas = prop_oneof![1 => Just(Value::Null), 5 => (0_i64..6).prop_map(Value::from)];
    (created, mode, reason, suppress, seconds, replicas).prop_map(
        move |(created, mode, reason, suppress, seconds, replicas)| {
            json!({
                "fromCluster": cluster, "creationTimestamp": created, "purgeMode": mode, "reason": reason,
                "producer": "somebody", "suppressDeletion": suppress, "gracePeriodSeconds": seconds,
                "replicas": replicas,
            })
        },
    )
}

prop_compose! {
    fn a_binding()(
        targets in prop::collection::vec((prop::sample::select(&NAMES[..]), 0_i64..5), 0..4),
        tasks in NAMES.map(|name| prop::option::weighted(0.5, a_task(name))),
        healths in NAMES.map(|name| (
            Just(name), prop::sample::select(vec!["Healthy", "Healthy", "Unhealthy", "Unknown", ""]),
            prop::option::of(0_i64..5),
        )),
        divided in any::<bool>(),
        seen in any::<bool>(),
        scheduled in prop::sample::select(vec!["True", "False"]),
        replicas in 0_i64..9,
    ) -> Binding {
        let targets: BTreeMap<_, _> = targets.into_iter().collect();
        let targets: Vec<_> = targets.iter().map(|(name, count)| json!({"name": name, "replicas": count})).collect();
        let item = |(name, health, available): &(&str, &str, Option<i64>)| {
            let mut item = json!({"clusterName": name});
            if !health.is_empty() {
                item["health"] = json!(health);
            }
            if let Some(available) = available {
                item["status"] = json!({"availableReplicas": available});
            }
            item
        };
        let kind = if divided { "Divided" } else { "Duplicated" };
        serde_json::from_value(json!({
            "namespace": "default", "name": "b", "generation": 7,
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "replicas": replicas, "clusters": targets,
                "placement": {"replicaScheduling": {"replicaSchedulingType": kind}},
                "gracefulEvictionTasks": tasks.into_iter().flatten().collect::<Vec<_>>(),
            },
            "status": {
                "schedulerObservedGeneration": if seen { 7 } else { 6 },
                "conditions": [{"type": "Scheduled", "status": scheduled, "reason": "R", "message": ""}],
                "aggregatedStatus": healths.iter().map(item).collect::<Vec<_>>(),
            },
        })).unwrap()
    }
}

fn some_sources() -> impl Strategy<Value = Vec<Cluster>> {
    let cluster = |name| {
        let ready = prop::sample::select(vec!["True", "False", "Unknown"]);
        prop::option::weighted(
            0.8,
            (ready, prop::bool::weighted(0.3)).prop_map(move |(ready, tainted)| -> Cluster {
                let taints = if tainted {
                    json!([{"key": "k", "effect": "NoExecute"}])
                } else {
                    json!([])
                };
                let conditions = json!([{"type": "Ready", "status": ready, "reason": "R", "message": ""}]);
                let spec = json!({"syncMode": "Push", "taints": taints});
                serde_json::from_value(json!({"name": name, "spec": spec, "status": {"conditions": conditions}}))
                    .unwrap()
            }),
        )
    };
    NAMES
        .map(cluster)
        .prop_map(|clusters| clusters.into_iter().flatten().collect())
}

fn some_options() -> impl Strategy<Value = GracefulEvictionOptions> {
    use PurgeWithoutReplacement::{AfterGracePeriod, IfPlaced, OnlyByPolicy};
    let purge = prop::sample::select(vec![IfPlaced, AfterGracePeriod, OnlyByPolicy]);
    let restore = prop::sample::select(vec![RestoreSource::WhenUnplaced, RestoreSource::Never]);
    let health = prop::sample::select(vec![ReplacementHealth::Covering, ReplacementHealth::Reported]);
    (purge, restore, health, 0_i64..2000).prop_map(
        |(purge_without_replacement, restore_source, replacement_health, timeout_s)| GracefulEvictionOptions {
            timeout_s,
            purge_without_replacement,
            restore_source,
            replacement_health,
            keeps_last_place: true,
        },
    )
}

fn decide(
    binding: &Binding,
    sources: &[Cluster],
    options: GracefulEvictionOptions,
    policies: Vec<Arc<dyn Policy>>,
) -> GracefulEvictionPlan {
    let snapshot = GracefulEvictionSnapshot {
        binding,
        sources,
        unconfirmed: &CONFIRMED,
        options,
        now: at(NOW_S),
    };
    graceful_eviction::decide(snapshot, &PolicySet::new(policies))
}

fn released(plan: &GracefulEvictionPlan) -> Vec<&str> {
    plan.released
        .iter()
        .map(|(task, _)| task.from_cluster.as_str())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s1_no_copy_is_released_without_a_healthy_replacement_or_a_recorded_permission(
        binding in a_binding(), sources in some_sources(), options in some_options(),
    ) {
        let plan = decide(&binding, &sources, options, vec![health_rule()]);
        let present = result::schedule_result(&binding) == ScheduleResult::Present;
        let covers = |item: &AggregatedStatusItem, placed: i32| {
            let available = item.status.as_ref().and_then(|status| status["availableReplicas"].as_i64());
            available.is_none_or(|available| available >= i64::from(placed))
                || options.replacement_health == ReplacementHealth::Reported
        };
        // Added replicas wait for the end of a direct purge of a cluster that is not ready.
        let waits = |task: &GracefulEvictionTask| {
            let is_ready = |cluster: &Cluster| cluster.name == task.from_cluster && cluster.is_ready();
            task.purge_mode == Some(PurgeMode::Directly) && !sources.iter().any(is_ready)
        };
        let healthy = |target: &TargetCluster, waits: bool| binding.status.aggregated_status.iter().any(|item| {
            let counts = waits || covers(item, target.replicas);
            item.cluster_name == target.name && item.health == Some(Health::Healthy) && counts
        });
        // No report of the generated bindings says that it was applied.
        let seen = |target: &TargetCluster| binding.status.aggregated_status.iter().any(|item| {
            let has_health = matches!(item.health, Some(Health::Healthy | Health::Unhealthy));
            item.cluster_name == target.name && (has_health || item.status.is_some())
        });
        for (task, attribution) in &plan.released {
            match attribution.reason.code.as_str() {
                "ReplacementHealthy" => {
                    let policy = attribution.policy.as_ref().map(|policy| policy.name.as_str());
                    prop_assert_eq!(policy, Some("ResourceHealth"));
                    prop_assert!(present && binding.spec.clusters.iter().all(|target| healthy(target, waits(task))));
                }
                "DeletionConfirmed" => prop_assert_eq!(task.suppress_deletion, Some(false)),
                "GracePeriodExceeded" => {
                    let own = task.grace_period_seconds.is_some_and(|seconds| seconds > 0);
                    prop_assert!(task.creation_timestamp.is_some_and(|created| created < at(NOW_S)));
                    match options.purge_without_replacement {
                        PurgeWithoutReplacement::AfterGracePeriod => {}
                        PurgeWithoutReplacement::IfPlaced => {
                            prop_assert!(present && (own || binding.spec.clusters.iter().all(seen)));
                        }
                        PurgeWithoutReplacement::OnlyByPolicy => prop_assert!(present && own),
                    }
                    let named = if own { "gracePeriodSeconds" } else { "graceful-eviction-timeout" };
                    prop_assert!(attribution.reason.message.contains(named));
                }
                other => prop_assert!(false, "{other} is no word for letting a copy go"),
            }
            prop_assert!(task.foreign_purge_mode().is_none() || task.suppress_deletion == Some(false));
        }
    }

    #[test]
    fn a_task_has_one_end_and_replicas_are_neither_lost_nor_doubled(
        binding in a_binding(), sources in some_sources(), options in some_options(),
    ) {
        let plan = decide(&binding, &sources, options, vec![health_rule()]);
        let before = &binding.spec.graceful_eviction_tasks;
        let kept = plan.tasks.as_ref().unwrap_or(before);
        for task in before {
            let is_it = |cluster: &str| usize::from(cluster == task.from_cluster);
            let ends = [
                kept.iter().map(|kept| is_it(&kept.from_cluster)).sum::<usize>(),
                plan.released.iter().map(|(task, _)| is_it(&task.from_cluster)).sum(),
                plan.called_off.iter().map(|(task, _)| is_it(&task.from_cluster)).sum(),
            ];
            prop_assert_eq!(ends.iter().sum::<usize>(), 1, "{:?}", ends);
        }
        let clusters = plan.clusters.as_ref().unwrap_or(&binding.spec.clusters);
        prop_assert!(binding.spec.clusters.iter().all(|target| clusters.contains(target)), "no target is taken away");
        for (task, _) in &plan.called_off {
            prop_assert!(clusters.iter().any(|target| target.name == task.from_cluster), "what is called off runs on");
        }
        for (task, _) in &plan.released {
            prop_assert!(!clusters.iter().any(|target| target.name == task.from_cluster));
        }
        let sum = |targets: &[TargetCluster]| targets.iter().map(|t| t.replicas).sum::<i32>();
        let divided = binding.spec.placement.as_ref().unwrap().replica_scheduling_type()
            == bulkhead_core::model::ReplicaSchedulingType::Divided;
        if plan.clusters.is_some() && divided {
            prop_assert!(sum(clusters) <= binding.spec.replicas.max(sum(&binding.spec.clusters)));
        }
    }

    #[test]
    fn s4_a_plugin_that_fails_or_holds_never_lets_more_go(
        binding in a_binding(), sources in some_sources(), options in some_options(),
    ) {
        let without = decide(&binding, &sources, options, vec![health_rule()]);
        for say in [fault as fn() -> _, nonsense, hold] {
            let other = || FixedReply::policy("Other", say);
            for policies in [vec![health_rule(), other()], vec![other(), health_rule()]] {
                let with = decide(&binding, &sources, options, policies);
                for cluster in released(&with) {
                    prop_assert!(released(&without).contains(&cluster), "{cluster} goes because of a plugin that fails");
                }
            }
        }
    }

    #[test]
    fn s6_tasks_of_others_are_kept_word_for_word(binding in a_binding(), options in some_options()) {
        let mut binding = binding;
        for task in &mut binding.spec.graceful_eviction_tasks {
            task.rest.insert("ticket".to_owned(), json!(42));
        }
        let plan = decide(&binding, &[], options, vec![FixedReply::policy("Other", hold)]);
        for task in plan.tasks.iter().flatten() {
            let before = binding.spec.graceful_eviction_tasks.iter().find(|t| t.from_cluster == task.from_cluster);
            let stamped = bulkhead_core::model::GracefulEvictionTask {
                creation_timestamp: task.creation_timestamp, ..before.unwrap().clone()
            };
            prop_assert_eq!(task, &stamped, "only the missing time is filled in");
        }
    }

    #[test]
    fn s7_and_s8_a_plan_is_the_same_again_and_asks_for_nothing_once_applied(
        binding in a_binding(), sources in some_sources(), options in some_options(),
    ) {
        let plan = decide(&binding, &sources, options, vec![health_rule()]);
        prop_assert_eq!(&plan, &decide(&binding, &sources, options, vec![health_rule()]));
        let reasons = plan.released.iter().chain(&plan.called_off).chain(&plan.held);
        for (_, attribution) in reasons {
            prop_assert!(!attribution.reason.code.is_empty() && !attribution.reason.message.is_empty());
        }
        let mut applied = binding;
        if let Some(tasks) = plan.tasks {
            applied.spec.graceful_eviction_tasks = tasks;
        }
        if let Some(clusters) = plan.clusters {
            applied.spec.clusters = clusters;
            applied.generation += 1;
        }
        // A task that only got its timestamp is assessed in the next round; all others are final.
        let again = decide(&applied, &sources, options, vec![FixedReply::policy("Other", hold), health_rule()]);
        let unstamped = |plan: &GracefulEvictionPlan| {
            plan.tasks.iter().flatten().any(|task| task.creation_timestamp.is_none())
        };
        prop_assert!(!unstamped(&again));
    }

    #[test]
    fn s4_an_application_leaves_only_when_it_is_known_to_have_been_ill_for_too_long(
        reports in prop::collection::vec((1_i64..90, prop::sample::select(vec!["Healthy", "Unhealthy", "Unknown"])), 1..25),
        tolerated in 0_i64..200,
    ) {
        let mut binding: Binding = serde_json::from_value(json!({
            "namespace": "default", "name": "b",
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "replicas": 3, "propagateDeps": true,
                "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}],
                "failover": {"application": {"decisionConditions": {"tolerationSeconds": tolerated}}},
            },
        })).unwrap();
        let options = FailoverOptions { graceful_eviction: true, preserve_state: false, pre_check: Some(PreCheck::Feasible) };
        let ready = |name| json!({
            "name": name, "spec": {"syncMode": "Push"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let clusters: Vec<Cluster> = serde_json::from_value(json!([ready("m1"), ready("m2"), ready("m3")])).unwrap();
        let (mut now, mut ill_s) = (0, 0);
        for (lasts, health) in reports {
            let items = json!([{"clusterName": "m1", "health": health}, {"clusterName": "m2", "health": "Healthy"}]);
            binding.status.aggregated_status = serde_json::from_value(items).unwrap();
            for _ in 0..lasts {
                // Decides every second, with no state other than the binding.
                let plan = application_failover::decide(FailoverSnapshot {
                    binding: &binding,
                    producer: "p",
                    options,
                    pauses: &[],
                    clusters: &clusters,
                    now: at(now),
                });
                if let Some(spec) = plan.spec {
                    prop_assert_eq!(health, "Unhealthy");
                    prop_assert!(ill_s > tolerated, "{ill_s} s of illness, {tolerated} s are tolerated");
                    let placed: i32 = spec.clusters.iter().map(|target| target.replicas).sum();
                    let leaving: i32 = spec.graceful_eviction_tasks.iter().filter_map(|task| task.replicas).sum();
                    prop_assert_eq!(placed + leaving, 3, "what leaves is noted, what stays is not touched");
                    prop_assert_eq!(spec.graceful_eviction_tasks.len(), 1);
                    return Ok(());
                }
                if let Some(histories) = plan.health_histories {
                    binding.annotations.insert(HEALTH_HISTORY.to_owned(), serde_json::to_string(&histories).unwrap());
                }
                match health {
                    "Unhealthy" => ill_s += 1,
                    "Healthy" => ill_s = 0,
                    _ => {}
                }
                now += 1;
            }
            prop_assert!(health != "Unhealthy" || ill_s <= tolerated + 2, "it stays although it has been ill for {ill_s} s");
        }
    }
}
