//! Application on `m1` (and `m2`) with a toleration of 60 s, and a timeline of its health reports.

mod targets;

use serde_json::{Value, json};

use super::*;

const ON: FailoverOptions = FailoverOptions {
    graceful_eviction: true,
    preserve_state: true,
    pre_check: Some(PreCheck::Feasible),
};
const PRODUCER: &str = "resource-binding-application-failover-controller";

fn decide(binding: &Binding, producer: &str, options: FailoverOptions, now: Time) -> FailoverPlan {
    decide_among(&["m1", "m2", "m3"], binding, producer, options, now)
}

/// A decision in a federation of these clusters, all of them ready.
fn decide_among(
    clusters: &[&str],
    binding: &Binding,
    producer: &str,
    options: FailoverOptions,
    now: Time,
) -> FailoverPlan {
    let clusters = ready(clusters);
    super::decide(FailoverSnapshot {
        binding,
        producer,
        options,
        pauses: &[],
        clusters: &clusters,
        now,
    })
}

fn ready(clusters: &[&str]) -> Vec<Cluster> {
    let cluster = |name: &&str| json!({"name": name, "spec": {"syncMode": "Push"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    clusters
        .iter()
        .map(|name| serde_json::from_value(cluster(name)).unwrap())
        .collect()
}

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1000)
}

/// Returns a binding on these clusters. `application` overrides a toleration of 60 s and purge mode Gracefully.
fn binding(clusters: &[&str], application: Value) -> Binding {
    let mut failover = json!({"decisionConditions": {"tolerationSeconds": 60}, "gracePeriodSeconds": 600});
    for (field, value) in application.as_object().unwrap() {
        failover[field] = value.clone();
    }
    let targets: Vec<_> = clusters
        .iter()
        .map(|name| json!({"name": name, "replicas": 2}))
        .collect();
    serde_json::from_value(json!({
        "namespace": "default", "name": "nginx-deployment",
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"},
            "replicas": 2, "propagateDeps": true, "clusters": targets, "failover": {"application": failover},
        },
    }))
    .unwrap()
}

fn report(binding: &mut Binding, reports: &[(&str, &str)]) {
    let item = |(cluster, health): &(&str, &str)| json!({"clusterName": cluster, "applied": true, "health": health, "status": {"replicas": 2}});
    let items: Vec<_> = reports.iter().map(item).collect();
    binding.status.aggregated_status = serde_json::from_value(json!(items)).unwrap();
}

/// Applies a plan as a controller does.
fn apply(binding: &mut Binding, plan: &FailoverPlan) {
    if let Some(health_histories) = &plan.health_histories {
        binding.annotations.insert(
            HEALTH_HISTORY.to_owned(),
            serde_json::to_string(health_histories).unwrap(),
        );
    }
    if let Some(spec) = &plan.spec {
        binding.spec = (**spec).clone();
    }
}

/// Replays reports of `m1`, each from its start second, and decides whenever the plan requests it. Returns the second
/// of the eviction.
fn leaves_at(application: Value, reports: &[(i64, &str)], until: i64) -> Option<i64> {
    let mut binding = binding(&["m1"], application);
    let mut now_ms = 0;
    loop {
        let (_, health) = reports.iter().rev().find(|(from, _)| from * 1000 <= now_ms).unwrap();
        report(&mut binding, &[("m1", health)]);
        let plan = decide(&binding, PRODUCER, ON, Time::from_millis(now_ms));
        apply(&mut binding, &plan);
        if !plan.evicted.is_empty() {
            return Some(now_ms / 1000);
        }
        let next_report = reports.iter().map(|(from, _)| from * 1000).find(|from| *from > now_ms);
        let next = plan
            .again_after_ms
            .map(|ms| now_ms + ms)
            .into_iter()
            .chain(next_report)
            .min();
        now_ms = next.filter(|next| *next <= until * 1000)?;
    }
}

