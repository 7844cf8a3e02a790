//! Regression tests for bugs in Karmada, named after their issue numbers. Further such tests are next to the rules
//! concerned; `cargo test karmada_` runs all of them.

use crate::support::{Folder, TAINT_POLICY, apps, assert_held, run};

/// Member1 first, then any cluster with capacity.
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

fn check(case: &Case<'_>) -> bulkhead_simulator::report::Report {
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
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("apps.yaml", &case.apps.1),
    ];
    let report = run(
        &Folder::new(&format!("historic-{}", case.name), &files).load().unwrap(),
        Some(1),
    );
    assert_held(&report);
    report
}

/// In Karmada, two controllers wrote the task list from stale copies, and a task was lost.
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
    // A lost task is never released, so each eviction must have a release.
    let ended = ["app-1", "app-8"].into_iter().flat_map(|app| {
        ["member1", "member2"].map(|cluster| {
            let about = format!("object: default/{app}-deployment, cluster: {cluster}");
            format!("- {{decision: {{decision: Evicted, {about}}}}}\n- {{decision: {{decision: Released, {about}}}}}\n")
        })
    });
    let rest = format!("{rest}{}", ended.collect::<String>());
    check(&Case {
        name: "7302",
        clusters: 4,
        ready_after: "60s",
        apps: (8, apps(4, divided)),
        rest: &rest,
    });
}

/// In Karmada, the taints of the Ready condition were overwritten by a policy's taints computed from a stale copy.
#[test]
fn karmada_7348_taints_of_a_policy_and_of_the_ready_condition_do_not_overwrite_each_other() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 99s, apply: person.yaml}\n\
        expect:\n- {at: 105s, cluster: member1, taints: ['cluster.karmada.io/not-ready:NoSchedule', \
        'cluster.karmada.io/not-ready:NoExecute', 'mine:NoSchedule']}\n";
    // A user's merge patch replaces the list. The next reconciliation restores the policies' taints and keeps the
    // user's.
    let person = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                  spec: {taints: [{key: mine, effect: NoSchedule}]}\n";
    let scenario = format!(
        "name: '7348'\nduration: 3m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         allow-no-execute-taint-policy: true\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml]\n{rest}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("person.yaml", person),
    ];
    assert_held(&run(&Folder::new("historic-7348", &files).load().unwrap(), Some(1)));
}

/// In Karmada, most writes of the taint manager and the graceful eviction controller failed with 409 during a storm.
#[test]
fn karmada_7483_a_storm_does_not_drown_in_conflicts() {
    const APPS: u32 = 200;
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 55s, bindingsOn: {cluster: member1, count: 200}}\n- {at: 2m, bindingsOn: {cluster: member1, count: 0}}\n";
    let apps = (APPS, apps(1, FIRST_MEMBER1));
    let report = check(&Case {
        name: "7483",
        clusters: 3,
        ready_after: "5s",
        apps,
        rest,
    });
    let lost = report
        .retries
        .iter()
        .filter(|row| row.controller == "taint-manager")
        .map(|row| row.count)
        .sum::<u64>();
    // With one eviction and one release per binding, this is 1 % of the writes.
    assert!(
        lost <= u64::from(APPS) * 2 / 100,
        "{lost} of {APPS} evictions had to be tried again"
    );
}

/// In Karmada, all workloads that left a cluster went to the same destination.
#[test]
fn karmada_6518_what_leaves_a_cluster_does_not_all_go_to_the_same_one() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {bindingsOn: {cluster: member1, count: 0}}\n";
    // Equal static weights cannot divide a single replica; dynamic weights account for each placement immediately.
    let by_room = FIRST_MEMBER1.replace(
        "Weighted}",
        "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
    );
    let report = check(&Case {
        name: "6518",
        clusters: 4,
        ready_after: "5s",
        apps: (30, apps(1, &by_room)),
        rest,
    });
    for cluster in ["member2", "member3", "member4"] {
        let count = report
            .placements
            .iter()
            .filter(|row| row.clusters.contains_key(cluster))
            .count();
        assert!((4..=16).contains(&count), "{count} of 30 went to {cluster}");
    }
}

/// In Karmada, the task stayed although the new copies were healthy, because their health was computed incorrectly.
#[test]
fn karmada_2769_the_task_ends_when_the_new_copies_are_healthy() {
    let rest = "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        expect:\n- {at: 101s, binding: default/app-1-deployment, evictingFrom: [member1]}\n\
        - {at: 140s, binding: default/app-1-deployment, evictingFrom: []}\n";
    check(&Case {
        name: "2769",
        clusters: 3,
        ready_after: "15s",
        apps: (1, apps(3, FIRST_MEMBER1)),
        rest,
    });
}

