use serde_json::json;

use super::*;

/// Returns a policy in namespace `default` with one selector, and with `patch` merged into its spec.
pub(super) fn policy(patch: Value) -> Value {
    let mut spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}]});
    merge(&mut spec, patch);
    json!({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
}

fn admit_policy(patch: Value) -> Result<Value, String> {
    let request = Request {
        namespace: Some("default"),
        ..create("policy.karmada.io", "PropagationPolicy")
    };
    run(&request, policy(patch), AdmissionOptions::default()).map(|mut object| object["spec"].take())
}

#[test]
fn policies_get_their_defaults() {
    let check = |patch: Value, expected: Value| {
        let mut full = json!({
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            ],
            "placement": {},
            "priority": 0,
            "preemption": "Never",
            "schedulerName": "default-scheduler",
            "conflictResolution": "Abort",
        });
        merge(&mut full, expected);
        assert_eq!(admit_policy(patch), Ok(full));
    };
    check(json!({}), json!({}));
    check(
        json!({"placement": {"spreadConstraints": [{"maxGroups": 2}]}}),
        json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 2, "minGroups": 1}]}}),
    );
    check(
        json!({"placement": {"replicaScheduling": {}}}),
        json!({"placement": {"replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        }}}),
    );
    check(
        json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}),
        json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}),
    );
    check(
        json!({"propagateDeps": true, "failover": {"application": {"decisionConditions": {}}, "cluster": {}}}),
        json!({"propagateDeps": true, "failover": {
            "application": {
                "decisionConditions": {"tolerationSeconds": 300},
                "purgeMode": "Gracefully",
                "gracePeriodSeconds": 600,
            },
            "cluster": {"purgeMode": "Gracefully"},
        }}),
    );
    check(
        json!({"propagateDeps": true, "failover": {"application": {
            "decisionConditions": {"tolerationSeconds": 5}, "purgeMode": "Immediately",
        }}}),
        json!({"propagateDeps": true, "failover": {"application": {
            "decisionConditions": {"tolerationSeconds": 5}, "purgeMode": "Directly",
        }}}),
    );
    let service_import = json!([{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
                                 "namespace": "default", "name": "s"}]);
    check(
        json!({"resourceSelectors": service_import}),
        json!({"resourceSelectors": service_import, "propagateDeps": true}),
    );
    check(json!({"clusterTolerations": [{"operator": "Exists"}]}), json!({}));
}

#[test]
fn cluster_policies_leave_the_namespace_of_selectors_alone() {
    let request = create("policy.karmada.io", "ClusterPropagationPolicy");
    let check = |namespace: &str| {
        let mut object = policy(json!({}));
        object["spec"]["resourceSelectors"][0]["namespace"] = json!(namespace);
        let admitted = run(&request, object, AdmissionOptions::default()).unwrap();
        let found = admitted
            .pointer("/spec/resourceSelectors/0/namespace")
            .and_then(Value::as_str);
        assert_eq!(found.unwrap_or_default(), namespace);
    };
    check("");
    check("other");
}