#[test]
fn an_application_leaves_when_it_was_unhealthy_for_too_long() {
    let check = |application: Value, reports: &[(i64, &str)], expected: Option<i64>| {
        assert_eq!(
            leaves_at(application.clone(), reports, 10_000),
            expected,
            "{application} {reports:?}"
        );
    };
    let plain = || json!({});
    let (well, ill, dim) = ("Healthy", "Unhealthy", "Unknown");
    check(plain(), &[(0, well)], None);
    check(plain(), &[(0, dim)], None);
    check(plain(), &[(0, ill)], Some(60));
    check(plain(), &[(0, well), (100, ill)], Some(160));
    check(plain(), &[(0, ill), (50, well), (55, ill)], Some(115));
    // Unknown pauses the timer; it neither resets nor advances it.
    check(plain(), &[(0, ill), (40, dim), (1000, ill)], Some(1020));
    check(plain(), &[(0, ill), (40, dim)], None);
    check(
        plain(),
        &[(0, ill), (20, dim), (30, ill), (50, dim), (60, ill)],
        Some(80),
    );
    check(
        json!({"decisionConditions": {"tolerationSeconds": 0}}),
        &[(0, well), (9, ill)],
        Some(9),
    );
    check(json!({"decisionConditions": {}}), &[(0, ill)], Some(300));
    check(
        json!({"decisionConditions": {"tolerationSeconds": -5}}),
        &[(0, ill)],
        Some(300),
    );
    // The timer starts when the preconditions hold.
    check(json!({"preConditions": {"delaySeconds": 100}}), &[(0, ill)], Some(160));
    check(
        json!({"preConditions": {"delaySeconds": 100}}),
        &[(0, well), (200, ill)],
        Some(260),
    );
    check(json!({"preConditions": {"delaySeconds": -100}}), &[(0, ill)], Some(60));
    check(json!({"preConditions": {"healthyState": "Healthy"}}), &[(0, ill)], None);
    check(
        json!({"preConditions": {"healthyState": "Healthy"}}),
        &[(0, dim), (5, well), (10, ill)],
        Some(70),
    );
    let both = json!({"preConditions": {"delaySeconds": 100, "healthyState": "Healthy"}});
    check(both, &[(0, well), (10, ill)], Some(160));
}