/// In Karmada, a scale-up removed the replicas on a cluster that was not ready, although failover was off.
#[test]
fn karmada_1640_a_scale_up_while_a_cluster_is_not_ready_takes_nothing_away_from_it() {
    let by_room = "\x20   clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
";
    let (before, after) = (apps(4, by_room), apps(8, by_room).replace("{n}", "1"));
    let scenario = "name: '1640'\nduration: 6m\nclusters: [{name: member1}, {name: member2}]\n\
        manifests: [{file: apps.yaml, count: 1}]\nevents:\n- {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 2m, apply: scaled.yaml}\n- {at: 4m, cluster: member1, state: recover}\nexpect:\n\
        - {at: 55s, binding: default/app-1-deployment, clusters: {member1: 2, member2: 2}}\n\
        - {at: 110s, cluster: member1, ready: 'False', taints: ['cluster.karmada.io/not-ready:NoSchedule']}\n\
        - {from: 20s, workload: Deployment default/app-1, readyReplicasMin: 2}\n\
        - {at: 3m, binding: default/app-1-deployment, clustersOneOf: [{member1: 2, member2: 6}, \
        {member1: 3, member2: 5}, {member1: 4, member2: 4}, {member1: 5, member2: 3}], evictingFrom: [], \
        worksIn: [member1, member2]}\n\
        - {decision: {decision: Withdrawn, absent: true}}\n- {decision: {decision: Removed, absent: true}}\n\
        - {workload: Deployment default/app-1, readyReplicasMin: 8}\n";
    let files = [
        ("scenario.yaml", scenario),
        ("apps.yaml", &before),
        ("scaled.yaml", &after),
    ];
    assert_held(&run(&Folder::new("historic-1640", &files).load().unwrap(), Some(1)));
}

/// In Karmada, bindings that tolerate a taint permanently were queued and took the slots of those that must leave.
#[test]
fn karmada_7612_an_unlimited_toleration_uses_no_slot() {
    const TOLERANT: u32 = 40;
    let tolerant =
        format!("{FIRST_MEMBER1}    clusterTolerations: [{{key: cluster.karmada.io/not-ready, operator: Exists}}]\n");
    let (tolerant, other) = (apps(1, &tolerant), apps(1, FIRST_MEMBER1).replace("app-{n}", "zz-{n}"));
    let scenario = format!(
        "name: '7612'\nduration: 3m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n  \
         resource-eviction-rate: 0.02\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{file: apps.yaml, count: {TOLERANT}}}, {{file: other.yaml, count: 1}}]\n\
         events:\n- {{at: 60s, cluster: member1, state: unreachable}}\nexpect:\n\
         - {{at: 55s, bindingsOn: {{cluster: member1, count: {}}}}}\n\
         - {{at: 110s, binding: default/zz-1-deployment, clusters: {{member2: 1}}}}\n\
         - {{from: 110s, bindingsOn: {{cluster: member1, count: {TOLERANT}}}}}\n\
         - {{decision: {{decision: Evicted, object: default/app-1-deployment, absent: true}}}}\n",
        TOLERANT + 1,
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("apps.yaml", &tolerant),
        ("other.yaml", &other),
    ];
    assert_held(&run(&Folder::new("historic-7612", &files).load().unwrap(), Some(1)));
}

/// Karmada's pull request 7129: the destination's health dated from before the move, and the old copy was removed
/// before the new replicas were ready.
#[test]
fn karmada_7129_a_destination_that_grows_counts_only_with_all_its_replicas() {
    let halves = "\x20   clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
";
    // The source cluster is ready, so replicas removed too early are missed.
    let taint = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: member1}\n\
                 spec: {taints: [{key: mine, effect: NoExecute}]}\n";
    let always_well = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\n\
        metadata: {name: any-replica-will-do}\nspec:\n  target: {apiVersion: apps/v1, kind: Deployment}\n  \
        customizations:\n    healthInterpretation:\n      luaScript: |\n        function InterpretHealth(observed)\n          \
        return (observed.status.availableReplicas or 0) > 0\n        end\n";
    let check = |name: &str, flag: &str, fewest: i64| {
        let scenario = format!(
            "name: {name}\nduration: 4m\nflags:\n  feature-gates: {{Failover: true}}\n  \
             enable-no-execute-taint-eviction: true\n{flag}clusters: [{{name: member1, replicaReadyAfter: 40s}}, \
             {{name: member2, replicaReadyAfter: 40s}}]\nmanifests: [health.yaml, {{file: apps.yaml, count: 1}}]\n\
             events:\n- {{at: 90s, apply: taint.yaml}}\nexpect:\n\
             - {{at: 85s, binding: default/app-1-deployment, clusters: {{member1: 2, member2: 2}}}}\n\
             - {{from: 85s, workload: Deployment default/app-1, readyReplicasMin: {fewest}}}\n\
             - {{binding: default/app-1-deployment, clusters: {{member2: 4}}, evictingFrom: []}}\n"
        );
        let files = [
            ("scenario.yaml", scenario.as_str()),
            ("apps.yaml", &apps(4, halves)),
            ("taint.yaml", taint),
            ("health.yaml", always_well),
        ];
        run(
            &Folder::new(&format!("historic-{name}"), &files).load().unwrap(),
            Some(1),
        )
    };
    assert_held(&check("7129", "", 4));
    // With Karmada's rule, two of four replicas are missing until the new ones are ready. This proves the test's
    // sensitivity.
    let report = check("7129-karmada", "  replacement-health: reported\n", 4);
    assert_eq!(
        report.expectations.iter().filter(|row| !row.held).count(),
        1,
        "{:?}",
        report.expectations
    );
}
