//! `spec.failover` of policies, tolerations that a profile adds, and contradictory policies.

use serde_json::json;

use super::policies::policy;
use super::*;

fn admit_with(options: AdmissionOptions, patch: Value) -> Result<Value, String> {
    let request = Request {
        namespace: Some("default"),
        ..create("policy.karmada.io", "PropagationPolicy")
    };
    run(&request, policy(patch), options).map(|mut object| object["spec"].take())
}

#[test]
fn durations_and_states_out_of_range_are_refused_with_the_field() {
    let check = |application: Value, expected: &str| {
        let mut whole = json!({"decisionConditions": {}});
        merge(&mut whole, application);
        let patch = json!({"propagateDeps": true, "failover": {"application": whole}});
        let actual = admit_with(AdmissionOptions::default(), patch).err().unwrap_or_default();
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("spec.failover.application.{expected}")
        };
        assert!(
            if expected.is_empty() {
                actual.is_empty()
            } else {
                actual.starts_with(&expected)
            },
            "{actual}\n{expected}"
        );
    };
    let absurd = 400_000_000;
    check(
        json!({"preConditions": {"delaySeconds": 0, "healthyState": "Healthy"}, "blockPredecessorSeconds": 0}),
        "",
    );
    check(
        json!({"preConditions": {"delaySeconds": -1}}),
        "preConditions.delaySeconds: Invalid value: -1",
    );
    check(
        json!({"preConditions": {"delaySeconds": absurd}}),
        "preConditions.delaySeconds: Invalid value: 400000000",
    );
    check(
        json!({"preConditions": {"healthyState": "Unknown"}}),
        "preConditions.healthyState: Unsupported value",
    );
    check(
        json!({"preConditions": {"healthyState": "Fine"}}),
        "preConditions.healthyState: Invalid value",
    );
    check(json!({"decisionConditions": {"healthyState": ["Unhealthy"]}}), "");
    let field = "decisionConditions.healthyState[1]: Unsupported value: \"Unknown\"";
    check(
        json!({"decisionConditions": {"healthyState": ["Unhealthy", "Unknown"]}}),
        field,
    );
    let field = "decisionConditions.tolerationSeconds: Invalid value: ";
    check(json!({"decisionConditions": {"tolerationSeconds": absurd}}), field);
    check(json!({"decisionConditions": {"tolerationSeconds": 1e12}}), field);
    check(
        json!({"blockPredecessorSeconds": -1}),
        "blockPredecessorSeconds: Invalid value: -1",
    );
    check(
        json!({"gracePeriodSeconds": 0}),
        "gracePeriodSeconds: Invalid value: 0: must be greater than 0",
    );
    check(
        json!({"gracePeriodSeconds": absurd}),
        "gracePeriodSeconds: Invalid value: 400000000: must be at most",
    );
    let rules = |path: &str| json!({"statePreservation": {"rules": [{"aliasLabelName": "a", "jsonPath": path}]}});
    check(rules("{.replicas}"), "");
    check(
        rules("{.replicas"),
        "statePreservation.rules[0].jsonPath: Invalid value: \"{.replicas\": at byte 10",
    );
}

#[test]
fn the_failover_of_a_cluster_has_a_positive_grace_period_and_only_with_a_graceful_purge() {
    let options = AdmissionOptions {
        allow_never_purging_clusters: true,
        ..AdmissionOptions::default()
    };
    let check = |cluster: Value, expected: &str| {
        let actual = admit_with(options, json!({"failover": {"cluster": cluster}}))
            .err()
            .unwrap_or_default();
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("spec.failover.cluster.{expected}")
        };
        assert_eq!(actual, expected, "{cluster}");
    };
    check(
        json!({"purgeMode": "Graciously", "gracePeriodSeconds": 100, "tolerationSeconds": 0}),
        "",
    );
    check(
        json!({"gracePeriodSeconds": 0}),
        "gracePeriodSeconds: Invalid value: 0: must be greater than 0",
    );
    check(
        json!({"gracePeriodSeconds": -5}),
        "gracePeriodSeconds: Invalid value: -5: must be greater than 0",
    );
    for mode in ["Never", "Directly", "Immediately"] {
        let detail = "gracePeriodSeconds: Invalid value: 100: only takes effect when purgeMode is Gracefully";
        check(json!({"purgeMode": mode, "gracePeriodSeconds": 100}), detail);
        check(json!({"purgeMode": mode, "tolerationSeconds": 100}), "");
    }
    let detail = "tolerationSeconds: Invalid value: -1: must be greater than or equal to 0";
    check(json!({"tolerationSeconds": -1}), detail);
}