#[test]
fn malformed_policies_are_refused() {
    let check = |patch: Value, expected: &str| match admit_policy(patch) {
        Ok(spec) => panic!("admitted although {expected}: {spec}"),
        Err(text) => assert!(text.starts_with(expected), "{text}\nis not\n{expected}"),
    };
    check(
        json!({"resourceSelectors": []}),
        "spec.resourceSelectors: Required value",
    );
    check(
        json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "other"}]}),
        "spec.resourceSelectors[0].namespace: Invalid value: \"other\"",
    );
    check(
        json!({"preemption": "Always", "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}]}),
        "spec.resourceSelectors[0].name: Invalid value: \"\": name cannot be empty if preemption is Always",
    );
    check(
        json!({"preemption": "Sometimes"}),
        "spec.preemption: Invalid value: unknown variant `Sometimes`",
    );
    check(
        json!({"activationPreference": "Eager"}),
        "spec.activationPreference: Unsupported value: \"Eager\"",
    );
    check(
        json!({"schedulePriority": {"priorityClassSource": "Own", "priorityClassName": "c"}}),
        "spec.schedulePriority.priorityClassSource: Unsupported value: \"Own\"",
    );
    check(
        json!({"suspension": {"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["m1"]}}}),
        "spec.suspension.suspension: Invalid value: ",
    );
    let application = |fields: Value| json!({"propagateDeps": true, "failover": {"application": fields}});
    check(
        json!({"failover": {"application": {"decisionConditions": {}}}}),
        "spec.propagateDeps: Invalid value: false",
    );
    check(
        application(json!({})),
        "spec.failover.application.decisionConditions: Required value",
    );
    check(
        application(json!({"decisionConditions": {"tolerationSeconds": -1}})),
        "spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1: must be greater than or",
    );
    check(
        application(json!({"decisionConditions": {}, "purgeMode": "Never", "gracePeriodSeconds": 1})),
        "spec.failover.application.gracePeriodSeconds: Invalid value: 1: only takes effect when purgeMode is",
    );
    check(
        application(json!({"decisionConditions": {}, "gracePeriodSeconds": 0})),
        "spec.failover.application.gracePeriodSeconds: Invalid value: 0: must be greater than 0",
    );
    let preservation = json!({"rules": [{"aliasLabelName": "a b", "jsonPath": "{.x}"}]});
    check(
        application(json!({"decisionConditions": {}, "statePreservation": preservation})),
        "spec.failover.application.statePreservation.rules[0].aliasLabelName: Invalid value: \"a b\": name part",
    );
    check(
        json!({"failover": {"cluster": {"statePreservation": preservation}}}),
        "spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: \"a b\": name part",
    );
    check(
        json!({"failover": {"cluster": {"purgeMode": "Never"}}}),
        "spec.failover.cluster.purgeMode: Unsupported value: \"Never\": supported values: \"Directly\", \"Gracefully\"",
    );
}

/// Checks that a placement is refused with an error that starts like this one; an empty text stands for no error.
fn check_placement(placement: Value, expected: &str) {
    match admit_policy(json!({"placement": placement})) {
        Ok(_) => assert_eq!(expected, "", "{placement}"),
        Err(text) => assert!(
            !expected.is_empty() && text.starts_with(expected),
            "{text}\nis not\n{expected}"
        ),
    }
}

#[test]
fn malformed_affinities_of_placements_are_refused() {
    let check = check_placement;
    check(
        json!({"clusterAffinity": {}, "clusterAffinities": []}),
        "spec.placement: Invalid value: {\"clusterAffinity\":{},\"clusterAffinities\":[]}: clusterAffinities cannot \
         co-exist with clusterAffinity",
    );
    let fields = |key: &str, operator: &str| {
        json!({"clusterAffinity": {"fieldSelector": {"matchExpressions": [
            {"key": key, "operator": operator, "values": []},
        ]}}})
    };
    let path = "spec.placement.clusterAffinity.fieldSelector";
    let shown = |key: &str, operator: &str| {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": []}]}).to_string()
    };
    check(fields("zone", "NotIn"), "");
    check(
        fields("foo", "In"),
        &format!(
            "{path}: Invalid value: {}: unsupported key \"foo\", must be provider, region, or zone",
            shown("foo", "In")
        ),
    );
    check(
        fields("zone", "Exists"),
        &format!(
            "{path}: Invalid value: {}: unsupported operator \"Exists\", must be In or NotIn",
            shown("zone", "Exists")
        ),
    );

    let terms = |terms: Value| json!({"clusterAffinities": terms});
    let path = "spec.placement.clusterAffinities";
    check(terms(json!([{"affinityName": "a"}, {"affinityName": "b"}])), "");
    check(
        terms(json!([{"affinityName": "a"}, {"affinityName": "a"}])),
        &format!("{path}: Invalid value: [{{\"affinityName\":\"a\"}},{{\"affinityName\":\"a\"}}]: each affinity term"),
    );
    check(
        terms(json!([{"affinityName": ""}])),
        &format!("{path}[0]: Invalid value: \"\": name part"),
    );
    check(
        terms(json!([{"affinityName": "a".repeat(33)}])),
        &format!("{path}[0].affinityName: Invalid value: "),
    );
    let overflow = |name: &str, inline: &[&str], preference: &str| {
        json!({
            "clusterAffinities": [{
                "affinityName": "a", "clusterNames": inline, "overflowAffinities": [{"affinityName": name}],
            }],
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference},
        })
    };
    check(overflow("b", &["m1"], "Aggregated"), "");
    check(
        overflow("b", &["m1"], "Weighted"),
        &format!("{path}[0].overflowAffinities: Invalid value: "),
    );
    check(
        overflow("b", &[], "Aggregated"),
        &format!("{path}[0].overflowAffinities: Invalid value: "),
    );
    check(
        overflow("a", &["m1"], "Aggregated"),
        &format!("{path}[0].overflowAffinities[0].affinityName: Invalid value: \"a\": overflow affinity name must be"),
    );
}

#[test]
fn malformed_constraints_of_placements_are_refused() {
    let check = check_placement;
    let tolerations = |operator: &str| json!({"clusterTolerations": [{"key": "k", "operator": operator}]});
    for operator in ["", "Exists", "Equal"] {
        check(tolerations(operator), "");
    }
    for operator in ["Lt", "Gt"] {
        check(
            tolerations(operator),
            &format!(
                "spec.placement.clusterTolerations[0].operator: Unsupported value: {operator:?}: supported values: \
                 \"\", \"Exists\", \"Equal\""
            ),
        );
    }

    let spread = |constraints: Value| json!({"spreadConstraints": constraints});
    let path = "spec.placement.spreadConstraints";
    check(
        spread(json!([{"spreadByField": "region"}, {"spreadByField": "cluster"}])),
        "",
    );
    check(
        spread(json!([{"spreadByField": "cluster", "spreadByLabel": "l"}])),
        &format!(
            "{path}[0]: Invalid value: {{\"spreadByField\":\"cluster\",\"spreadByLabel\":\"l\",\"minGroups\":1}}: \
             spreadByLabel should not co-exist with spreadByField"
        ),
    );
    check(
        spread(json!([{"minGroups": -1}])),
        &format!(
            "{path}[0]: Invalid value: {{\"spreadByField\":\"cluster\",\"minGroups\":-1}}: minGroups lower than 0 is not allowed"
        ),
    );
    check(
        spread(json!([{"maxGroups": -1}])),
        &format!(
            "{path}[0]: Invalid value: {{\"spreadByField\":\"cluster\",\"maxGroups\":-1,\"minGroups\":1}}: maxGroups lower than 0 is not allowed"
        ),
    );
    check(
        spread(json!([{"minGroups": 3, "maxGroups": 2}])),
        &format!(
            "{path}[0]: Invalid value: {{\"spreadByField\":\"cluster\",\"maxGroups\":2,\"minGroups\":3}}: maxGroups lower than minGroups is not allowed"
        ),
    );
    check(
        spread(json!([{"spreadByField": "rack"}])),
        &format!("{path}[0].spreadByField: Unsupported value: \"rack\""),
    );
    check(
        spread(json!([{}, {"spreadByField": "cluster"}])),
        &format!("{path}: Invalid value: ["),
    );
    check(
        spread(json!([{"spreadByField": "region"}])),
        &format!("{path}: Invalid value: ["),
    );

    check(
        json!({"replicaScheduling": {"weightPreference": {"staticWeightList": [{"targetCluster": {}, "weight": 0}]}}}),
        "spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight: Invalid value: 0: should be",
    );
    let group = |affinity: &str, anti: &str| {
        json!({"workloadAffinity": {
            "affinity": {"groupByLabelKey": affinity}, "antiAffinity": {"groupByLabelKey": anti},
        }})
    };
    let path = "spec.placement.workloadAffinity";
    check(group("a", "b"), "");
    check(group("a", "a"), &format!("{path}: Invalid value: {{"));
    check(
        group("-", "a"),
        &format!("{path}.affinity.groupByLabelKey: Invalid value: \"-\""),
    );
    check(
        group("", "a"),
        &format!("{path}.affinity.groupByLabelKey: Invalid value: \"\""),
    );
    check(json!({"workloadAffinity": {"affinity": null}}), "");
    check(
        json!({"workloadAffinity": {"antiAffinity": {}}}),
        &format!("{path}.antiAffinity.groupByLabelKey: Required value"),
    );
    check(
        json!({"workloadAffinity": {"affinity": {"groupByLabelKey": 7}}}),
        &format!("{path}.affinity.groupByLabelKey: Invalid value: invalid type"),
    );
}

#[test]
fn what_a_policy_may_not_change_is_refused() {
    let label = keys::PROPAGATION_POLICY_ID;
    let labelled = |id: Option<&str>, scheduler: Option<&str>| {
        let mut object = policy(json!({}));
        if let Some(id) = id {
            object["metadata"]["labels"] = json!({label: id});
        }
        if let Some(scheduler) = scheduler {
            object["spec"]["schedulerName"] = json!(scheduler);
        }
        object
    };
    let check = |new: Value, expected: Result<(), &str>| {
        let old = labelled(Some("a"), Some("default-scheduler"));
        let (group, kind) = ("policy.karmada.io", "PropagationPolicy");
        let request = Request {
            group,
            kind,
            operation: Operation::Update,
            namespace: Some("default"),
            old: Some(&old),
        };
        let result = run(&request, new, AdmissionOptions::default());
        match (result, expected) {
            (Ok(object), Ok(())) => assert_eq!(object["metadata"]["labels"][label], "a"),
            (Err(text), Err(expected)) => assert!(text.starts_with(expected), "{text}"),
            (result, expected) => panic!("{result:?} is not {expected:?}"),
        }
    };
    check(labelled(Some("a"), None), Ok(()));
    check(
        labelled(Some("a"), Some("other")),
        Err("spec.schedulerName: Invalid value: \"other\""),
    );
    check(
        labelled(Some("b"), None),
        Err("metadata.labels[propagationpolicy.karmada.io/permanent-id]: Invalid value: \"b\""),
    );
    check(
        labelled(None, None),
        Err("metadata.labels[propagationpolicy.karmada.io/permanent-id]: Required value"),
    );
}
