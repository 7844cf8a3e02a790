//! Targets without a report that counts: dead ones, and ones that have not reported their copy yet.

use serde_json::{Value, json};

use super::*;

fn unconfirmed(targets: &[(&str, Unconfirmed)]) -> UnconfirmedTargets {
    targets
        .iter()
        .map(|(name, reason)| ((*name).to_owned(), *reason))
        .collect()
}

#[test]
fn a_stale_report_of_a_dead_target_releases_nothing() {
    use Unconfirmed::{Missing, NotReady, Outdated, Terminating, Unreachable};
    let check = |reason: Option<Unconfirmed>, expected: &str, again_after_ms: Option<i64>| {
        let mut binding = binding(elsewhere(), true, "True", &json!({}));
        let reported = json!([{"clusterName": "m2", "health": "Healthy", "status": {"availableReplicas": 3}}]);
        binding.status.aggregated_status = serde_json::from_value(reported).unwrap();
        let unconfirmed = unconfirmed(reason.map(|reason| ("m2", reason)).as_slice());
        let snapshot = snapshot(&binding, &unconfirmed, 1);
        // The masked report must not be visible anywhere in the call.
        let asks_the_binding = |call: &Call<'_>| {
            let Call::EvictionCheck(call) = call else {
                return fault();
            };
            assert_eq!(call.observed, call.binding.status.aggregated_status);
            trusting(&Call::EvictionCheck(call.clone()))
        };
        let plan = decide(snapshot, &asking(asks_the_binding));
        let (_, attribution) = plan.held.iter().chain(&plan.released).next().unwrap();
        assert_eq!(attribution.reason.to_string(), expected);
        assert_eq!(
            (plan.again_after_ms, plan.rests_on_targets),
            (again_after_ms, reason.is_none()),
            "{reason:?}"
        );
    };
    check(None, "Well: m2 is Healthy", None);
    check(Some(Missing), "Ill: m2 is Unknown (m2 does not exist)", Some(60_001));
    check(
        Some(Terminating),
        "Ill: m2 is Unknown (m2 is being deleted)",
        Some(60_001),
    );
    check(Some(NotReady), "Ill: m2 is Unknown (m2 is not ready)", Some(60_001));
    check(
        Some(Unreachable),
        "Ill: m2 is Unknown (m2 does not answer)",
        Some(10_001),
    );
    check(
        Some(Outdated),
        "Ill: m2 is Unknown (m2 has changed since its last report)",
        Some(2_001),
    );
}

#[test]
fn dead_targets_outlive_the_grace_period_unless_a_policy_or_the_flag_says_otherwise() {
    use PurgeWithoutReplacement::{AfterGracePeriod, IfPlaced, OnlyByPolicy};
    use Unconfirmed::{NotReady, Outdated, Unreachable};
    let check = |targets: &[(&str, Unconfirmed)], own: Value, purge_without_replacement, expected: &str| {
        let two = json!([{"name": "m2", "replicas": 1}, {"name": "m3", "replicas": 2}]);
        let binding = binding(two, true, "True", &json!({"gracePeriodSeconds": own}));
        let unconfirmed = unconfirmed(targets);
        let options = GracefulEvictionOptions {
            purge_without_replacement,
            ..GracefulEvictionOptions::default()
        };
        let snapshot = GracefulEvictionSnapshot {
            options,
            ..snapshot(&binding, &unconfirmed, 601)
        };
        assert_eq!(
            summary(&decide(snapshot, &policies(hold))),
            expected,
            "{targets:?} {own} {options:?}"
        );
    };
    let (dead, over) = ([("m2", NotReady), ("m3", Unreachable)], "released: GracePeriodExceeded");
    check(&dead, json!(null), IfPlaced, "held: ReplacementUnconfirmed");
    check(&dead, json!(30), IfPlaced, over);
    check(&dead, json!(30), OnlyByPolicy, over);
    check(&dead, json!(null), AfterGracePeriod, over);
    check(&[("m2", NotReady)], json!(null), IfPlaced, over);
    check(&[("m2", NotReady), ("m3", Outdated)], json!(null), IfPlaced, over);
    check(&[], json!(null), IfPlaced, over);
}

