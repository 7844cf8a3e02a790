//! Situations that break no promise although they look like it: random federations once reported them.

use std::fmt::Write as _;

use crate::support::{Folder, assert_held, run};

/// Taint policy on the condition `Ready`.
const TAINTS: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: not-ready}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False', Unknown]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ['True']}]
  taints: [{key: cluster.karmada.io/not-ready, effect: NoExecute}]
";

/// Returns a StatefulSet and its policy, in the flow style of YAML.
fn app(name: &str, replicas: u32, placement: &str, more: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{podManagementPolicy: Parallel, replicas: {replicas}, selector: {{matchLabels: {{app: {name}}}}}, \
         serviceName: {name}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: app, \
         image: 'app:1'}}]}}}}}}\n---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
         metadata: {{name: {name}, namespace: default}}\nspec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: \
         StatefulSet, name: {name}}}]\n  placement: {placement}\n{more}"
    )
}

/// Runs a scenario with the invariants of trials, which have to hold.
fn check(name: &str, scenario: &str, manifests: &str) {
    let mut text = format!("name: {name}\ninvariants: true\nmanifests: [manifests.yaml]\n");
    let _ = write!(text, "{scenario}");
    let folder = Folder::new(name, &[("scenario.yaml", &text), ("manifests.yaml", manifests)]);
    let report = run(&folder.load().unwrap(), None);
    assert!(report.violations.is_empty(), "{name}: {:#?}", report.violations);
    assert_held(&report);
}

const EVICTS: &str = "allow-no-execute-taint-policy: true, enable-no-execute-taint-eviction: true, \
                      feature-gates: {Failover: true}";

#[test]
fn a_cluster_without_room_for_all_copies_that_it_must_have_breaks_no_promise() {
    let manifests = [app("first", 2, "{}", ""), app("second", 4, "{}", "")].concat();
    let scenario = "duration: 4m\nclusters:\n- {name: member1, capacity: {cpu: '64', memory: 256Gi, nodes: 1, pods: 5}}\n\
                    expect:\n- {workload: StatefulSet default/first, readyReplicas: {member1: 2}}\n";
    check("full-cluster", scenario, &manifests);
}

#[test]
fn two_lost_targets_hold_a_direct_purge_back_one_after_the_other() {
    let more = "  failover: {cluster: {purgeMode: Directly}}\n";
    let dynamic = "{replicaScheduling: {replicaDivisionPreference: Weighted, replicaSchedulingType: Divided, \
                   weightPreference: {dynamicWeight: AvailableReplicas}}}";
    let manifests = [TAINTS.to_owned(), app("app", 1, dynamic, more)].concat();
    let scenario = format!(
        "duration: 8m\nflags: {{{EVICTS}, cluster-failure-threshold: 14s, graceful-eviction-timeout: 15s}}\n\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\nevents:\n\
         - {{at: 70s, fault: {{kind: target-loss, after: 9, for: 40s}}}}\n\
         - {{at: 205s, cluster: member3, state: unreachable}}\n- {{at: 285s, cluster: member3, state: recover}}\n\
         expect:\n- {{decision: {{decision: Evicted, cluster: member2}}}}\n"
    );
    check("two-purges", &scenario, &manifests);
}

#[test]
fn a_return_that_has_just_begun_may_be_under_way_at_the_end() {
    let placement = "{clusterAffinities: [{affinityName: first, clusterNames: [member2]}, {affinityName: rest, \
                     clusterNames: [member1, member2, member3]}], replicaScheduling: {replicaDivisionPreference: \
                     Weighted, replicaSchedulingType: Divided, weightPreference: {dynamicWeight: AvailableReplicas}}}";
    let manifests = [TAINTS.to_owned(), app("app", 3, placement, "")].concat();
    for duration in ["270s", "272s", "274s"] {
        let scenario = format!(
            "duration: {duration}\nflags: {{{EVICTS}, cluster-failure-threshold: 15s, enable-failback: true, \
             failback-stabilization-window: 34s}}\n\
             clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\nevents:\n\
             - {{at: 90s, cluster: member2, state: readyz-failing}}\n- {{at: 123s, cluster: member2, state: recover}}\n\
             expect:\n- {{decision: {{decision: Evicted, reason: Failback, cluster: member3}}}}\n"
        );
        check(&format!("return-until-{duration}"), &scenario, &manifests);
    }
}
