//! A workload that left `m1` for `m2` at second 0, and the time of its return.

use serde_json::{Value, json};

use super::*;
use crate::decide::graceful_eviction::{self, CONFIRMED, GracefulEvictionOptions, GracefulEvictionSnapshot};
use crate::policy::PolicySet;

fn at(second: i64) -> Time {
    Time::from_millis(second * 1000)
}

const WINDOW_S: i64 = 600;

/// Returns a binding with six divided replicas on `m2` and home `m1`; `change` is a JSON merge patch.
fn binding(home: Value, change: &Value) -> Binding {
    let mut whole = json!({
        "namespace": "default", "name": "b", "generation": 5,
        "annotations": {HOME: home.to_string()},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "replicas": 6, "clusters": [{"name": "m2", "replicas": 6}],
            "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
        },
        "status": {"schedulerObservedGeneration": 5},
    });
    merge(&mut whole, change);
    serde_json::from_value(whole).unwrap()
}

fn merge(whole: &mut Value, change: &Value) {
    match (whole, change) {
        (Value::Object(whole), Value::Object(change)) => {
            for (field, value) in change {
                merge(whole.entry(field).or_insert(Value::Null), value);
            }
        }
        (whole, change) => *whole = change.clone(),
    }
}

fn home(clusters: Value) -> Value {
    json!({"clusters": clusters, "leftAt": at(0)})
}

fn m1() -> Value {
    home(json!({"m1": 6}))
}

/// Returns `m1` … `m4`, ready since second 0 and stable since second 100; `change` has merge patches by name.
fn clusters(change: &Value) -> (BTreeMap<String, Arc<Cluster>>, BTreeMap<String, Stability>) {
    let names = ["m1", "m2", "m3", "m4"];
    let cluster = |name: &str| {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(0)}]);
        let mut whole = json!({"name": name, "spec": {"syncMode": "Push"}, "status": {"conditions": ready}});
        if let Some(change) = change.get(name) {
            merge(&mut whole, change);
        }
        Arc::new(serde_json::from_value::<Cluster>(whole).unwrap())
    };
    let clusters: BTreeMap<_, _> = names.iter().map(|name| ((*name).to_owned(), cluster(name))).collect();
    let known = Stability {
        since: at(100),
        taints: Vec::new(),
    };
    let stable = clusters
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), stability(it, Some(&known), at(5000))?)));
    let stable = stable.collect();
    (clusters, stable)
}

fn decided(binding: &Binding, change: &Value, now_s: i64) -> FailbackPlan {
    let (clusters, stable) = clusters(change);
    decide(FailbackSnapshot {
        binding,
        clusters: &clusters,
        stable: &stable,
        pauses: &[],
        window_s: WINDOW_S,
        now: at(now_s),
    })
}

/// Returns the placement after a return, the code and the remaining time of a wait, or the code of an obsolete home.
fn summary(plan: &FailbackPlan) -> String {
    match plan {
        FailbackPlan::Rest => "rest".to_owned(),
        FailbackPlan::Forget(attribution) => format!("forget {}", attribution.reason.code),
        FailbackPlan::Wait {
            attribution,
            left_ms: None,
        } => format!("wait {}", attribution.reason.code),
        FailbackPlan::Wait {
            attribution,
            left_ms: Some(left_ms),
        } => {
            format!("wait {} {left_ms}", attribution.reason.code)
        }
        FailbackPlan::Return(back) => {
            let place = |target: &TargetCluster| format!("{}:{}", target.name, target.replicas);
            let placed: Vec<_> = back.spec.clusters.iter().map(place).collect();
            format!("{} from {}", placed.join(" "), back.task.from_cluster)
        }
    }
}

