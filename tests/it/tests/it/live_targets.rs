//! An old copy is removed only if its replacements are confirmed to be alive.

use crate::support::{Folder, assert_held, run};

/// An application that starts on member1 and may move to member2.
const APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: default, labels: {app: app}}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: app, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: app}]
";

const MOVES: &str = "  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: rest, clusterNames: [member1, member2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
";

const EVERYWHERE: &str = "  placement: {clusterAffinity: {clusterNames: [member1, member2]}}\n";

/// Runs the application with a placement; `rest` contains plugins, events and expectations.
fn check(name: &str, placement: &str, clusters: &str, rest: &str, files: &[(&str, &str)]) {
    let scenario = format!("name: {name}\nduration: 16m\nclusters: {clusters}\nmanifests: [app.yaml]\n{rest}");
    let app = format!("{APP}{placement}");
    let mut all = vec![("scenario.yaml", scenario.as_str()), ("app.yaml", app.as_str())];
    all.extend(files);
    let scenario = Folder::new(&format!("live-{name}"), &all).load().unwrap();
    assert_held(&run(&scenario, Some(1)));
}

const PUSH: &str = "[{name: member1}, {name: member2}]";
const HOLD: &str = "function EvictionCheck(binding, task, observed, now)\n  return 'hold'\nend\n";

#[test]
fn a_stale_report_of_a_dead_target_releases_nothing() {
    // A plugin holds the eviction, the replacement dies meanwhile, and the hold ends.
    let rest = "plugins: [{name: freeze, lua: hold.lua}]\nevents:\n\
        - {at: 60s, drain: {cluster: member1}}\n\
        - {at: 150s, cluster: member2, state: unreachable}\n\
        - {at: 5m, plugins: []}\n\
        - {at: 14m, cluster: member2, state: recover}\n\
        expect:\n\
        - {at: 140s, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 1}}\n\
        - {at: 4m, cluster: member2, ready: 'False'}\n\
        - {from: 5m, until: 14m, binding: default/app-deployment, clusters: {member2: 1}, evictingFrom: [member1], \
        worksIn: [member1, member2]}\n\
        - {at: 13m59s, decision: {decision: Released, absent: true}}\n\
        - {at: 13m59s, decision: {decision: Held, cluster: member1, reason: ReplacementUnconfirmed}}\n\
        - {from: 60s, until: 14m, workload: Deployment default/app, readyReplicasMin: 1}\n\
        - {at: 15m30s, decision: {decision: Released, cluster: member1}}\n\
        - {binding: default/app-deployment, evictingFrom: [], worksIn: [member2]}\n";
    check("frozen", MOVES, PUSH, rest, &[("hold.lua", HOLD)]);
}

#[test]
fn a_target_whose_last_probe_failed_releases_nothing_while_its_condition_is_still_true() {
    let rest = "events:\n\
        - {at: 100s, cluster: member2, state: unreachable}\n\
        - {at: 112s, drain: {cluster: member1}}\n\
        - {at: 14m, cluster: member2, state: recover}\n\
        expect:\n\
        - {at: 95s, binding: default/app-deployment, clusters: {member1: 1, member2: 1}}\n\
        - {at: 115s, cluster: member2, ready: 'True'}\n\
        - {from: 115s, until: 14m, binding: default/app-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n\
        - {at: 13m59s, decision: {decision: Released, absent: true}}\n\
        - {at: 15m30s, decision: {decision: Released, cluster: member1}}\n";
    check("probe", EVERYWHERE, PUSH, rest, &[]);
}

#[test]
fn a_target_that_dies_between_two_probes_is_asked_before_anything_goes() {
    // Objects of the replacement cluster are unreachable while its health endpoint responds: no probe fails.
    let rest = "events:\n\
        - {at: 100s, fault: {kind: partition, cluster: member2, for: 60s}}\n\
        - {at: 101s, drain: {cluster: member1}}\n\
        expect:\n\
        - {from: 103s, until: 159s, binding: default/app-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n\
        - {at: 159s, cluster: member2, ready: 'True'}\n\
        - {at: 4m, decision: {decision: Released, cluster: member1, reason: ReplacementHealthy}}\n";
    check("between", EVERYWHERE, PUSH, rest, &[]);
}