#[test]
fn the_documents_example_wants_dependencies_to_travel_along() {
    let failover = json!({"application": {
        "preConditions": {"delaySeconds": 5000},
        "decisionConditions": {"tolerationSeconds": 200, "healthyState": ["Unhealthy"]},
    }});
    let actual = admit_with(AdmissionOptions::default(), json!({"failover": failover})).unwrap_err();
    assert!(
        actual.starts_with("spec.propagateDeps: Invalid value: false"),
        "{actual}"
    );
    let spec = admit_with(
        AdmissionOptions::default(),
        json!({"failover": failover, "propagateDeps": true}),
    )
    .unwrap();
    let application = &spec["failover"]["application"];
    assert_eq!(application["preConditions"], json!({"delaySeconds": 5000}));
    assert_eq!(
        application["decisionConditions"],
        json!({"tolerationSeconds": 200, "healthyState": ["Unhealthy"]})
    );
}

#[test]
fn clusters_may_purge_never_only_where_the_option_says_so() {
    let patch = || json!({"failover": {"cluster": {"purgeMode": "Never"}}});
    let actual = admit_with(AdmissionOptions::default(), patch()).unwrap_err();
    assert!(
        actual.starts_with("spec.failover.cluster.purgeMode: Unsupported value: \"Never\""),
        "{actual}"
    );
    let options = AdmissionOptions {
        allow_never_purging_clusters: true,
        ..AdmissionOptions::default()
    };
    assert_eq!(
        admit_with(options, patch()).unwrap()["failover"]["cluster"]["purgeMode"],
        "Never"
    );
}

#[test]
fn tolerations_are_added_where_a_policy_has_none_of_that_sort() {
    let options = AdmissionOptions {
        default_not_ready_toleration_seconds: Some(300),
        default_unreachable_toleration_seconds: Some(60),
        ..AdmissionOptions::default()
    };
    let toleration = |key: &str, seconds: Value| {
        let key = format!("cluster.karmada.io/{key}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
    };
    let check = |given: Value, expected: Value| {
        let spec = admit_with(options, json!({"placement": {"clusterTolerations": given}})).unwrap();
        assert_eq!(spec["placement"]["clusterTolerations"], expected);
    };
    let (not_ready, unreachable) = (
        toleration("not-ready", json!(300)),
        toleration("unreachable", json!(60)),
    );
    check(json!([]), json!([not_ready, unreachable]));
    check(
        json!([toleration("not-ready", json!(5))]),
        json!([toleration("not-ready", json!(5)), unreachable]),
    );
    let everything = json!({"operator": "Exists"});
    check(json!([everything]), json!([everything, not_ready, unreachable]));
    let none = admit_with(AdmissionOptions::default(), json!({})).unwrap();
    assert_eq!(none["placement"].get("clusterTolerations"), None);
}

#[test]
fn a_taint_policy_with_an_unknown_field_or_operator_is_refused() {
    let options = AdmissionOptions {
        allow_no_execute_taint_policy: true,
        allow_prefer_no_execute: true,
        ..AdmissionOptions::default()
    };
    let check = |edit: Value, expected: &str| {
        let mut spec = json!({
            "targetCluster": {"clusterNames": ["member1"]},
            "matchConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False"]}],
            "taintsToAdd": [{"key": "k", "effect": "PreferNoExecute"}],
        });
        merge(&mut spec, edit);
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let actual = run(&create("policy.karmada.io", "ClusterTaintPolicy"), object, options);
        assert_eq!(actual.as_ref().err().map_or("", String::as_str), expected);
        if let Ok(object) = actual {
            assert_eq!(object["spec"], spec);
        }
    };
    check(json!({}), "");
    check(
        json!({"targetClustrs": {}, "x": 1}),
        "spec.targetClustrs: Forbidden: unknown field",
    );
    let detail = "spec.targetCluster: Forbidden: cannot be combined with targetClusters";
    check(json!({"targetClusters": {"clusterNames": ["m2"]}}), detail);
    let condition = json!({"conditionType": "Ready", "operator": "Exists"});
    let detail = "spec.matchConditions[0].operator: Unsupported value: \"Exists\": supported values: \"In\", \"NotIn\"";
    check(json!({"matchConditions": [condition]}), detail);
}

#[test]
fn a_taint_policy_that_takes_back_what_it_gives_is_refused() {
    let conditions = json!([{"conditionType": "Ready", "operator": "In", "statusValues": ["False"]}]);
    let spec = json!({"addOnConditions": conditions, "removeOnConditions": conditions,
                      "taints": [{"key": "k", "effect": "NoSchedule"}]});
    let object = json!({"metadata": {"name": "p"}, "spec": spec});
    let actual = run(
        &create("policy.karmada.io", "ClusterTaintPolicy"),
        object,
        AdmissionOptions::default(),
    );
    assert!(
        actual
            .unwrap_err()
            .starts_with("spec.removeOnConditions: Invalid value: ")
    );
}