#[test]
fn nothing_comes_back_before_the_window_has_passed_without_a_break() {
    let check = |home: Value, change: Value, now_s: i64, expected: &str| {
        assert_eq!(
            summary(&decided(&binding(home, &json!({})), &change, now_s)),
            expected,
            "{change} at {now_s}"
        );
    };
    check(m1(), json!({}), 300, "wait Stabilizing 400001");
    check(m1(), json!({}), 700, "wait Stabilizing 1");
    check(m1(), json!({}), 701, "m1:6 from m2");
    let conditions = |status: &str, since| json!({"m1": {"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": at(since)}]}}});
    check(m1(), conditions("True", 500), 1100, "wait Stabilizing 1");
    check(m1(), conditions("False", 0), 5000, "wait HomeNotWell");
    check(m1(), conditions("Unknown", 0), 5000, "wait HomeNotWell");
    let tainted = |effect| json!({"m1": {"spec": {"taints": [{"key": "k", "effect": effect, "timeAdded": at(0)}]}}});
    check(m1(), tainted("NoExecute"), 5000, "wait HomeNotWell");
    check(m1(), tainted("NoSchedule"), 5000, "wait HomeNotWell");
    // The workload left again after the cluster recovered. After an earlier attempt, the window is twice as long.
    check(
        json!({"clusters": {"m1": 6}, "leftAt": at(500)}),
        json!({}),
        1100,
        "wait Stabilizing 1",
    );
    let tried = json!({"clusters": {"m1": 6}, "leftAt": at(0), "tries": 1, "triedAt": at(800)});
    check(tried.clone(), json!({}), 2000, "wait Stabilizing 1");
    check(tried, json!({}), 2001, "m1:6 from m2");
}

#[test]
fn only_what_can_be_taken_back_as_a_whole_goes_back() {
    let check = |home: Value, change: Value, expected: &str| {
        assert_eq!(
            summary(&decided(&binding(home, &change), &json!({}), 5000)),
            expected,
            "{change}"
        );
    };
    let on = |targets: &[(&str, i32)]| {
        let targets = targets
            .iter()
            .map(|(name, replicas)| json!({"name": name, "replicas": replicas}));
        json!({"spec": {"clusters": targets.collect::<Vec<_>>()}})
    };
    check(m1(), on(&[("m1", 6)]), "forget Returned");
    check(home(json!({"m1": 3, "m2": 3})), on(&[("m2", 6)]), "forget NoStandIn");
    // Stand-in clusters are left one at a time.
    check(m1(), on(&[("m2", 2), ("m3", 4)]), "m3:4 m1:2 from m2");
    check(m1(), on(&[("m1", 2), ("m3", 4)]), "m1:6 from m3");
    check(home(json!({"m1": 2, "m4": 4})), on(&[("m2", 6)]), "m1:2 m4:4 from m2");
    check(home(json!({"m1": 1, "m4": 1})), on(&[("m2", 6)]), "m1:5 m4:1 from m2");
    // Each home cluster gets what it lacks.
    check(
        home(json!({"m1": 4, "m4": 4})),
        on(&[("m1", 2), ("m2", 6)]),
        "m1:4 m4:4 from m2",
    );
    check(
        home(json!({"m1": 4, "m4": 5})),
        on(&[("m4", 2), ("m2", 7)]),
        "m4:5 m1:4 from m2",
    );
    check(m1(), on(&[("m1", 6), ("m3", 2)]), "forget NoStandIn");
    // The workload was scaled down in the meantime.
    check(home(json!({"m1": 4, "m4": 4})), on(&[("m2", 3)]), "m1:3 from m2");
    let duplicated = |mut change: Value| {
        change["spec"]["placement"] = json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}});
        change
    };
    check(
        home(json!({"m1": 6, "m4": 6})),
        duplicated(on(&[("m2", 6), ("m3", 6)])),
        "m3:6 m1:6 from m2",
    );
    // A home that is lost does not keep the workload from another one.
    let (homes, targets) = (home(json!({"m1": 6, "m4": 6})), duplicated(on(&[("m2", 6), ("m3", 6)])));
    let lost = json!({"m4": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}});
    assert_eq!(
        summary(&decided(&binding(homes, &targets), &lost, 5000)),
        "m3:6 m1:6 from m2"
    );
    // It left with eight replicas, and its copy at home has all that the template wants now.
    check(
        home(json!({"m1": 8})),
        duplicated(on(&[("m1", 6), ("m2", 6)])),
        "forget NoStandIn",
    );
    check(
        home(json!({"m1": 0})),
        json!({"spec": {"replicas": 0, "clusters": [{"name": "m2"}]}}),
        "m1:0 from m2",
    );
}