#[test]
fn a_task_says_what_the_policy_says() {
    let check = |application: Value, expected: Value| {
        let mut binding = binding(&["m1", "m2"], application);
        report(&mut binding, &[("m1", "Unhealthy"), ("m2", "Healthy")]);
        let plan = decide(&binding, PRODUCER, ON, at(0));
        apply(&mut binding, &plan);
        let plan = decide(&binding, PRODUCER, ON, at(61));
        let spec = plan.spec.expect("it leaves");
        assert_eq!(
            serde_json::to_value(&spec.clusters).unwrap(),
            json!([{"name": "m2", "replicas": 2}])
        );
        let mut expected = expected;
        expected["fromCluster"] = json!("m1");
        expected["replicas"] = json!(2);
        expected["reason"] = json!("ApplicationFailure");
        expected["producer"] = json!(PRODUCER);
        assert_eq!(
            serde_json::to_value(&spec.graceful_eviction_tasks).unwrap(),
            json!([expected])
        );
        let (_, attribution) = &plan.evicted[0];
        assert_eq!(attribution.reason.message, "unhealthy for 61 s, 60 s are tolerated");
        assert!(
            !spec.rest.contains_key(EVICTION_HISTORY),
            "the policy blocks no cluster"
        );
        assert!(
            !plan.health_histories.unwrap().contains_key("m1"),
            "what left is watched anew when it comes back"
        );
    };
    check(json!({}), json!({"purgeMode": "Gracefully", "gracePeriodSeconds": 600}));
    check(
        json!({"purgeMode": "Graciously"}),
        json!({"purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
    );
    check(json!({"purgeMode": "Directly"}), json!({"purgeMode": "Directly"}));
    check(json!({"purgeMode": "Immediately"}), json!({"purgeMode": "Directly"}));
    check(
        json!({"purgeMode": "Never"}),
        json!({"purgeMode": "Never", "suppressDeletion": true}),
    );
    let rules = json!({"rules": [{"aliasLabelName": "alias", "jsonPath": "{.replicas}"}]});
    let kept = json!({
        "purgeMode": "Directly", "preservedLabelState": {"alias": "2"}, "clustersBeforeFailover": ["m1", "m2"],
    });
    check(json!({"purgeMode": "Directly", "statePreservation": rules}), kept);
}

#[test]
fn what_cannot_leave_whole_stays_whole() {
    let check = |application: Value, options, expected: &str| {
        let mut binding = binding(&["m1", "m2"], application);
        report(&mut binding, &[("m1", "Unhealthy"), ("m2", "Unhealthy")]);
        let plan = decide(&binding, PRODUCER, options, at(0));
        apply(&mut binding, &plan);
        let plan = decide(&binding, PRODUCER, options, at(61));
        assert_eq!(plan.spec, None);
        assert_eq!(plan.evicted, []);
        assert_eq!(plan.blocked.unwrap().to_string(), expected);
    };
    let off = FailoverOptions {
        graceful_eviction: false,
        ..ON
    };
    check(
        json!({}),
        off,
        "purge mode Gracefully needs the feature gate GracefulEviction",
    );
    let rules = json!({"rules": [{"aliasLabelName": "alias", "jsonPath": "{.jobID}"}]});
    let message = "jsonPath \"{.jobID}\" of the label alias: jobID is not found";
    check(
        json!({"purgeMode": "Directly", "statePreservation": rules}),
        ON,
        message,
    );
}

#[test]
fn failover_is_off_unless_the_policy_asks_for_it_and_dependencies_travel_along() {
    let check = |change: fn(&mut Binding)| {
        let mut binding = binding(&["m1"], json!({}));
        report(&mut binding, &[("m1", "Unhealthy")]);
        let plan = decide(&binding, PRODUCER, ON, at(0));
        apply(&mut binding, &plan);
        change(&mut binding);
        let plan = decide(&binding, PRODUCER, ON, at(1000));
        assert_eq!((plan.spec, plan.again_after_ms), (None, None));
        assert_eq!(
            plan.health_histories,
            Some(HealthHistories::new()),
            "the clock is forgotten"
        );
    };
    check(|binding| binding.spec.failover = None);
    check(|binding| binding.spec.propagate_deps = false);
    check(|binding| binding.deletion_timestamp = Some(at(1)));
}

#[test]
fn a_cluster_that_is_being_left_is_not_left_again() {
    let mut binding = binding(&["m1"], json!({}));
    report(&mut binding, &[("m1", "Unhealthy")]);
    let task = GracefulEvictionTask {
        from_cluster: "m1".to_owned(),
        ..GracefulEvictionTask::default()
    };
    binding.spec.graceful_eviction_tasks.push(task);
    let plan = decide(&binding, PRODUCER, ON, at(0));
    apply(&mut binding, &plan);
    assert_eq!(decide(&binding, PRODUCER, ON, at(1000)).spec, None);
}

#[test]
fn a_pause_stops_an_application_from_leaving_until_it_ends() {
    let mut binding = binding(&["m1"], json!({}));
    report(&mut binding, &[("m1", "Unhealthy")]);
    let plan = decide(&binding, PRODUCER, ON, at(0));
    apply(&mut binding, &plan);
    let pause = |spec: Value| EvictionPause {
        name: "freeze".to_owned(),
        spec: serde_json::from_value(spec).unwrap(),
    };
    let decide_at = |pauses: &[EvictionPause], now| {
        let (binding, clusters) = (&binding, ready(&["m1", "m2"]));
        super::decide(FailoverSnapshot {
            binding,
            producer: PRODUCER,
            options: ON,
            pauses,
            clusters: &clusters,
            now,
        })
    };
    let plan = decide_at(&[pause(json!({"until": at(100)}))], at(61));
    assert_eq!((plan.spec, plan.again_after_ms), (None, Some(39_001)));
    assert_eq!(plan.paused[0].1.reason.code, "EvictionPaused");
    assert!(decide_at(&[pause(json!({"until": at(100)}))], at(101)).spec.is_some());
    assert!(decide_at(&[pause(json!({"clusters": ["m9"]}))], at(61)).spec.is_some());
    let plan = decide_at(&[pause(json!({}))], at(61));
    assert_eq!((plan.spec, plan.again_after_ms), (None, None));
}

#[test]
fn a_clock_that_jumps_back_delays_and_one_that_was_broken_starts_again() {
    let mut binding = binding(&["m1"], json!({}));
    report(&mut binding, &[("m1", "Unhealthy")]);
    let plan = decide(&binding, PRODUCER, ON, at(10_000));
    apply(&mut binding, &plan);
    let plan = decide(&binding, PRODUCER, ON, at(500));
    assert_eq!((plan.spec.clone(), plan.again_after_ms), (None, Some(60_001)));
    apply(&mut binding, &plan);
    assert!(decide(&binding, PRODUCER, ON, at(561)).spec.is_some());
    binding
        .annotations
        .insert(HEALTH_HISTORY.to_owned(), "nonsense".to_owned());
    assert_eq!(decide(&binding, PRODUCER, ON, at(561)).again_after_ms, Some(60_001));
}

#[test]
fn the_history_of_evictions_is_kept_for_as_long_as_it_blocks() {
    let mut binding = binding(&["m1"], json!({"blockPredecessorSeconds": 100}));
    let old = json!([
        {"clusterName": "m8", "creationTimestamp": "1970-01-01T00:00:00Z"},
        {"clusterName": "m9", "creationTimestamp": "1970-01-01T00:01:00Z"},
        {"clusterName": "m1", "creationTimestamp": "1970-01-01T00:01:00Z"},
    ]);
    binding.spec.rest.insert(EVICTION_HISTORY.to_owned(), old);
    report(&mut binding, &[("m1", "Unhealthy")]);
    let plan = decide(&binding, PRODUCER, ON, at(50));
    apply(&mut binding, &plan);
    let plan = decide(&binding, PRODUCER, ON, at(120));
    let history = &plan.spec.unwrap().rest[EVICTION_HISTORY];
    let expected = json!([
        {"clusterName": "m9", "creationTimestamp": "1970-01-01T00:01:00Z"},
        {"clusterName": "m1", "creationTimestamp": "1970-01-01T00:02:00Z"},
    ]);
    assert_eq!(*history, expected);
}

#[test]
fn a_plan_that_was_applied_asks_for_nothing_more() {
    for health in ["Healthy", "Unhealthy", "Unknown"] {
        let mut binding = binding(&["m1", "m2"], json!({}));
        report(&mut binding, &[("m1", health), ("m2", "Healthy")]);
        for now in [at(0), at(30), at(61), at(62)] {
            let plan = decide(&binding, PRODUCER, ON, now);
            apply(&mut binding, &plan);
            let again = decide(&binding, PRODUCER, ON, now);
            assert_eq!(
                (again.health_histories, again.spec, again.counting),
                (None, None, Vec::new()),
                "{health} {now}"
            );
        }
    }
}

#[test]
fn the_delay_of_a_precondition_is_no_longer_than_it_says() {
    let mut binding = binding(&["m1"], json!({"preConditions": {"delaySeconds": 100}}));
    report(&mut binding, &[("m1", "Unhealthy")]);
    let plan = decide(&binding, PRODUCER, ON, at(10_000));
    assert_eq!(plan.again_after_ms, Some(100_000));
    apply(&mut binding, &plan);
    // The clock was set back, so the first report is in the future.
    assert_eq!(decide(&binding, PRODUCER, ON, at(500)).again_after_ms, Some(100_000));
    assert_eq!(decide(&binding, PRODUCER, ON, at(10_099)).again_after_ms, Some(1_000));
    assert_eq!(decide(&binding, PRODUCER, ON, at(10_100)).again_after_ms, Some(60_001));
}
