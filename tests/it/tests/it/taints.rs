//! ClusterTaintPolicies, `PreferNoExecute` and drains in whole federations.

use crate::documents::OPTIMIZED_TAINT;
use crate::support::{Folder, assert_held, run};

const NGINX: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: default, labels: {app: nginx}}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

/// A policy with ordered groups. [`FAILOVER`] is that of the proposal's example, with the right spelling of `purgeMode`.
const POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx-propagation, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: rest, clusterNames: [member1, member2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
";

const FAILOVER: &str = "  failover:\n    cluster: {purgeMode: Directly, tolerationSeconds: 100}\n";

const CLASSIC: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: classic}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ['True']}]
  taints: [{key: lost, effect: NoSchedule, value: a}]
";

fn check(name: &str, flags: &str, files: &[(&str, &str)], rest: &str) {
    let manifests: Vec<_> = files
        .iter()
        .map(|(file, _)| *file)
        .filter(|file| !file.starts_with("later"))
        .collect();
    let scenario = format!(
        "name: {name}\nduration: 16m\nflags:\n  feature-gates: {{Failover: true, PreferNoExecute: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n  \
         graceful-eviction-timeout: 5m\n{flags}\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\nmanifests: [{}]\n{rest}",
        manifests.join(", "),
    );
    let mut all = vec![("scenario.yaml", scenario.as_str())];
    all.extend(files);
    assert_held(&run(
        &Folder::new(&format!("taints-{name}"), &all).load().unwrap(),
        Some(1),
    ));
}

const READY: &str = "cluster.karmada.io/not-ready:NoSchedule";
const SOFT: &str = "cluster.karmada.io/not-ready:PreferNoExecute";

#[test]
fn the_proposals_policy_taints_after_five_minutes_and_only_workloads_that_asked_for_it_leave() {
    // Ready is False from 1m30s on; the taint is added at 6m30s, and nginx leaves 100 s later.
    let events =
        "events:\n- {at: 60s, cluster: member1, state: unreachable}\n- {at: 10m, cluster: member1, state: recover}\n";
    let expect = format!(
        "expect:\n- {{at: 385s, cluster: member1, taints: ['{READY}']}}\n\
         - {{at: 400s, cluster: member1, taints: ['{READY}', '{SOFT}']}}\n\
         - {{from: 60s, until: 485s, binding: default/nginx-deployment, clusters: {{member1: 2}}}}\n\
         - {{at: 500s, binding: default/nginx-deployment, clusters: {{member2: 2}}}}\n\
         - {{at: 800s, cluster: member1, taints: ['{SOFT}']}}\n\
         - {{at: 835s, cluster: member1, taints: []}}\n"
    );
    let asked = format!("{POLICY}{FAILOVER}");
    let files = [
        ("policy.yaml", asked.as_str()),
        ("nginx.yaml", NGINX),
        ("taint.yaml", OPTIMIZED_TAINT),
    ];
    check("proposal", "", &files, &format!("{events}{expect}"));
    let stays = "expect:\n- {from: 60s, binding: default/nginx-deployment, clusters: {member1: 2}}\n\
                 - {decision: {decision: Evicted, absent: true}}\n";
    let files = [
        ("policy.yaml", POLICY),
        ("nginx.yaml", NGINX),
        ("taint.yaml", OPTIMIZED_TAINT),
    ];
    check("proposal-not-asked", "", &files, &format!("{events}{stays}"));
}

#[test]
fn the_windows_of_a_taint_go_on_after_a_crash() {
    let rest = format!(
        "events:\n- {{at: 60s, cluster: member1, state: unreachable}}\n\
         - {{at: 5m, kill-controller: '*', for: 10s}}\n\
         expect:\n- {{at: 395s, cluster: member1, taints: ['{READY}']}}\n\
         - {{at: 410s, cluster: member1, taints: ['{READY}', '{SOFT}']}}\n"
    );
    check("crash", "", &[("taint.yaml", OPTIMIZED_TAINT)], &rest);
}

