use bulkhead_core::model::Condition;
use serde_json::{Value, json};

use super::*;
use crate::ready_condition::in_short;

const OWNED: TaintPolicyOptions = TaintPolicyOptions {
    cleans_up: true,
    damping_window_s: 0,
};
const KARMADA: TaintPolicyOptions = TaintPolicyOptions {
    cleans_up: false,
    damping_window_s: 0,
};

fn summary(rules: &[ClusterTaintPolicyRule], cluster: &Cluster, now_s: i64) -> Vec<String> {
    let call = ClusterTaintCall {
        cluster,
        now: Time::from_millis(now_s * 1000),
    };
    rules
        .iter()
        .flat_map(|rule| in_short(rule.call(&Call::ClusterTaint(call.clone()))))
        .collect()
}

/// Checks the changes for a cluster with Ready=False and Disk=True.
fn check(policies: Vec<(&str, i64, Value)>, expected: &[&str]) {
    let cluster: Cluster = serde_json::from_value(json!({
        "name": "member1",
        "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]},
    }))
    .unwrap();
    let label = format!("{policies:?}");
    let policies = policies.into_iter().map(|(name, created_s, spec)| {
        (
            name.to_owned(),
            Time::from_millis(created_s * 1000),
            serde_json::from_value(spec).unwrap(),
        )
    });
    let rules = ClusterTaintPolicyRule::all(policies.collect(), OWNED);
    assert_eq!(summary(&rules, &cluster, 0), expected, "{label}");
}

fn when(type_: &str, operator: &str, values: &[&str]) -> Value {
    json!({"conditionType": type_, "operator": operator, "statusValues": values})
}

fn spec(add: &[Value], remove: &[Value], key: &str) -> Value {
    json!({"addOnConditions": add, "removeOnConditions": remove, "taints": [{"key": key, "effect": "NoExecute"}]})
}

#[test]
fn conditions_are_matched_as_in_karmada() {
    let check = |conditions: &[Value], added: bool| {
        let expected: &[&str] = if added { &["+k:NoExecute"] } else { &[] };
        check(vec![("p", 0, spec(conditions, &[], "k"))], expected);
    };
    check(&[], false);
    check(&[when("Ready", "In", &["False", "Unknown"])], true);
    check(&[when("Ready", "In", &["True"])], false);
    check(&[when("Ready", "In", &[])], false);
    check(&[when("Ready", "NotIn", &["True"])], true);
    check(&[when("Ready", "NotIn", &[])], true);
    check(&[when("Ready", "NotIn", &["False"])], false);
    check(&[when("Gone", "NotIn", &["True"])], false);
    check(&[when("Ready", "Exists", &["False"])], false);
    check(&[when("Ready", "In", &["False"]), when("Disk", "In", &["True"])], true);
    check(
        &[when("Ready", "In", &["False"]), when("Disk", "In", &["False"])],
        false,
    );
}

#[test]
fn policies_apply_in_order_of_age_then_name() {
    let (holds, fails) = ([when("Ready", "In", &["False"])], [when("Ready", "In", &["True"])]);
    check(
        vec![("p", 0, spec(&holds, &holds, "k"))],
        &["+k:NoExecute", "-k:NoExecute"],
    );
    check(vec![("p", 0, spec(&fails, &holds, "k"))], &["-k:NoExecute"]);
    let three = vec![
        ("young", 9, spec(&holds, &[], "c")),
        ("b", 1, spec(&holds, &[], "b")),
        ("a", 1, spec(&holds, &[], "a")),
    ];
    check(three, &["+a:NoExecute", "+b:NoExecute", "+c:NoExecute"]);
}