#[test]
fn a_move_a_person_or_another_placement_comes_first() {
    let check = |change: Value, expected: &str| {
        assert_eq!(
            summary(&decided(&binding(m1(), &change), &json!({}), 5000)),
            expected,
            "{change}"
        );
    };
    let task = json!([{"fromCluster": "m3", "reason": "R", "producer": "p"}]);
    check(json!({"spec": {"gracefulEvictionTasks": task}}), "wait MoveUnderWay");
    check(
        json!({"spec": {"suspension": {"scheduling": true}}}),
        "wait SchedulingSuspended",
    );
    check(
        json!({"status": {"schedulerObservedGeneration": 4}}),
        "wait SchedulePending",
    );
    check(json!({"spec": {"rescheduleTriggeredAt": at(50)}}), "forget Rescheduled");
    check(json!({"spec": {"rescheduleTriggeredAt": at(0)}}), "m1:6 from m2");
    check(
        json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["m2"]}}}}),
        "forget NoHome",
    );
    check(
        json!({"annotations": {HOME: "{\"clusters\": {\"m9\": 1}, \"leftAt\": \"1970-01-01T00:00:00Z\"}"}}),
        "forget NoHome",
    );
    check(json!({"annotations": {HOME: "none"}}), "rest");
    check(json!({"deletionTimestamp": at(1)}), "rest");
    let (clusters, stable) = clusters(&json!({}));
    let pause = EvictionPause {
        name: "freeze".to_owned(),
        ..EvictionPause::default()
    };
    let binding = binding(m1(), &json!({}));
    let plan = decide(FailbackSnapshot {
        binding: &binding,
        clusters: &clusters,
        stable: &stable,
        pauses: &[pause],
        window_s: WINDOW_S,
        now: at(5000),
    });
    assert_eq!(summary(&plan), "wait EvictionPaused");
}

#[test]
fn a_home_in_another_group_of_affinities_is_scheduled_for_anew_only_if_nothing_else_would_move() {
    let check = |observed: &str, targets: Value, expected: &str, restarts: bool| {
        let groups = json!([
            {"affinityName": "near", "clusterNames": ["m1"]}, {"affinityName": "far", "clusterNames": ["m2", "m3"]},
        ]);
        let placement = json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}, "clusterAffinities": groups});
        let change = json!({
            "spec": {"clusters": targets, "placement": placement}, "status": {"schedulerObservingAffinityName": observed},
        });
        let plan = decided(&binding(m1(), &change), &json!({}), 5000);
        assert_eq!(summary(&plan), expected);
        let at_all = matches!(&plan, FailbackPlan::Return(back) if back.spec.reschedule_triggered_at == Some(at(5000)));
        assert_eq!(at_all, restarts, "{plan:?}");
    };
    let (one, two) = (
        json!([{"name": "m2", "replicas": 6}]),
        json!([{"name": "m2", "replicas": 3}, {"name": "m3", "replicas": 3}]),
    );
    check("far", one.clone(), "m1:6 from m2", true);
    check("gone", one.clone(), "m1:6 from m2", true);
    check("far", two.clone(), "wait SeveralStandIns", false);
    check("near", one, "m1:6 from m2", false);
    check("near", two, "m3:3 m1:3 from m2", false);
}

