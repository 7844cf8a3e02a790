//! Copies that the scheduler no longer selects leave through an eviction, or stay.
//!
//! Each case is the minimized result of a seed of
//! `bulkhead simulate examples/X/scenario.yaml --seeds 20 --faults all`.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, TAINT_POLICY, assert_held, root, run};

/// Runs a scenario and asserts that no invariant is violated.
fn check(name: &str, scenario: &str, files: &[(&str, &str)]) -> Report {
    let files: Vec<_> = std::iter::once(("scenario.yaml", scenario))
        .chain(files.iter().copied())
        .collect();
    let report = run(&Folder::new(&format!("standing-{name}"), &files).load().unwrap(), None);
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    report
}

fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, namespace: default}}, spec: {{replicas: \
         {replicas}, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: \
         {{containers: [{{name: app, image: app}}]}}}}}}}}"
    )
}

/// Example own-scheduler, seed 0: the only copy was deleted because a filter rejected every cluster.
#[test]
fn a_filter_that_rejects_every_cluster_removes_no_copy() {
    let policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: default}, \
                  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {spreadConstraints: \
                  [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]}}}";
    let inspected = "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: alpha, labels: {inspected: \
                     'true'}}}";
    let scenario = format!(
        "name: own-scheduler\nduration: 5m\ninvariants: true\nclusters: [{{name: alpha, labels: {{tier: silver}}}}]\n\
         manifests: [{{objects: [{policy}, {}]}}]\nevents:\n- {{at: 30s, plugins: [{{name: gold-only, lua: gold.lua}}]}}\n\
         - {{at: 1m, apply: {{objects: [{inspected}]}}}}\nexpect:\n\
         - {{from: 20s, workload: Deployment default/web, readyReplicas: {{alpha: 1}}}}\n\
         - {{decision: {{decision: NotScheduled, object: default/web-deployment}}}}\n",
        deployment("web", 1)
    );
    let gold = "function Filter(binding, clusters, now)\n  local verdicts = {}\n  for index, cluster in ipairs(clusters) do\n    \
                verdicts[index] = {fit = (cluster.labels or {}).tier == 'gold', reason = 'NotGold'}\n  end\n  return verdicts\nend\n";
    check("own-scheduler", &scenario, &[("gold.lua", gold)]);
}

/// Example own-scheduler: a copy on a cluster that a filter starts to reject stays until the copy elsewhere is
/// healthy.
#[test]
fn a_copy_that_a_filter_rejects_stays_until_its_replacement_is_healthy() {
    let policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: default}, \
                  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {spreadConstraints: \
                  [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}}}";
    let inspected = "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: alpha, labels: {tier: \
                     silver}}}";
    let scenario = format!(
        "name: moves\nduration: 5m\ninvariants: true\nclusters: [{{name: alpha, labels: {{tier: gold}}}}, \
         {{name: beta, labels: {{tier: gold}}, replicaReadyAfter: 30s}}]\n\
         manifests: [{{objects: [{policy}, {}]}}]\nplugins: [{{name: gold-only, lua: gold.lua}}]\nevents:\n\
         - {{at: 1m, apply: {{objects: [{inspected}]}}}}\nexpect:\n\
         - {{at: 55s, workload: Deployment default/web, readyReplicas: {{alpha: 2}}}}\n\
         - {{at: 70s, binding: default/web-deployment, clusters: {{beta: 2}}, evictingFrom: [alpha], worksIn: [alpha, beta]}}\n\
         - {{from: 20s, workload: Deployment default/web, readyReplicasMin: 2}}\n\
         - {{decision: {{decision: Evicted, object: default/web-deployment, cluster: alpha, reason: Rescheduled}}}}\n\
         - {{decision: {{decision: Released, object: default/web-deployment, cluster: alpha}}}}\n\
         - {{at: 3m, binding: default/web-deployment, clusters: {{beta: 2}}, evictingFrom: [], worksIn: [beta]}}\n",
        deployment("web", 2)
    );
    let gold = "function Filter(binding, clusters, now)\n  local verdicts = {}\n  for index, cluster in ipairs(clusters) do\n    \
                verdicts[index] = {fit = (cluster.labels or {}).tier == 'gold', reason = 'NotGold'}\n  end\n  return verdicts\nend\n";
    check("moves", &scenario, &[("gold.lua", gold)]);
}

/// Example two-regions, seed 14: an eviction made the scheduler choose other regions, which deleted a healthy copy.
#[test]
fn a_healthy_copy_that_another_eviction_makes_needless_leaves_through_an_eviction() {
    let example = root().join("examples/two-regions");
    let example = example.display();
    let scenario = format!(
        "name: two-regions\nduration: 10m\ninvariants: true\nseed: 14\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\nclusters:\n\
         - {{name: frankfurt1, region: eu-central}}\n- {{name: frankfurt2, region: eu-central}}\n\
         - {{name: paris1, region: eu-west}}\n- {{name: paris2, region: eu-west}}\n- {{name: virginia1, region: us-east}}\n\
         manifests: [taint-policy.yaml, {example}/web.yaml, {example}/policy.yaml]\nevents:\n\
         - {{at: 1m, cluster: frankfurt1, state: unreachable}}\n- {{at: 1m, cluster: frankfurt2, state: unreachable}}\n\
         - {{at: 3m1s800ms, cluster: paris2, state: unreachable}}\n- {{at: 3m33s600ms, cluster: paris2, state: recover}}\n\
         - {{at: 4m, cluster: frankfurt1, state: recover}}\n- {{at: 4m, cluster: frankfurt2, state: recover}}\n\
         - {{at: 4m7s300ms, cluster: paris2, state: unreachable}}\n- {{at: 4m50s, cluster: paris2, state: recover}}\n\
         expect:\n- {{from: 10s, workload: Deployment default/web, readyReplicasMin: 3}}\n\
         - {{decision: {{decision: Evicted, object: default/web-deployment, cluster: virginia1, reason: Rescheduled}}}}\n"
    );
    check("two-regions", &scenario, &[("taint-policy.yaml", TAINT_POLICY)]);
}