/// Returns a cluster whose Ready condition had these statuses, each with its start time.
fn cluster(ready: &[(ConditionStatus, i64)]) -> Cluster {
    let mut cluster = Cluster {
        name: "member1".to_owned(),
        ..Cluster::default()
    };
    for (status, since_s) in ready {
        let since = Time::from_millis(since_s * 1000);
        cluster.status.conditions = vec![Condition::new("Ready", *status, "R", "m", since)];
        cluster.condition_history.observe(&cluster.status.conditions, since);
    }
    cluster
}

#[test]
fn a_cluster_that_is_no_longer_selected_gives_the_taint_back_unless_as_in_karmada() {
    let mut targeted = spec(&[when("Ready", "In", &["False"])], &[], "k");
    let check = |spec: &Value, options, expected: &[&str]| {
        let rule = ClusterTaintPolicyRule::new("p", serde_json::from_value(spec.clone()).unwrap(), options);
        assert_eq!(
            summary(&[rule], &cluster(&[(ConditionStatus::False, 0)]), 0),
            expected,
            "{spec} {options:?}"
        );
    };
    targeted["targetClusters"] = json!({"clusterNames": ["member1"]});
    check(&targeted, OWNED, &["+k:NoExecute"]);
    targeted["targetClusters"] = json!({"clusterNames": ["member2"]});
    check(&targeted, OWNED, &["-k:NoExecute"]);
    check(&targeted, KARMADA, &[]);
}

#[test]
fn a_policy_with_an_unknown_field_changes_no_taint() {
    let faulty = |field: &str, value: Value| {
        let mut policy = spec(&[when("Ready", "In", &["False"])], &[], "k");
        policy[field] = value;
        check(vec![("p", 0, policy)], &[]);
    };
    check(
        vec![("p", 0, spec(&[when("Ready", "In", &["False"])], &[], "k"))],
        &["+k:NoExecute"],
    );
    faulty("targetClustrs", json!({"clusterNames": ["member2"]}));
    faulty("targetClusters", json!({"clusterName": ["member2"]}));
    // A taint that it added before it was edited stays too.
    let mut tainted = cluster(&[(ConditionStatus::True, 0)]);
    tainted.spec.taints = vec![serde_json::from_value(json!({"key": "old", "effect": "NoExecute"})).unwrap()];
    let identity = tainted.spec.taints[0].identity();
    tainted.taint_owners.insert(identity, "ClusterTaintPolicy/p".to_owned());
    let check = |edited: Value, expected: &[&str]| {
        let rule = ClusterTaintPolicyRule::new("p", serde_json::from_value(edited).unwrap(), OWNED);
        assert_eq!(summary(&[rule], &tainted, 0), expected);
    };
    check(json!({}), &["-old:NoExecute"]);
    check(json!({"taint": []}), &[]);
}

#[test]
fn what_the_policy_added_and_no_longer_declares_goes() {
    let mut tainted = cluster(&[(ConditionStatus::True, 0)]);
    for (key, owner) in [
        ("mine", "ClusterTaintPolicy/p"),
        ("other", "ClusterTaintPolicy/q"),
        ("k", "ClusterTaintPolicy/p"),
    ] {
        let taint = Taint {
            key: key.to_owned(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
            time_added: None,
        };
        tainted.taint_owners.insert(taint.identity(), owner.to_owned());
        tainted.spec.taints.push(taint);
    }
    let declares = json!({"taints": [{"key": "k", "effect": "NoSchedule"}]});
    let check = |options, expected: &[&str]| {
        let rule = ClusterTaintPolicyRule::new("p", serde_json::from_value(declares.clone()).unwrap(), options);
        assert_eq!(summary(&[rule], &tainted, 0), expected, "{options:?}");
    };
    check(OWNED, &["-mine:NoSchedule"]);
    check(KARMADA, &[]);
}

/// Example of the proposal, unchanged.
const PROPOSAL: &str = r#"{
    "targetCluster": {"clusterNames": ["member1", "member2"]},
    "matchConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}],
    "taintsToAdd": [{
        "key": "cluster.karmada.io/not-ready", "effect": "PreferNoExecute",
        "addOnMatchSeconds": 300, "removeOnMismatchSeconds": 180
    }]
}"#;

