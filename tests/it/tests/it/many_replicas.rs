//! Workloads with billions of replicas: they cost no more than a few hundred, and their numbers are exact.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, TAINT_POLICY, apps, assert_held, run};

/// Runs a Deployment of two billion replicas with weights 1 and 2 on members with capacity for so many pods.
fn check(name: &str, pods: u64, rest: &str) -> Report {
    let scenario = format!(
        "name: {name}\nduration: 25m\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\nclusters:\n\
         - {{name: member, count: 2, capacity: {{nodes: 3, cpu: '1000', memory: 1Ti, pods: {pods}}}}}\n\
         manifests: [taint-policy.yaml, {{file: app.yaml, count: 1}}]\n{rest}"
    );
    let placement = "    replicaScheduling:\n      replicaSchedulingType: Divided\n      \
                     replicaDivisionPreference: Weighted\n      weightPreference:\n        staticWeightList:\n        \
                     - {targetCluster: {clusterNames: [member1]}, weight: 1}\n        \
                     - {targetCluster: {clusterNames: [member2]}, weight: 2}\n";
    let app = apps(2_000_000_000, placement);
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("app.yaml", app.as_str()),
    ];
    let report = run(&Folder::new(name, &files).load().unwrap(), Some(1));
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    report
}

/// As in Karmada, a cluster gets no more than 2^30 replicas while another one can have them.
const DIVIDED: &str = "{member1: 926258176, member2: 1073741824}";

#[test]
fn billions_of_replicas_leave_a_lost_cluster_and_are_cleaned_up_in_it() {
    check(
        "billions-of-replicas",
        9_000_000_000,
        &format!(
            "events:\n- {{at: 100s, cluster: member1, state: unreachable}}\n- {{at: 12m, cluster: member1, state: recover}}\n\
             expect:\n\
             - {{at: 90s, binding: default/app-1-deployment, clusters: {DIVIDED}}}\n\
             - {{at: 90s, workload: Deployment default/app-1, readyReplicas: {DIVIDED}}}\n\
             - {{at: 11m, binding: default/app-1-deployment, clusters: {{member2: 2000000000}}}}\n\
             - {{at: 11m, workload: Deployment default/app-1, \
             readyReplicas: {{member1: 926258176, member2: 2000000000}}}}\n\
             - {{binding: default/app-1-deployment, clusters: {{member2: 2000000000}}, worksIn: [member2]}}\n\
             - {{workload: Deployment default/app-1, readyReplicas: {{member2: 2000000000}}}}\n"
        ),
    );
}

#[test]
fn replicas_without_room_stay_pending_and_are_counted() {
    let report = check(
        "replicas-without-room",
        330,
        &format!(
            "expect:\n\
             - {{binding: default/app-1-deployment, clusters: {DIVIDED}}}\n\
             - {{workload: Deployment default/app-1, readyReplicas: {{member1: 330, member2: 330}}}}\n"
        ),
    );
    assert_eq!(report.placements[0].replicas, 2_000_000_000);
}