#[test]
fn what_a_policy_added_goes_when_it_is_edited_or_deleted_and_a_persons_taint_stays() {
    let mine = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member2}\n\
                spec: {taints: [{key: lost, effect: NoSchedule}]}\n";
    let edited = CLASSIC.replace("key: lost", "key: gone");
    let rest = format!(
        "events:\n- {{at: 10s, apply: later-mine.yaml}}\n- {{at: 60s, cluster: member1, state: unreachable}}\n\
         - {{at: 3m, apply: later-edited.yaml}}\n\
         - {{at: 5m, delete: {{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, name: classic}}}}\n\
         expect:\n- {{at: 2m, cluster: member1, taints: ['{READY}', 'lost=a:NoSchedule']}}\n\
         - {{at: 190s, cluster: member1, taints: ['{READY}', 'gone=a:NoSchedule']}}\n\
         - {{at: 310s, cluster: member1, taints: ['{READY}']}}\n\
         - {{cluster: member2, taints: ['lost:NoSchedule']}}\n"
    );
    let files = [
        ("taint.yaml", CLASSIC),
        ("later-mine.yaml", mine),
        ("later-edited.yaml", &edited),
    ];
    check("owned", "", &files, &rest);
}

#[test]
fn a_policy_that_is_deleted_during_an_outage_leaves_no_taints() {
    let rest = format!(
        "events:\n- {{at: 60s, cluster: member1, state: unreachable}}\n- {{at: 3m, kill-controller: '*', for: 20s}}\n\
         - {{at: 185s, delete: {{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, name: classic}}}}\n\
         expect:\n- {{at: 190s, cluster: member1, taints: ['{READY}', 'lost=a:NoSchedule']}}\n\
         - {{at: 210s, cluster: member1, taints: ['{READY}']}}\n"
    );
    check("deleted-unseen", "", &[("taint.yaml", CLASSIC)], &rest);
}

#[test]
fn with_the_clean_up_off_taints_are_left_to_people_as_in_karmada() {
    let rest = format!(
        "events:\n- {{at: 60s, cluster: member1, state: unreachable}}\n\
         - {{at: 3m, delete: {{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, name: classic}}}}\n\
         expect:\n- {{cluster: member1, taints: ['{READY}', 'lost=a:NoSchedule']}}\n"
    );
    check(
        "never-clean",
        "  cluster-taint-policy-clean-up: false\n",
        &[("taint.yaml", CLASSIC)],
        &rest,
    );
}

#[test]
fn a_drain_empties_a_healthy_cluster_goes_on_after_a_crash_and_ends_when_it_is_taken_back() {
    let rest = "events:\n- {at: 60s, drain: {cluster: member1, evictionsPerSecond: 0.5}}\n\
        - {at: 61s, kill-controller: '*', for: 10s}\n- {at: 8m, undrain: member1}\n\
        expect:\n- {at: 55s, binding: default/nginx-deployment, clusters: {member1: 2}}\n\
        - {at: 2m, binding: default/nginx-deployment, clusters: {member2: 2}}\n\
        - {at: 2m, cluster: member1, taints: ['bulkhead.dev/drain:NoExecute']}\n\
        - {decision: {decision: Evicted, cluster: member1, reason: ClusterDrained}}\n\
        - {at: 7m, workload: Deployment default/nginx, readyReplicas: {member2: 2}}\n\
        - {at: 490s, cluster: member1, taints: []}\n";
    // A drain does not depend on the cluster's health: it needs no feature gate and ignores the toleration of
    // everything.
    let scenario = format!(
        "name: drain\nduration: 10m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [policy.yaml, nginx.yaml]\n{rest}"
    );
    let tolerant = POLICY.replace(
        "  placement:\n",
        "  placement:\n    clusterTolerations: [{operator: Exists}]\n",
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("policy.yaml", &tolerant),
        ("nginx.yaml", NGINX),
    ];
    assert_held(&run(&Folder::new("taints-drain", &files).load().unwrap(), Some(1)));
}