#[test]
fn a_pull_target_counts_only_while_its_lease_is_renewed() {
    let clusters = "[{name: member1}, {name: member2, syncMode: Pull}]";
    let rest = "plugins: [{name: freeze, lua: hold.lua}]\nevents:\n\
        - {at: 60s, drain: {cluster: member1}}\n\
        - {at: 150s, cluster: member2, state: unreachable}\n\
        - {at: 195s, plugins: []}\n\
        - {at: 14m, cluster: member2, state: recover}\n\
        expect:\n\
        - {at: 140s, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 1}}\n\
        - {from: 195s, until: 14m, binding: default/app-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n\
        - {at: 13m59s, decision: {decision: Released, absent: true}}\n\
        - {at: 15m50s, decision: {decision: Released, cluster: member1}}\n";
    check("pull", MOVES, clusters, rest, &[("hold.lua", HOLD)]);
}

#[test]
fn a_pull_target_whose_reports_were_cut_off_counts_once_they_are_made() {
    // Its replica dies while the agent is cut off. The control plane knows the report from before.
    let clusters = "[{name: member1}, {name: member2, syncMode: Pull}]";
    let rest = "plugins: [{name: freeze, lua: hold.lua}]\nevents:\n\
        - {at: 60s, drain: {cluster: member1}}\n\
        - {at: 100s, cluster: member2, state: unreachable}\n\
        - {at: 105s, cluster: member2, failureModes: [{mode: never-ready}]}\n\
        - {at: 195s, plugins: []}\n\
        - {at: 200s, cluster: member2, state: recover}\n\
        expect:\n\
        - {at: 99s, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 1}}\n\
        - {from: 63s, until: 9m, binding: default/app-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n\
        - {at: 9m, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 0}}\n";
    check("cut-off", EVERYWHERE, clusters, rest, &[("hold.lua", HOLD)]);
}

#[test]
fn after_a_change_of_leader_a_report_counts_once_it_was_made_again() {
    // The replacement loses its replica at the moment when the leader changes and the hold ends.
    let rest = "plugins: [{name: freeze, lua: hold.lua}]\nevents:\n\
        - {at: 60s, drain: {cluster: member1}}\n\
        - {at: 150s, cluster: member2, failureModes: [{mode: never-ready}]}\n\
        - {at: 150s, plugins: []}\n\
        - {at: 150s, fault: {kind: leader-change}}\n\
        expect:\n\
        - {at: 140s, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 1}}\n\
        - {at: 10m50s, binding: default/app-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n\
        - {at: 10m50s, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 0}}\n";
    check("leader", MOVES, PUSH, rest, &[("hold.lua", HOLD)]);
}

#[test]
fn a_policys_own_grace_period_ends_with_a_dead_target_and_the_record_names_it() {
    let own = MOVES.replace(
        "  placement:",
        "  failover: {cluster: {purgeMode: Gracefully, gracePeriodSeconds: 120}}\n  placement:",
    );
    let clusters = "[{name: member1}, {name: member2, failureModes: [{mode: never-ready}]}]";
    let rest = "flags:\n  feature-gates: {Failover: true}\n  enable-no-execute-taint-eviction: true\n  \
        allow-no-execute-taint-policy: true\nevents:\n\
        - {at: 60s, apply: taint.yaml}\n\
        - {at: 90s, cluster: member2, state: unreachable}\n\
        expect:\n\
        - {at: 175s, decision: {decision: Released, absent: true}}\n\
        - {at: 4m, decision: {decision: Released, cluster: member1, reason: GracePeriodExceeded}}\n";
    let taint = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                 spec: {taints: [{key: mine, effect: NoExecute}]}\n";
    check("own", &own, clusters, rest, &[("taint.yaml", taint)]);
}

#[test]
fn purging_directly_from_a_lost_cluster_holds_back_the_replacement_for_the_grace_period_at_most() {
    let own = MOVES.replace(
        "  placement:",
        "  failover: {cluster: {purgeMode: Directly}}\n  placement:",
    );
    let rest = "flags:\n  feature-gates: {Failover: true}\n  enable-no-execute-taint-eviction: true\n  \
        allow-no-execute-taint-policy: true\n  purge-without-replacement: only-by-policy\nevents:\n\
        - {at: 60s, apply: taint.yaml}\n\
        - {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n\
        - {at: 5m, binding: default/app-deployment, clusters: {member2: 1}, worksIn: [member1]}\n\
        - {at: 5m, decision: {decision: RemovalWaits, cluster: member1, reason: ReplacementWaitsForPurge}}\n\
        - {at: 12m, decision: {decision: Dispatched, cluster: member2, reason: PurgeGivenUp}}\n\
        - {at: 13m, workload: Deployment default/app, readyReplicas: {member1: 1, member2: 1}}\n\
        - {at: 13m, decision: {decision: Released, cluster: member1, reason: ReplacementHealthy}}\n";
    let taint = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                 spec: {taints: [{key: mine, effect: NoExecute}]}\n";
    check("directly", &own, PUSH, rest, &[("taint.yaml", taint)]);
}
