//! Eviction queue in whole federations: rate, brake, pre-check, order, pause, recovery.

use crate::support::{Folder, TAINT_POLICY, assert_held, run};

/// Deployments `app-1` … with one replica each that may run on every cluster and start on member1.
const APPS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: 'app-{n}', namespace: default, labels: {app: 'app-{n}'}}
spec:
  replicas: 1
  selector: {matchLabels: {app: 'app-{n}'}}
  template:
    metadata: {labels: {app: 'app-{n}'}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: 'app-{n}', namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: 'app-{n}'}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: rest, clusterNames: [member1, member2, member3, member4]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
";

/// Runs a scenario with six applications on member1. `rest` contains its events and expectations.
fn check(name: &str, flags: &str, clusters: usize, rest: &str) {
    check_with(name, flags, clusters, &[], rest);
}

fn check_with(name: &str, flags: &str, clusters: usize, files: &[(&str, &str)], rest: &str) {
    let clusters: Vec<_> = (1..=clusters).map(|n| format!("- {{name: member{n}}}\n")).collect();
    let scenario = format!(
        "name: {name}\nduration: 6m\nflags:\n  feature-gates: {{Failover: true, PreferNoExecute: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n{flags}clusters:\n{}\
         manifests: [taint-policy.yaml, {{file: apps.yaml, count: 6}}]\n{rest}",
        clusters.concat(),
    );
    let mut all = vec![
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("apps.yaml", APPS),
    ];
    all.extend(files);
    let scenario = Folder::new(&format!("eviction-{name}"), &all).load().unwrap();
    assert_held(&run(&scenario, Some(1)));
}

/// member1 is lost after a minute, becomes not ready at 1m30s, and is tainted immediately.
const LOST: &str = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n";

#[test]
fn six_bindings_leave_at_the_rate_and_not_faster() {
    // The first eviction is immediate, the others follow every ten seconds, although eight writes may run
    // concurrently.
    let expect = "expect:\n\
        - {at: 89s, bindingsOn: {cluster: member1, count: 6}}\n\
        - {at: 95s, bindingsOn: {cluster: member1, count: 5}}\n\
        - {at: 115s, bindingsOn: {cluster: member1, count: 3}}\n\
        - {at: 155s, bindingsOn: {cluster: member1, count: 0}}\n";
    check("rate", "  resource-eviction-rate: 0.1\n", 3, &format!("{LOST}{expect}"));
}

#[test]
fn the_rate_holds_over_a_restart() {
    // Two bindings leave at about 90 s and 100 s. A process that starts at 102 s must not evict the third one at
    // once.
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n- {at: 102s, kill-controller: taintManager}\n\
        expect:\n- {at: 101s, bindingsOn: {cluster: member1, count: 4}}\n\
        - {at: 109s, bindingsOn: {cluster: member1, count: 4}}\n\
        - {at: 115s, bindingsOn: {cluster: member1, count: 3}}\n\
        - {at: 3m, bindingsOn: {cluster: member1, count: 0}}\n";
    check("restart", "  resource-eviction-rate: 0.1\n", 3, rest);
}

#[test]
fn rate_zero_stops_everything() {
    let expect = "expect:\n- {from: 60s, bindingsOn: {cluster: member1, count: 6}}\n";
    check("stop", "  resource-eviction-rate: 0\n", 3, &format!("{LOST}{expect}"));
}

#[test]
fn two_of_three_lost_clusters_stop_evictions_until_one_is_back() {
    let rest = "events:\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 60s, cluster: member2, state: unreachable}\n\
        - {at: 3m, cluster: member2, state: recover}\n\
        expect:\n\
        - {from: 60s, until: 3m, bindingsOn: {cluster: member1, count: 6}}\n\
        - {at: 3m, decision: {decision: EvictionsWait, cluster: member1, reason: TooManyOfFewClustersFailed}}\n\
        - {bindingsOn: {cluster: member1, count: 0}}\n\
        - {decision: {decision: EvictionsResumed, cluster: member1}}\n";
    check("brake", "  unhealthy-cluster-threshold: 0.55\n", 3, rest);
}

