//! Differences between a document and the program, which `docs/src/explanation/behaviour.md` lists.

use crate::support::{Folder, TAINT_POLICY, assert_held, run};

const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: \
                          {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, \
                          spec: {containers: [{name: app, image: app}]}}}}";

fn policy(placement: &str) -> String {
    format!(
        "{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {{name: web, namespace: default}}, \
         spec: {{resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}], placement: {{{placement}}}}}}}"
    )
}

/// Runs a scenario with the workload `default/web` and a policy that taints clusters that are not ready. `rest` begins
/// with `clusters`.
#[track_caller]
fn check(name: &str, gates: &str, placement: &str, rest: &str, files: &[(&str, &str)]) {
    let scenario = format!(
        "name: {name}\nduration: 8m\nflags: {{feature-gates: {{Failover: true{gates}}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         manifests: [taint-policy.yaml, {{objects: [{DEPLOYMENT}, {}]}}]\n{rest}",
        policy(placement)
    );
    let mut all = vec![
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
    ];
    all.extend(files);
    assert_held(&run(
        &Folder::new(&format!("disagreements-{name}"), &all).load().unwrap(),
        None,
    ));
}

const ONE: &str = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]";

/// The overview and the deep dive: without the gate, a cluster is removed without a task. Karmada makes one since 1.12.
#[test]
fn an_eviction_makes_a_task_without_the_gate_graceful_eviction_too() {
    let rest = "\
        clusters: [{name: member1}, {name: member2, replicaReadyAfter: 30s}]\nevents:\n\
        - {at: 2m, cluster: member1, state: unreachable}\nexpect:\n\
        - {at: 110s, binding: default/web-deployment, clusters: {member1: 2}}\n\
        - {at: 2m45s, binding: default/web-deployment, clusters: {member2: 2}, evictingFrom: [member1]}\n\
        - {decision: {decision: Released, cluster: member1, reason: ReplacementHealthy}}\n";
    check("gate", ", GracefulEviction: false", ONE, rest, &[]);
}

/// The overview: a Duplicated workload stays if fewer candidates are left than clusters were lost. That rule was part of
/// a scheduler before Karmada 1.4.
#[test]
fn a_workload_on_two_lost_clusters_moves_to_the_only_one_that_is_left() {
    let two = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]";
    let rest = "\
        clusters: [{name: member1}, {name: member2}, {name: member3}]\nevents:\n\
        - {at: 2m, cluster: member1, state: unreachable}\n- {at: 2m, cluster: member2, state: unreachable}\nexpect:\n\
        - {at: 110s, binding: default/web-deployment, clusters: {member1: 2, member2: 2}}\n\
        - {binding: default/web-deployment, clusters: {member3: 2}, evictingFrom: [], worksIn: [member1, member2, member3]}\n\
        - {workload: Deployment default/web, readyReplicasMin: 2}\n";
    check("few", "", two, rest, &[]);
}

/// The optimized proposal: an edit of a policy after a failure changes nothing. In Karmada it does, until the eviction is
/// written.
#[test]
fn a_toleration_that_a_person_shortens_after_the_failure_counts() {
    let tolerant = |seconds: u32| {
        format!(
            "clusterTolerations: [{{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, \
             tolerationSeconds: {seconds}}}], {ONE}"
        )
    };
    let rest = format!(
        "clusters: [{{name: member1}}, {{name: member2}}]\nevents:\n\
         - {{at: 2m, cluster: member1, state: unreachable}}\n- {{at: 4m, apply: {{objects: [{}]}}}}\nexpect:\n\
         - {{from: 110s, until: 4m25s, binding: default/web-deployment, clusters: {{member1: 2}}}}\n\
         - {{at: 4m50s, binding: default/web-deployment, clusters: {{member2: 2}}}}\n",
        policy(&tolerant(120))
    );
    check("edit", "", &tolerant(3600), &rest, &[]);
}

/// The optimized proposal: tolerations never concern a taint `PreferNoExecute`. The scheduler reads them.
#[test]
fn a_toleration_of_a_prefer_no_execute_taint_counts_at_scheduling() {
    let taint = "taints: [{key: example.com/slow, effect: PreferNoExecute}]";
    let check = |name: &str, placement: &str, placed: &str| {
        let rest = format!(
            "clusters: [{{name: member1, {taint}}}, {{name: member2}}]\nexpect:\n\
             - {{binding: default/web-deployment, clusters: {{{placed}}}}}\n"
        );
        check(name, ", PreferNoExecute: true", placement, &rest, &[]);
    };
    check("intolerant", "", "member2: 2");
    let tolerant = "clusterTolerations: [{key: example.com/slow, operator: Exists}]";
    check("tolerant", tolerant, "member1: 2, member2: 2");
}

/// The optimized proposal: any one eviction plugin may release the old copy. That rule is an option.
#[test]
fn one_eviction_check_that_releases_is_enough_only_if_the_composition_says_so() {
    let check = |name: &str, composition: &str, evicting: &str| {
        let rest = format!(
            "{composition}plugins: [{{name: releases, lua: releases.lua}}, {{name: holds, lua: holds.lua}}]\n\
             clusters: [{{name: member1}}, {{name: member2}}]\nevents:\n\
             - {{at: 2m, cluster: member1, state: unreachable}}\nexpect:\n\
             - {{at: 4m, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [{evicting}]}}\n"
        );
        let script =
            |verdict: &str| format!("function EvictionCheck(binding, task, observed, now) return '{verdict}' end\n");
        let (releases, holds) = (script("release"), script("hold"));
        check(
            name,
            "",
            ONE,
            &rest,
            &[("releases.lua", releases.as_str()), ("holds.lua", holds.as_str())],
        );
    };
    check("any-hold-wins", "", "member1");
    check(
        "any-release-wins",
        "composition: {eviction-check: any-release-wins}\n",
        "",
    );
}