/// S1: the stand-in copy is deleted only after the home copy is healthy with all its replicas.
#[test]
fn the_copy_that_stands_in_outlives_every_grace_period() {
    let FailbackPlan::Return(back) = decided(&binding(m1(), &json!({})), &json!({}), 5000) else {
        panic!()
    };
    let mut moved = binding(m1(), &json!({}));
    moved.spec = back.spec;
    assert_eq!((back.home.tries, back.home.tried_at), (1, Some(at(5000))));
    let task = &moved.spec.graceful_eviction_tasks[0];
    assert_eq!(task, &back.task);
    assert_eq!(
        (&*task.producer, &*task.reason),
        (PRODUCER_TAINT_MANAGER, REASON_FAILBACK)
    );
    // Karmada and people read the mode off the task.
    assert_eq!(task.purge_mode, Some(PurgeMode::Gracefully));
    assert_eq!(task.creation_timestamp, Some(at(5000)));
    let policies = PolicySet::new(Vec::new());
    for purge_without_replacement in [
        graceful_eviction::PurgeWithoutReplacement::IfPlaced,
        graceful_eviction::PurgeWithoutReplacement::AfterGracePeriod,
        graceful_eviction::PurgeWithoutReplacement::OnlyByPolicy,
    ] {
        let options = GracefulEvictionOptions {
            timeout_s: 0,
            purge_without_replacement,
            ..GracefulEvictionOptions::default()
        };
        let snapshot = GracefulEvictionSnapshot {
            binding: &moved,
            sources: &[],
            unconfirmed: &CONFIRMED,
            options,
            now: at(1_000_000),
        };
        let plan = graceful_eviction::decide(snapshot, &policies);
        assert_eq!((plan.released.len(), plan.held.len()), (0, 1), "{options:?}");
    }
    // No home cluster fits: the stand-in cluster becomes a target again.
    moved.spec.clusters.clear();
    moved.status.conditions =
        serde_json::from_value(json!([{"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}])).unwrap();
    let (clusters, _) = clusters(&json!({}));
    let sources = [Cluster::clone(&clusters["m2"])];
    let options = GracefulEvictionOptions::default();
    let plan = graceful_eviction::decide(
        GracefulEvictionSnapshot {
            binding: &moved,
            sources: &sources,
            unconfirmed: &CONFIRMED,
            options,
            now: at(5001),
        },
        &policies,
    );
    assert_eq!(plan.clusters, Some(vec![TargetCluster::new("m2", 6)]));
}

proptest::proptest! {
    /// For any placement and home, no workload returns early and no replica is lost or duplicated. The only copy that
    /// shrinks is the stand-in, which a task preserves.
    #[test]
    fn replicas_are_conserved_and_no_running_copy_shrinks(
        homes in proptest::collection::btree_map(0_usize..4, 0_i32..5, 1..4),
        placed in proptest::collection::btree_map(0_usize..4, 1_i32..5, 1..4),
        ready_since in proptest::collection::vec(0_i64..3000, 4),
        left_s in 0_i64..3000,
        tries in 0_u32..3,
        now_s in 0_i64..4000,
    ) {
        let name = |index: &usize| format!("m{}", index + 1);
        let clusters_at_home: serde_json::Map<_, _> = homes.iter().map(|(n, r)| (name(n), json!(r))).collect();
        let home = json!({"clusters": clusters_at_home, "leftAt": at(left_s), "tries": tries});
        let targets: Vec<_> = placed.iter().map(|(n, r)| json!({"name": name(n), "replicas": r})).collect();
        let replicas: i32 = placed.values().sum();
        let before = binding(home, &json!({"spec": {"clusters": targets, "replicas": replicas}}));
        let conditions: serde_json::Map<_, _> = ready_since.iter().enumerate().map(|(index, since)| {
            let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(*since)}]);
            (name(&index), json!({"status": {"conditions": ready}}))
        }).collect();
        let plan = decided(&before, &Value::Object(conditions), now_s);
        if let FailbackPlan::Return(back) = plan {
            let sum: i32 = back.spec.clusters.iter().map(|target| target.replicas).sum();
            proptest::prop_assert_eq!(sum, replicas);
            let stand_in = &back.task.from_cluster;
            proptest::prop_assert!(back.spec.is_evicting(stand_in) && !back.spec.targets(stand_in));
            proptest::prop_assert!(!before.spec.targets(stand_in) || !homes.keys().any(|n| name(n) == *stand_in));
            for target in before.spec.clusters.iter().filter(|target| target.name != *stand_in) {
                let after = back.spec.clusters.iter().find(|after| after.name == target.name);
                proptest::prop_assert!(after.is_some_and(|after| after.replicas >= target.replicas));
            }
            let window_s = WINDOW_S << tries;
            for target in &back.spec.clusters {
                let grew = before.spec.clusters.iter().all(|b| b.name != target.name || b.replicas < target.replicas);
                if grew {
                    let index: usize = target.name[1..].parse::<usize>().unwrap() - 1;
                    proptest::prop_assert!(now_s > ready_since[index].max(left_s) + window_s);
                }
            }
        }
    }
}
