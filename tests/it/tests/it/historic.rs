//! Bugs that Karmada had, each with the number of its issue there. Others have their case beside the rule that they
//! are about; `cargo test karmada_` runs all of them.

use crate::support::{Folder, assert_held, run};

const TAINT_POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: not-ready-clusters}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False', Unknown]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ['True']}]
  taints: [{key: cluster.karmada.io/not-ready, effect: NoExecute}]
";

/// Deployments with so many replicas; `placement` is that of their policies.
fn apps(replicas: u32, placement: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: 'app-{{n}}', namespace: default}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{matchLabels: {{app: 'app-{{n}}'}}}}\n  template:\n    \
         metadata: {{labels: {{app: 'app-{{n}}'}}}}\n    spec: {{containers: [{{name: app, image: app}}]}}\n---\n\
         apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
         metadata: {{name: 'app-{{n}}', namespace: default}}\nspec:\n  \
         resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: 'app-{{n}}'}}]\n  \
         placement:\n{placement}"
    )
}

/// On member1 first, then wherever there is room.
const FIRST_MEMBER1: &str = "\x20   clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: rest, clusterNames: [member1, member2, member3, member4]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
";

struct Case<'a> {
    name: &'a str,
    clusters: usize,
    ready_after: &'a str,
    apps: (u32, String),
    rest: &'a str,
}

fn check(case: &Case<'_>) -> bulkhead::report::Report {
    let clusters =
        (1..=case.clusters).map(|n| format!("- {{name: member{n}, replicaReadyAfter: {}}}\n", case.ready_after));
    let scenario = format!(
        "name: {}\nduration: 5m\nflags:\n  feature-gates: {{Failover: true, SchedulingOvercommitProtection: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n  \
         resource-eviction-rate: 1000\nclusters:\n{}manifests: [taint-policy.yaml, {{file: apps.yaml, count: {}}}]\n{}",
        case.name,
        clusters.collect::<String>(),
        case.apps.0,
        case.rest,
    );
    let files =
        [("scenario.yaml", scenario.as_str()), ("taint-policy.yaml", TAINT_POLICY), ("apps.yaml", &case.apps.1)];
    let report = run(&Folder::new(&format!("historic-{}", case.name), &files).load().unwrap(), Some(1));
    assert_held(&report);
    report
}

/// Two controllers wrote the list of tasks from stale copies, and a task was lost.
#[test]
fn karmada_7302_two_clusters_that_are_lost_at_once_lose_no_task() {
    let divided = "\x20   clusterAffinity: {clusterNames: [member1, member2, member3, member4]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 1}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
        - {targetCluster: {clusterNames: [member3]}, weight: 1}
        - {targetCluster: {clusterNames: [member4]}, weight: 1}
";
    let rest = "events:\n- {at: 150s, cluster: member1, state: unreachable}\n\
        - {at: 150s, cluster: member2, state: unreachable}\n\
        expect:\n- {at: 145s, binding: default/app-1-deployment, clusters: {member1: 1, member2: 1, member3: 1, member4: 1}}\n\
        - {at: 200s, binding: default/app-1-deployment, clusters: {member3: 2, member4: 2}}\n\
        - {at: 200s, binding: default/app-8-deployment, clusters: {member3: 2, member4: 2}}\n";
    // A task that is lost never ends, so each eviction has its release.
    let ended = ["app-1", "app-8"].into_iter().flat_map(|app| {
        ["member1", "member2"].map(|cluster| {
            let about = format!("object: default/{app}-deployment, cluster: {cluster}");
            format!("- {{decision: {{decision: Evicted, {about}}}}}\n- {{decision: {{decision: Released, {about}}}}}\n")
        })
    });
    let rest = format!("{rest}{}", ended.collect::<String>());
    check(&Case { name: "7302", clusters: 4, ready_after: "60s", apps: (8, apps(4, divided)), rest: &rest });
}

/// The taints of the Ready condition were overwritten by those of a policy that was decided from a stale copy.
#[test]
fn karmada_7348_taints_of_a_policy_and_of_the_ready_condition_do_not_overwrite_each_other() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 99s, apply: person.yaml}\n\
        expect:\n- {at: 105s, cluster: member1, taints: ['cluster.karmada.io/not-ready:NoSchedule', \
        'cluster.karmada.io/not-ready:NoExecute', 'mine:NoSchedule']}\n";
    // A merge patch by a person replaces the list; what policies want is back at the next look, and theirs stays.
    let person = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                  spec: {taints: [{key: mine, effect: NoSchedule}]}\n";
    let scenario = format!(
        "name: '7348'\nduration: 3m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         allow-no-execute-taint-policy: true\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml]\n{rest}"
    );
    let files = [("scenario.yaml", scenario.as_str()), ("taint-policy.yaml", TAINT_POLICY), ("person.yaml", person)];
    assert_held(&run(&Folder::new("historic-7348", &files).load().unwrap(), Some(1)));
}

/// In a storm most writes of the taint manager and the graceful eviction controller were answered 409.
#[test]
fn karmada_7483_a_storm_does_not_drown_in_conflicts() {
    const APPS: u32 = 200;
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 55s, bindingsOn: {cluster: member1, count: 200}}\n- {at: 2m, bindingsOn: {cluster: member1, count: 0}}\n";
    let apps = (APPS, apps(1, FIRST_MEMBER1));
    let report = check(&Case { name: "7483", clusters: 3, ready_after: "5s", apps, rest });
    let lost = report.retries.iter().filter(|row| row.controller == "taint-manager").map(|row| row.count).sum::<u64>();
    // At an eviction and a scheduling for each binding, 1 % of the writes.
    assert!(lost <= u64::from(APPS) * 2 / 100, "{lost} of {APPS} evictions had to be tried again");
}

/// What left a cluster went to one and the same destination.
#[test]
fn karmada_6518_what_leaves_a_cluster_does_not_all_go_to_the_same_one() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {bindingsOn: {cluster: member1, count: 0}}\n";
    // With equal static weights one replica has nothing to be divided by; by room, what is placed counts at once.
    let by_room = FIRST_MEMBER1.replace("Weighted}", "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}");
    let report = check(&Case { name: "6518", clusters: 4, ready_after: "5s", apps: (30, apps(1, &by_room)), rest });
    for cluster in ["member2", "member3", "member4"] {
        let there = report.placements.iter().filter(|row| row.clusters.contains_key(cluster)).count();
        assert!((4..=16).contains(&there), "{there} of 30 went to {cluster}");
    }
}

/// The task stayed although the new copies were healthy, because their health was computed wrongly.
#[test]
fn karmada_2769_the_task_ends_when_the_new_copies_are_healthy() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 101s, binding: default/app-1-deployment, evictingFrom: [member1]}\n\
        - {at: 140s, binding: default/app-1-deployment, evictingFrom: []}\n";
    check(&Case { name: "2769", clusters: 3, ready_after: "15s", apps: (1, apps(3, FIRST_MEMBER1)), rest });
}