#[test]
fn the_brake_is_off_unless_it_is_asked_for() {
    let rest = "events:\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 60s, cluster: member2, state: unreachable}\n\
        expect:\n- {at: 3m, bindingsOn: {cluster: member1, count: 0}}\n";
    check("no-brake", "", 3, rest);
}

#[test]
fn when_every_cluster_looks_dead_nothing_moves_whatever_the_flags_say() {
    let rest = "events:\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 60s, cluster: member2, state: unreachable}\n\
        expect:\n\
        - {from: 60s, bindingsOn: {cluster: member1, count: 6}}\n\
        - {decision: {decision: EvictionsWait, cluster: member1, reason: EveryClusterLooksDead}}\n\
        - {decision: {decision: Evicted, absent: true}}\n";
    let flags = "  unhealthy-cluster-threshold: 1\n  eviction-pre-check: none\n";
    check("all-dead", flags, 2, rest);
}

#[test]
fn karmada_5150_without_another_cluster_nothing_is_taken_away() {
    let expect = "expect:\n\
        - {from: 60s, bindingsOn: {cluster: member1, count: 6}}\n\
        - {at: 3m, decision: {decision: EvictionsWait, object: default/app-1-deployment, reason: NoTargetCluster}}\n\
        - {at: 3m, workload: Deployment default/app-1, readyReplicas: {member1: 1}}\n\
        - {workload: Deployment default/app-1, readyReplicas: {member1: 1}}\n";
    // The other cluster exists, but no placement selects it.
    let lost =
        "events:\n- {at: 60s, cluster: member1, state: unreachable}\n- {at: 4m, cluster: member1, state: recover}\n";
    let only_here = APPS.replace("member1, member2, member3, member4", "member1");
    check_with(
        "no-target",
        "",
        3,
        &[("apps.yaml", &only_here)],
        &format!("{lost}{expect}"),
    );
}

#[test]
fn what_has_not_left_stays_when_the_cluster_recovers() {
    let rest = "events:\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 120s, cluster: member1, state: recover}\n\
        expect:\n\
        - {at: 105s, bindingsOn: {cluster: member1, count: 5}}\n\
        - {at: 5m, bindingsOn: {cluster: member1, count: 5}}\n\
        - {bindingsOn: {cluster: member1, count: 5}}\n";
    check("recovers", "  resource-eviction-rate: 0.02\n", 3, rest);
}

#[test]
fn the_more_important_binding_leaves_first() {
    let important = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-6, namespace: default, labels: {bulkhead.dev/eviction-priority: '100'}}
spec: {}
";
    let rest = "expect:\n\
        - {at: 110s, binding: default/app-6-deployment, clustersOneOf: [{member2: 1}, {member3: 1}]}\n\
        - {at: 110s, bindingsOn: {cluster: member1, count: 5}}\n";
    let events = "events:\n- {at: 10s, apply: important.yaml}\n- {at: 60s, cluster: member1, state: unreachable}\n";
    let rest = format!("{events}{rest}");
    check_with(
        "order",
        "  resource-eviction-rate: 0.02\n",
        3,
        &[("important.yaml", important)],
        &rest,
    );
}

#[test]
fn the_priority_class_that_the_policy_names_decides_who_leaves_first() {
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: vital}\nvalue: 1000\n";
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
        metadata: {name: app-6, namespace: default}\n\
        spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: app-6}]\n  \
        schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: vital}\n";
    let rest = "events:\n- {at: 10s, apply: policy.yaml}\n- {at: 20s, apply: class.yaml}\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 110s, binding: default/app-6-deployment, clustersOneOf: [{member2: 1}, {member3: 1}]}\n\
        - {at: 110s, bindingsOn: {cluster: member1, count: 5}}\n";
    // The policy is applied before its class: the binding waits for the class and keeps its current priority
    // meanwhile.
    let files = [("class.yaml", class), ("policy.yaml", policy)];
    check_with("priority-class", "  resource-eviction-rate: 0.02\n", 3, &files, rest);
}

#[test]
fn a_plugin_that_orders_evictions_outranks_labels_and_its_faults_change_nothing() {
    let important = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-6, namespace: default, labels: {bulkhead.dev/eviction-priority: '100'}}
