//! Evictions of applications that have no other target.

use serde_json::{Value, json};

use super::*;

/// Evicted clusters, and those that stay for want of a target, when all targets have been unhealthy for too long.
fn all_fail(clusters: &[&str], placement: Value, targets: &[&str], options: FailoverOptions) -> [Vec<String>; 2] {
    let mut binding = binding(targets, json!({"purgeMode": "Directly"}));
    binding.spec.placement = Some(serde_json::from_value(placement).unwrap());
    let reports: Vec<_> = targets.iter().map(|name| (*name, "Unhealthy")).collect();
    report(&mut binding, &reports);
    let plan = decide_among(clusters, &binding, PRODUCER, options, at(0));
    apply(&mut binding, &plan);
    let plan = decide_among(clusters, &binding, PRODUCER, options, at(61));
    assert_eq!(
        plan.again_after_ms.is_some(),
        !plan.without_target.is_empty(),
        "clusters may change"
    );
    for (_, attribution) in &plan.without_target {
        let known = ["NoTargetCluster", "LastTarget", "WouldReturn"];
        assert!(known.contains(&attribution.reason.code.as_str()), "{attribution:?}");
    }
    let evicted = plan.evicted.iter().map(|(task, _)| task.from_cluster.clone()).collect();
    [
        evicted,
        plan.without_target.into_iter().map(|(cluster, _)| cluster).collect(),
    ]
}

#[test]
fn an_application_that_fails_everywhere_keeps_a_place() {
    let check = |clusters: &[&str], placement: Value, targets: &[&str], evicted: &[&str], stays: &[&str]| {
        let found = all_fail(clusters, placement.clone(), targets, ON);
        assert_eq!(found, [evicted, stays], "{targets:?} among {clusters:?}, {placement}");
    };
    check(&["m1"], json!({}), &["m1"], &[], &["m1"]);
    check(&["m1", "m2"], json!({}), &["m1"], &["m1"], &[]);
    let divided = || json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}});
    check(&["m1", "m2"], divided(), &["m1", "m2"], &["m1"], &["m2"]);
    // A duplicated workload would return to the cluster that it left.
    check(&["m1", "m2"], json!({}), &["m1", "m2"], &[], &["m1", "m2"]);
    // One of several targets stays until the others are placed.
    check(&["m1", "m2", "m3"], json!({}), &["m1", "m2"], &["m1"], &["m2"]);
    check(
        &["m1", "m2", "m3"],
        json!({"clusterAffinity": {"clusterNames": ["m1"]}}),
        &["m1"],
        &[],
        &["m1"],
    );
    let two = json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2}]});
    check(&["m1", "m2"], two, &["m1", "m2"], &[], &["m1", "m2"]);
    let off = FailoverOptions {
        pre_check: Some(PreCheck::None),
        ..ON
    };
    assert_eq!(
        all_fail(&["m1"], json!({}), &["m1"], off),
        [Vec::new(), vec!["m1".to_owned()]]
    );
    assert_eq!(pre_check(off, PurgeMode::Gracefully), PreCheck::None);
    let recorded_before = FailoverOptions { pre_check: None, ..ON };
    assert_eq!(pre_check(recorded_before, PurgeMode::Directly), PreCheck::None);
}

/// Decides at 61 s on a workload whose policy selects `m1` and `m2`, with these reports. Returns the evicted clusters and
/// the reason codes of those that stay.
fn on_two(application: Value, reports: &[(&str, &str)], options: FailoverOptions) -> (Vec<String>, Vec<String>) {
    let mut binding = binding(&["m1", "m2"], application);
    binding.spec.placement =
        Some(serde_json::from_value(json!({"clusterAffinity": {"clusterNames": ["m1", "m2"]}})).unwrap());
    report(&mut binding, reports);
    let plan = decide(&binding, PRODUCER, options, at(0));
    apply(&mut binding, &plan);
    let plan = decide(&binding, PRODUCER, options, at(61));
    let evicted = plan.evicted.iter().map(|(task, _)| task.from_cluster.clone()).collect();
    (
        evicted,
        plan.without_target
            .into_iter()
            .map(|(_, attribution)| attribution.reason.code)
            .collect(),
    )
}

/// The policy of the proposal "Application failover mechanism" without a block: the workload was evicted, released and
/// placed on the same cluster within a second, again and again.
#[test]
fn an_application_that_can_only_return_stays_unless_a_block_keeps_it_away() {
    let check = |application: Value, m2: &str, pre_check: PreCheck, evicted: &[&str], stays: &[&str]| {
        let options = FailoverOptions {
            pre_check: Some(pre_check),
            ..ON
        };
        let found = on_two(application.clone(), &[("m1", "Unhealthy"), ("m2", m2)], options);
        let expected = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            (expected(evicted), expected(stays)),
            "{application} {m2} {pre_check:?}"
        );
    };
    let blocked = || json!({"blockPredecessorSeconds": 600});
    for pre_check in [PreCheck::Feasible, PreCheck::Proposal, PreCheck::None] {
        check(json!({}), "Healthy", pre_check, &[], &["WouldReturn"]);
        check(
            json!({"purgeMode": "Directly"}),
            "Healthy",
            pre_check,
            &[],
            &["WouldReturn"],
        );
        check(blocked(), "Healthy", pre_check, &["m1"], &[]);
    }
    // A block gains nothing if the other copies are unhealthy as well.
    check(
        blocked(),
        "Unhealthy",
        PreCheck::Feasible,
        &[],
        &["NoTargetCluster", "NoTargetCluster"],
    );
}

#[test]
fn a_cluster_with_an_unhealthy_copy_that_has_not_left_is_no_target() {
    let mut binding = binding(&["m2"], json!({}));
    report(&mut binding, &[("m1", "Unhealthy"), ("m2", "Unhealthy")]);
    let plan = decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(0));
    apply(&mut binding, &plan);
    let held = decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(61));
    assert_eq!((held.spec, held.without_target.len()), (None, 1));
    report(&mut binding, &[("m2", "Unhealthy")]);
    assert!(
        decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(61))
            .spec
            .is_some(),
        "the copy on m1 has left"
    );
}

#[test]
fn a_blocked_predecessor_is_no_target() {
    let mut binding = binding(&["m1"], json!({"blockPredecessorSeconds": 100}));
    let left = json!([{"clusterName": "m2", "creationTimestamp": at(0)}]);
    binding.spec.rest.insert(EVICTION_HISTORY.to_owned(), left);
    report(&mut binding, &[("m1", "Unhealthy")]);
    let plan = decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(0));
    apply(&mut binding, &plan);
    let held = decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(61));
    assert_eq!((held.spec, held.without_target.len()), (None, 1));
    assert!(
        decide_among(&["m1", "m2"], &binding, PRODUCER, ON, at(101))
            .spec
            .is_some(),
        "the block is over"
    );
}