#[test]
fn a_drain_with_nowhere_to_go_says_so_and_takes_nothing_away() {
    let only = POLICY.replace("[member1, member2]", "[member1]");
    let scenario = "name: stuck\nduration: 3m\nclusters: [{name: member1}, {name: member2}]\n\
        manifests: [policy.yaml, nginx.yaml]\nevents:\n- {at: 60s, drain: {cluster: member1}}\n\
        expect:\n- {from: 50s, binding: default/nginx-deployment, clusters: {member1: 2}}\n\
        - {decision: {decision: EvictionsWait, object: default/nginx-deployment, reason: NoTargetCluster}}\n";
    let files = [
        ("scenario.yaml", scenario),
        ("policy.yaml", &only),
        ("nginx.yaml", NGINX),
    ];
    assert_held(&run(&Folder::new("taints-stuck", &files).load().unwrap(), Some(1)));
}

/// S4: a Cluster that is deleted gets no taint for that; its copies go with it, and others are made.
#[test]
fn a_deleted_cluster_gets_no_taint_and_its_workloads_move() {
    let rest = "events:\n- {at: 2m, delete: {apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, name: member1}}\nexpect:\n\
                - {at: 110s, binding: default/nginx-deployment, clusters: {member1: 2}}\n\
                - {event: {reason: EvictWorkloadFromClusterSucceed, absent: true}}\n\
                - {decision: {decision: Tainted, cluster: member1, reason: ReadyFalse, absent: true}}\n\
                - {from: 3m, binding: default/nginx-deployment, clusters: {member2: 2}}\n\
                - {from: 3m, workload: Deployment default/nginx, readyReplicasMin: 2}\n";
    check("deleted", "", &[("nginx.yaml", NGINX), ("policy.yaml", POLICY)], rest);
}

#[test]
fn bad_drains_and_policies_are_named() {
    let refused = |name: &str, manifest: &str, words: &str| {
        let scenario = "name: bad\nduration: 1m\nclusters: [{name: member1}]\nmanifests: [bad.yaml]\n";
        let folder = Folder::new(
            &format!("taints-bad-{name}"),
            &[("scenario.yaml", scenario), ("bad.yaml", manifest)],
        );
        let error = match folder.load() {
            Ok(loaded) => crate::support::try_run(&loaded, None).err().unwrap_or_default(),
            Err(error) => error,
        };
        assert!(error.contains(words), "{name}: no {words:?} in: {error}");
    };
    let drain = |spec: &str| {
        format!("apiVersion: bulkhead.dev/v1alpha1\nkind: ClusterDrain\nmetadata: {{name: d}}\nspec: {spec}\n")
    };
    refused(
        "rate",
        &drain("{clusterName: member1, evictionsPerSecond: -1}"),
        "positive number of evictions per second",
    );
    refused("no-cluster", &drain("{clusterName: ''}"), "spec.clusterName");
    let policy = |spec: &str| {
        format!(
            "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterTaintPolicy\nmetadata: {{name: p}}\nspec: {spec}\n"
        )
    };
    refused(
        "effect",
        &policy("{taints: [{key: k, effect: Sometimes}]}"),
        "Sometimes",
    );
    refused("gate", OPTIMIZED_TAINT, "feature gate PreferNoExecute");
    refused(
        "window",
        &policy("{taintsToAdd: [{key: k, effect: NoSchedule, addOnMatchSeconds: 0}]}"),
        "addOnMatchSeconds",
    );
    let both = "{taints: [{key: k, effect: NoSchedule}], taintsToAdd: [{key: j, effect: NoSchedule}]}";
    refused("shapes", &policy(both), "cannot be combined with");
    refused("empty", &policy("{}"), "spec.taints");
}