/// Example application-failover, seed 15: the eviction was cancelled at the moment when the workload was placed
/// elsewhere, and the scheduler deleted the copy that had just recovered. The filter fails until the policy no longer
/// blocks the predecessor, so that both happen within the same seconds.
#[test]
fn a_copy_that_came_back_while_it_was_placed_elsewhere_leaves_through_an_eviction() {
    let example = root().join("examples/application-failover");
    let example = example.display();
    let scenario = format!(
        "name: application-failover\nduration: 20m\ninvariants: true\nseed: 15\nclusters:\n\
         - {{name: member1, replicaReadyAfter: 15s}}\n- {{name: member2, replicaReadyAfter: 15s}}\n\
         manifests: [{example}/health.yaml, {example}/nginx.yaml, {example}/policy.yaml]\nevents:\n\
         - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready, workload: default/nginx}}]}}\n\
         - {{at: 2m35s900ms, fault: {{kind: time-out, after: 5, for: 2s300ms}}}}\n\
         - {{at: 4m2s, fault: {{kind: failing-plugin, for: 10m3s}}}}\n\
         - {{at: 9m, cluster: member1, failureModes: []}}\nexpect:\n\
         - {{from: 10m, workload: Deployment default/nginx, readyReplicasMin: 3}}\n\
         - {{decision: {{decision: CalledOff, object: default/nginx-deployment, cluster: member1}}}}\n"
    );
    check("application-failover", &scenario, &[]);
}

/// A workload with two replicas that left member1, which is back. A person requests its rescheduling at 9m.
pub(crate) fn requested_return(name: &str, duration: &str, events: &str, expect: &str) -> String {
    let policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: \
                  default}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: \
                  {clusterAffinities: [{affinityName: home, clusterNames: [member1]}, {affinityName: elsewhere, \
                  clusterNames: [member2, member3]}], replicaScheduling: {replicaSchedulingType: Divided, \
                  replicaDivisionPreference: Aggregated}}}}";
    format!(
        "name: {name}\nduration: {duration}\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1, replicaReadyAfter: 40s}}, {{name: member2}}, {{name: member3}}]\n\
         manifests: [taint-policy.yaml, {{objects: [{policy}, {}]}}]\nevents:\n\
         - {{at: 2m, cluster: member1, state: unreachable}}\n- {{at: 5m, cluster: member1, state: recover}}\n\
         - {{at: 9m, reschedule: default/web-deployment}}\n{events}expect:\n\
         - {{at: 8m55s, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [], worksIn: [member2]}}\n\
         - {{at: 9m2s, binding: default/web-deployment, clusters: {{member1: 2}}, evictingFrom: [member2]}}\n\
         - {{from: 4m, workload: Deployment default/web, readyReplicasMin: 2}}\n{expect}",
        deployment("web", 2)
    )
}

fn returns(name: &str, duration: &str, events: &str, expect: &str) {
    check(
        name,
        &requested_return(name, duration, events, expect),
        &[("taint-policy.yaml", TAINT_POLICY)],
    );
}

#[test]
fn a_requested_return_takes_nothing_down() {
    let home = "\
        - {at: 9m35s, workload: Deployment default/web, readyReplicas: {member1: 0, member2: 2}}\n\
        - {decision: {decision: Evicted, object: default/web-deployment, cluster: member2}}\n\
        - {decision: {decision: Released, object: default/web-deployment, cluster: member2, reason: ReplacementHealthy}}\n\
        - {binding: default/web-deployment, clusters: {member1: 2}, evictingFrom: [], worksIn: [member1]}\n";
    returns("requested", "14m", "", home);
}

/// The request is a WorkloadRebalancer.
#[test]
fn a_workload_rebalancer_moves_a_workload_home_and_takes_nothing_down() {
    let rebalancer = "apply: {objects: [{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: \
                      home}, spec: {ttlSecondsAfterFinished: 30, workloads: [{apiVersion: apps/v1, kind: Deployment, \
                      namespace: default, name: web}]}}]}";
    let home = "\
        - {at: 9m35s, workload: Deployment default/web, readyReplicas: {member1: 0, member2: 2}}\n\
        - {decision: {decision: Released, object: default/web-deployment, cluster: member2, reason: ReplacementHealthy}}\n\
        - {binding: default/web-deployment, clusters: {member1: 2}, evictingFrom: [], worksIn: [member1]}\n";
    let scenario =
        requested_return("rebalanced", "14m", "", home).replace("reschedule: default/web-deployment", rebalancer);
    check("rebalanced", &scenario, &[("taint-policy.yaml", TAINT_POLICY)]);
}

/// The copy at home is not ready for 16 minutes. The grace period ends after ten.
#[test]
fn a_requested_return_keeps_the_copy_that_stands_in_while_the_one_at_home_is_ill() {
    let ill = "- {at: 8m50s, cluster: member1, failureModes: [{mode: never-ready}]}\n\
               - {at: 25m, cluster: member1, failureModes: []}\n";
    let held = "\
        - {at: 24m, binding: default/web-deployment, clusters: {member1: 2}, evictingFrom: [member2], \
        worksIn: [member1, member2]}\n\
        - {binding: default/web-deployment, clusters: {member1: 2}, evictingFrom: [], worksIn: [member1]}\n";
    returns("requested-ill", "32m", ill, held);
}
