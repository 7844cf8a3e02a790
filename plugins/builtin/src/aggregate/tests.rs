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
        check(
            ("apps/v1", "Deployment"),
            json!({"metadata": {"generation": 2}, "status": old}),
            statuses,
            expected,
        );
    };
    let current = [("m1", member(2, (1, 1, 2))), ("m2", member(1, (4, 4, 2)))];
    check(
        Value::Null,
        &current,
        Ok(json!({"replicas": 3, "observedGeneration": 2})),
    );
    let condition = json!({"type": "Available", "status": "True", "lastUpdateTime": null, "lastTransitionTime": null});
    let kept = json!({"collisionCount": 2, "conditions": [condition], "readyReplicas": 9, "extra": 1});
    let expected = json!({"collisionCount": 2, "conditions": [condition], "replicas": 3, "observedGeneration": 2});
    check(kept, &current, Ok(expected));
    let behind = [("m1", member(2, (1, 1, 1))), ("m2", member(1, (4, 4, 2)))];
    check(
        json!({"observedGeneration": 1}),
        &behind,
        Ok(json!({"replicas": 3, "observedGeneration": 1})),
    );
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
    check(
        Value::Null,
        &[("m1", json!([1]))],
        Err("status in m1: it is a list, not an object"),
    );
    check(
        json!({"conditions": 1}),
        &current,
        Err("status.conditions is a number, not a list"),
    );
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
    let reported = [
        ("m1", json!({"desiredNumberScheduled": 1})),
        ("m2", json!({"desiredNumberScheduled": 2})),
    ];
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
    check(
        json!({"extra": 1, "collisionCount": 0}),
        Some(("collisionCount", json!(0))),
    );
    let condition = json!({"type": "X", "status": "True", "lastTransitionTime": null});
    check(
        json!({"extra": 1, "conditions": [condition]}),
        Some(("conditions", json!([condition]))),
    );
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
    check(
        ("v1", "PersistentVolume"),
        &[("m1", json!({"phase": "Odd"}))],
        json!("unchanged"),
    );
    check(
        ("v1", "PersistentVolumeClaim"),
        &[("m1", json!({}))],
        json!("unchanged"),
    );
    check(
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        &[("m1", json!({}))],
        json!("unchanged"),
    );
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
    check(
        ("v1", "PersistentVolumeClaim"),
        old,
        json!({"phase": "Bound"}),
        json!({"phase": "Bound"}),
    );
    let old = json!({"phase": "Bound", "reason": "x", "lastPhaseTransitionTime": "2024-01-01T00:00:00Z"});
    check(
        ("v1", "PersistentVolume"),
        old,
        json!({"phase": "Bound"}),
        json!({"phase": "Bound"}),
    );
    let odd = json!({"phase": "Odd"});
    check(
        ("v1", "PersistentVolume"),
        json!({"phase": "Bound"}),
        odd.clone(),
        json!({}),
    );
    check(
        ("v1", "PersistentVolumeClaim"),
        json!({"phase": "Bound"}),
        odd.clone(),
        odd,
    );
    let old = json!({"observedGeneration": 3, "conditions": [{"type": "DisruptionAllowed"}], "expectedPods": 9});
    let zeros = json!({"currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
    check(
        ("policy/v1", "PodDisruptionBudget"),
        old,
        json!({"currentHealthy": 1}),
        zeros,
    );
    let autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler");
    let old = json!({"lastScaleTime": "2024-01-01T00:00:00Z", "currentMetrics": [{"type": "Pods"}]});
    let expected = json!({"currentMetrics": null, "desiredReplicas": 2});
    check(autoscaler, old, json!({"desiredReplicas": 2}), expected);
    let same = json!({"currentReplicas": 1, "desiredReplicas": 2, "extra": true});
    check(
        autoscaler,
        same,
        json!({"currentReplicas": 1, "desiredReplicas": 2}),
        json!("unchanged"),
    );
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
        (
            "m1",
            json!({"currentHealthy": 1, "disruptedPods": {"p": "2024-01-01T00:00:00Z"}}),
        ),
        ("m2", json!({"currentHealthy": 2, "desiredHealthy": 1})),
    ];
    let expected = json!({
        "currentHealthy": 3, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 0,
        "disruptedPods": {"m1/p": "2024-01-01T00:00:00Z"},
    });
    check(("policy/v1", "PodDisruptionBudget"), json!({}), &reported, Ok(expected));
    let reported = [
        ("m1", json!({"currentReplicas": 1, "desiredReplicas": 2})),
        ("m2", json!({"desiredReplicas": 2})),
    ];
    let expected = json!({"currentMetrics": null, "currentReplicas": 1, "desiredReplicas": 4});
    check(
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        json!({}),
        &reported,
        Ok(expected),
    );
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
    check(
        ("batch/v1", "Job"),
        json!({}),
        &large("failed", 1),
        Ok(json!({"failed": i32::MIN})),
    );
    let autoscaler = ("autoscaling/v2", "HorizontalPodAutoscaler");
    let wrapped = json!({"currentMetrics": null, "desiredReplicas": -2});
    check(autoscaler, json!({}), &large("desiredReplicas", i32::MAX), Ok(wrapped));
    let beyond = [("m1", json!({"replicas": i64::from(i32::MAX) + 1}))];
    check(
        ("apps/v1", "Deployment"),
        json!({}),
        &beyond,
        Err("status in m1: replicas is outside of 32 bits"),
    );
}

#[test]
fn other_kinds_have_no_rule() {
    check(("example.io/v1", "Widget"), json!({}), &[], Ok(Value::Null));
    check(
        ("v1", "Service"),
        json!({"spec": {"type": "ClusterIP"}}),
        &[],
        Ok(json!("unchanged")),
    );
    let running = json!({"phase": "Running"});
    check(("v1", "Pod"), json!({"status": running}), &[], Ok(running));
    check(("v1", "Pod"), json!({}), &[], Ok(json!({})));
}