/// The workload waited for a place longer than its grace period, so that the period is over when its new copy starts.
#[test]
fn a_copy_without_a_report_replaces_nothing_unless_a_policy_or_the_flag_says_otherwise() {
    use PurgeWithoutReplacement::{AfterGracePeriod, IfPlaced, OnlyByPolicy};
    let check = |reports: Value, own: Value, purge_without_replacement, expected: &str| {
        let two = json!([{"name": "m2", "replicas": 1}, {"name": "m3", "replicas": 2}]);
        let mut binding = binding(two, true, "True", &json!({"gracePeriodSeconds": own}));
        binding.status.aggregated_status = serde_json::from_value(reports.clone()).unwrap();
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
            "{reports} {own} {options:?}"
        );
    };
    let (held, over) = ("held: ReplacementUnconfirmed", "released: GracePeriodExceeded");
    let reports = |of_m3: Value| {
        let mut reports = json!([{"clusterName": "m2", "applied": true, "health": "Unhealthy"}, {"clusterName": "m3"}]);
        reports[1]
            .as_object_mut()
            .unwrap()
            .extend(of_m3.as_object().unwrap().clone());
        reports
    };
    let refused = json!({"health": "Unknown", "appliedMessage": "admission denied the object"});
    for unseen in [json!({}), json!({"applied": true, "health": "Unknown"}), refused] {
        check(reports(unseen), json!(null), IfPlaced, held);
    }
    for seen in [
        json!({"applied": true, "health": "Unknown", "status": {"replicas": 2}}),
        json!({"health": "Healthy"}),
    ] {
        check(reports(seen), json!(null), IfPlaced, over);
    }
    check(json!([]), json!(null), IfPlaced, held);
    check(json!([]), json!(null), AfterGracePeriod, over);
    check(json!([]), json!(30), IfPlaced, over);
    check(json!([]), json!(30), OnlyByPolicy, over);
}

#[test]
fn an_object_without_replicas_is_seen_as_soon_as_it_is_applied() {
    let check = |applied: bool, expected: &str| {
        let mut binding = binding(json!([{"name": "m2"}]), true, "True", &json!({"replicas": null}));
        binding.spec.replicas = 0;
        binding.status.aggregated_status[0].applied = applied;
        binding.status.aggregated_status[0].health = Some(Health::Unknown);
        let snapshot = snapshot(&binding, &CONFIRMED, 601);
        assert_eq!(summary(&decide(snapshot, &policies(hold))), expected, "{applied}");
    };
    check(true, "released: GracePeriodExceeded");
    check(false, "held: ReplacementUnconfirmed");
}

#[test]
fn the_names_of_unconfirmed_targets_stay_short() {
    let names: Vec<_> = (1..=7).map(|n| format!("m{n}")).collect();
    let targets: Vec<_> = names.iter().map(|name| json!({"name": name, "replicas": 1})).collect();
    let binding = binding(json!(targets), true, "True", &json!({}));
    let unconfirmed = names.iter().map(|name| (name.clone(), Unconfirmed::NotReady)).collect();
    let described = confirm::describe(&binding, &unconfirmed);
    assert!(described.ends_with("m5 is not ready, and 2 others"), "{described}");
}

#[test]
fn a_target_counts_only_while_its_cluster_is_ready_and_stays() {
    use crate::model::{Condition, ConditionStatus};
    let check = |is_terminating, ready: Option<ConditionStatus>, expected: Option<Unconfirmed>| {
        let conditions: Vec<_> = ready
            .map(|status| Condition::new("Ready", status, "R", "", at(0)))
            .into_iter()
            .collect();
        let found = Unconfirmed::of_cluster(is_terminating, &conditions);
        assert_eq!(found, expected, "{is_terminating} {ready:?}");
    };
    check(false, Some(ConditionStatus::True), None);
    check(false, Some(ConditionStatus::False), Some(Unconfirmed::NotReady));
    check(false, Some(ConditionStatus::Unknown), Some(Unconfirmed::NotReady));
    check(false, None, Some(Unconfirmed::NotReady));
    check(true, Some(ConditionStatus::True), Some(Unconfirmed::Terminating));
    check(true, None, Some(Unconfirmed::Terminating));
}