#[test]
fn the_proposals_windows_begin_with_the_match_and_survive_a_change_between_matching_statuses() {
    use ConditionStatus::{False, True, Unknown};
    let rule = ClusterTaintPolicyRule::new("p", serde_json::from_str(PROPOSAL).unwrap(), OWNED);
    let rules = [rule];
    let check = |ready: &[(ConditionStatus, i64)], now_s: i64, expected: &[&str]| {
        assert_eq!(
            summary(&rules, &cluster(ready), now_s),
            expected,
            "{ready:?} at {now_s}"
        );
    };
    let (add, remove) = (["+not-ready:PreferNoExecute"], ["-not-ready:PreferNoExecute"]);
    check(&[(True, 0), (False, 100)], 399, &[]);
    check(&[(True, 0), (False, 100)], 400, &add);
    check(&[(True, 0), (False, 100), (Unknown, 390)], 400, &add);
    check(&[(True, 0), (False, 100), (True, 390), (False, 395)], 400, &[]);
    check(&[(False, 100), (True, 500)], 679, &[]);
    check(&[(False, 100), (True, 500)], 680, &remove);
    // The clock went back: the change is in the future, so no state has lasted yet.
    check(&[(True, 0), (False, 900)], 400, &[]);
}

#[test]
fn without_match_conditions_the_taint_is_always_there_and_defaults_are_those_of_the_proposal() {
    use ConditionStatus::{False, True};
    let always = json!({"taintsToAdd": [{"key": "k", "effect": "NoSchedule"}]});
    let rule = ClusterTaintPolicyRule::new("p", serde_json::from_value(always).unwrap(), OWNED);
    assert_eq!(summary(&[rule], &cluster(&[(True, 0)]), 0), ["+k:NoSchedule"]);
    let mut defaults: Value = serde_json::from_str(PROPOSAL).unwrap();
    defaults["taintsToAdd"] = json!([{"key": "k", "effect": "NoSchedule"}]);
    let rules = [ClusterTaintPolicyRule::new(
        "p",
        serde_json::from_value(defaults).unwrap(),
        OWNED,
    )];
    assert_eq!(summary(&rules, &cluster(&[(True, 0), (False, 0)]), 299), [""; 0]);
    assert_eq!(
        summary(&rules, &cluster(&[(True, 0), (False, 0)]), 300),
        ["+k:NoSchedule"]
    );
    assert_eq!(summary(&rules, &cluster(&[(False, 0), (True, 0)]), 179), [""; 0]);
    assert_eq!(
        summary(&rules, &cluster(&[(False, 0), (True, 0)]), 180),
        ["-k:NoSchedule"]
    );
}

#[test]
fn while_a_cluster_flaps_its_taints_stay() {
    use ConditionStatus::{False, True};
    let spec = spec(
        &[when("Ready", "In", &["False"])],
        &[when("Ready", "In", &["True"])],
        "k",
    );
    let options = TaintPolicyOptions {
        damping_window_s: 600,
        ..OWNED
    };
    let rules = [ClusterTaintPolicyRule::new(
        "p",
        serde_json::from_value(spec).unwrap(),
        options,
    )];
    let calm = [(True, 0), (False, 100), (True, 200)];
    let flapping = [
        (True, 0),
        (False, 100),
        (True, 200),
        (False, 300),
        (True, 400),
        (False, 500),
        (True, 600),
    ];
    assert_eq!(summary(&rules, &cluster(&calm), 200), ["-k:NoExecute"]);
    assert_eq!(summary(&rules, &cluster(&flapping), 600), [""; 0]);
    assert_eq!(summary(&rules, &cluster(&flapping), 699), [""; 0]);
    assert_eq!(summary(&rules, &cluster(&flapping), 800), ["-k:NoExecute"]);
}