spec: {}
";
    let events = "events:\n- {at: 10s, apply: important.yaml}\n- {at: 60s, cluster: member1, state: unreachable}\n";
    let check = |name: &str, script: &str, first: &str, more: &str| {
        let plugins = "plugins:\n- {name: order, lua: order.lua, scores: evictions}\n";
        let expect = format!(
            "expect:\n- {{at: 110s, binding: default/{first}-deployment, clustersOneOf: [{{member2: 1}}, {{member3: 1}}]}}\n\
             - {{at: 110s, bindingsOn: {{cluster: member1, count: 5}}}}\n{more}"
        );
        let files = [("important.yaml", important), ("order.lua", script)];
        let rest = format!("{plugins}{events}{expect}");
        check_with(name, "  resource-eviction-rate: 0.02\n", 3, &files, &rest);
    };
    // The plugin is called with the evicted cluster only, and only for evictions: member2 and member3 keep equal
    // scores.
    let script = "function Score(binding, clusters, now)\n  assert(#clusters == 1 and clusters[1].name == 'member1')\n  \
                  if binding.name == 'app-3-deployment' then return {100} end\n  return {0}\nend\n";
    check("score-order", script, "app-3", "");
    let fault = "- {decision: {decision: PluginFault, plugin: order}}\n";
    check(
        "score-fault",
        "function Score(binding, clusters, now)\n  error('no')\nend\n",
        "app-6",
        fault,
    );
}

#[test]
fn a_pause_holds_what_it_covers_and_lets_go_when_it_is_deleted_or_ends() {
    let pause = "apiVersion: bulkhead.dev/v1alpha1\nkind: EvictionPause\nmetadata: {name: freeze}\n\
                 spec: {workloads: [{kind: Deployment, namespace: default, name: app-1}], reason: quarter-end}\n";
    let timed = "apiVersion: bulkhead.dev/v1alpha1\nkind: EvictionPause\nmetadata: {name: timed}\n\
                 spec: {workloads: [{name: app-2}], until: '2026-01-01T00:03:30Z'}\n";
    let rest = "events:\n\
        - {at: 10s, apply: pause.yaml}\n- {at: 10s, apply: timed.yaml}\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 4m, delete: {apiVersion: bulkhead.dev/v1alpha1, kind: EvictionPause, name: freeze}}\n\
        expect:\n\
        - {at: 2m, bindingsOn: {cluster: member1, count: 2}}\n\
        - {at: 2m, decision: {decision: EvictionsWait, object: default/app-1-deployment, reason: EvictionPaused}}\n\
        - {from: 60s, until: 239s, binding: default/app-1-deployment, clusters: {member1: 1}}\n\
        - {at: 2m, binding: default/app-2-deployment, clusters: {member1: 1}}\n\
        - {at: 239s, bindingsOn: {cluster: member1, count: 1}}\n\
        - {at: 245s, bindingsOn: {cluster: member1, count: 0}}\n";
    let files = [("pause.yaml", pause), ("timed.yaml", timed)];
    check_with("pause", "  resource-eviction-rate: 10\n", 3, &files, rest);
}

#[test]
fn without_the_gate_no_taint_moves_a_workload() {
    let taint = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                 spec: {taints: [{key: mine, effect: NoExecute}]}\n";
    let rest = "events:\n- {at: 60s, apply: taint.yaml}\n\
        expect:\n- {at: 2m, cluster: member1, taints: ['mine:NoExecute']}\n\
        - {from: 60s, bindingsOn: {cluster: member1, count: 6}}\n";
    let flags = "";
    let clusters = "- {name: member1}\n- {name: member2}\n";
    let scenario = format!(
        "name: gate\nduration: 5m\nflags:\n  enable-no-execute-taint-eviction: true\n{flags}clusters:\n{clusters}\
         manifests: [{{file: apps.yaml, count: 6}}]\n{rest}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("apps.yaml", APPS),
        ("taint.yaml", taint),
    ];
    assert_held(&run(&Folder::new("eviction-gate", &files).load().unwrap(), Some(1)));
}
