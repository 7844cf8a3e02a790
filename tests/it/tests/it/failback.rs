//! Workloads that return to their home cluster, and workloads that must not.

use crate::support::{Folder, assert_held, example, root, run};

/// Runs two applications whose home is member1, which is lost from 2m to 4m, with these flags.
fn check(name: &str, flags: &str, rest: &str) {
    let examples = root().join("examples/failback");
    let examples = examples.display();
    let scenario = format!(
        "name: {name}\nduration: 15m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n{flags}\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\n\
         manifests: ['{examples}/taint-policy.yaml', {{file: '{examples}/app.yaml', count: 2}}]\nevents:\n\
         - {{at: 2m, cluster: member1, state: unreachable}}\n- {{at: 4m, cluster: member1, state: recover}}\n{rest}"
    );
    let folder = Folder::new(
        &format!("failback-{name}"),
        &[("scenario.yaml", &scenario), ("pause.yaml", PAUSE)],
    );
    for seed in 0..3 {
        assert_held(&run(&folder.load().unwrap(), Some(seed)));
    }
}

const PAUSE: &str = "apiVersion: bulkhead.dev/v1alpha1\nkind: EvictionPause\nmetadata: {name: freeze}\n\
                     spec: {workloads: [{name: app-2}], reason: quarter-end}\n";
const ON: &str = "  enable-failback: true\n  failback-stabilization-window: 2m\n  failback-concurrency: 5\n";

#[test]
fn workloads_go_home_after_the_window_one_at_a_time_and_nothing_is_down() {
    for seed in 0..3 {
        assert_held(&run(&example("failback"), Some(seed)));
    }
}

#[test]
fn nothing_goes_back_unless_somebody_switched_it_on() {
    let rest = "expect:\n- {from: 3m30s, bindingsOn: {cluster: member1, count: 0}}\n\
        - {decision: {decision: Evicted, reason: Failback, absent: true}}\n";
    check("off", "", rest);
}

#[test]
fn the_copy_that_stands_in_stays_while_the_one_at_home_is_not_healthy() {
    // The grace period of 30 s expires long before the copy at home is healthy, and must not remove the substitute.
    let flags = format!("{ON}  graceful-eviction-timeout: 30s\n");
    let rest = "- {at: 4m, cluster: member1, failureModes: [{mode: never-ready}]}\n\
        - {at: 12m, cluster: member1, failureModes: []}\n\
        expect:\n- {at: 9m, decision: {decision: Evicted, reason: Failback, object: default/app-1-deployment}}\n\
        - {at: 9m, binding: default/app-1-deployment, clusters: {member1: 2}}\n\
        - {from: 3m30s, workload: Deployment default/app-1, readyReplicasMin: 2}\n\
        - {from: 3m30s, workload: Deployment default/app-2, readyReplicasMin: 2}\n\
        - {binding: default/app-1-deployment, clusters: {member1: 2}, evictingFrom: [], worksIn: [member1]}\n";
    check("ill-at-home", &flags, rest);
}

#[test]
fn a_home_that_is_lost_on_the_way_back_sends_the_workload_where_it_came_from() {
    let rest = "- {at: 4m, cluster: member1, failureModes: [{mode: never-ready}]}\n\
        - {at: 9m, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 8m50s, binding: default/app-1-deployment, clusters: {member1: 2}}\n\
        - {from: 11m, bindingsOn: {cluster: member1, count: 0}}\n\
        - {from: 3m30s, workload: Deployment default/app-1, readyReplicasMin: 2}\n\
        - {from: 3m30s, workload: Deployment default/app-2, readyReplicasMin: 2}\n";
    check("lost-again", ON, rest);
}

#[test]
fn going_back_keeps_the_rate_of_evictions_and_heeds_pauses() {
    let flags = format!("{ON}  resource-eviction-rate: 0.5\n");
    let rest = "- {at: 5m, apply: pause.yaml}\n\
        - {at: 10m, delete: {apiVersion: bulkhead.dev/v1alpha1, kind: EvictionPause, name: freeze}}\n\
        expect:\n- {from: 8m, until: 9m59s, bindingsOn: {cluster: member1, count: 1}}\n\
        - {at: 9m, decision: {decision: EvictionsWait, object: default/app-2-deployment, reason: EvictionPaused}}\n\
        - {at: 10m30s, bindingsOn: {cluster: member1, count: 2}}\n";
    check("paused", &flags, rest);
}
