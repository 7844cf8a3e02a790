//! Examples of the documents, with their manifests as written.

use crate::support::{Folder, assert_held, example, root, run};

/// Two replicas of the workload that the documents propagate.
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

/// ClusterTaintPolicy of the proposal "Optimize Cluster Failover".
pub(crate) const OPTIMIZED_TAINT: &str = include_str!("../../../documents/accepted/optimized-248.yaml");

/// PropagationPolicy of the proposal "Optimize Cluster Failover"; `pureMode` is its spelling.
const OPTIMIZED_POLICY: &str = include_str!("../../../documents/refused/optimized-386.yaml");

/// PropagationPolicy of the proposal "Application failover mechanism".
const APPLICATION_POLICY: &str = include_str!("../../../documents/refused-by-admission/application-262.yaml");

/// Runs a scenario with a profile on member1 and member2. member1 is lost after a minute and not ready 30 s later.
fn check(profile: &str, name: &str, files: &[(&str, &str)], events: &str, expect: &str) {
    let manifests: Vec<_> = files.iter().map(|(file, _)| *file).collect();
    let scenario = format!(
        "name: {name}\nduration: 15m\nprofile: {profile}\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{}]\nevents:\n- {{at: 60s, cluster: member1, state: unreachable}}\n{events}expect:\n\
         - {{at: 55s, binding: default/nginx-deployment, clusters: {{member1: 2, member2: 2}}}}\n{expect}",
        manifests.join(", "),
    );
    let mut all = vec![("scenario.yaml", scenario.as_str())];
    all.extend(files);
    assert_held(&run(
        &Folder::new(&format!("documents-{name}"), &all).load().unwrap(),
        Some(1),
    ));
}

fn check_example(name: &str) {
    let scenario = example(name);
    for seed in 0..3 {
        assert_held(&run(&scenario, Some(seed)));
    }
}

#[test]
fn the_examples_of_the_optimized_proposal_work_as_written() {
    check_example("optimized");
}

#[test]
fn a_purge_mode_of_directly_keeps_to_one_copy() {
    // `pureMode` is a misprint for `purgeMode`, and an unknown field otherwise. The old copy on a lost cluster is given
    // up with the eviction.
    let policy = OPTIMIZED_POLICY.replace("pureMode", "purgeMode");
    let expect = "\
        - {from: 55s, until: 485s, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}}\n\
        - {decision: {decision: Evicted, object: default/nginx-deployment, cluster: member1, reason: TaintUntolerated}}\n\
        - {binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: []}\n";
    let files = [
        ("taint.yaml", OPTIMIZED_TAINT),
        ("policy.yaml", &policy),
        ("nginx.yaml", NGINX),
    ];
    check("optimized", "directly", &files, "", expect);
}

#[test]
fn a_workload_that_stays_on_a_lost_cluster_has_a_record_with_the_reason() {
    let (without, _) = OPTIMIZED_POLICY.split_once("  failover:").unwrap();
    let stays = |reason: &str| {
        format!(
            "- {{from: 55s, binding: default/nginx-deployment, clusters: {{member1: 2, member2: 2}}}}\n\
             - {{decision: {{decision: EvictionsWait, object: default/nginx-deployment, cluster: member1, \
             reason: {reason}}}}}\n- {{decision: {{decision: Evicted, absent: true}}}}\n"
        )
    };
    let files = [
        ("taint.yaml", OPTIMIZED_TAINT),
        ("policy.yaml", without),
        ("nginx.yaml", NGINX),
    ];
    check("optimized", "not-asked", &files, "", &stays("NoClusterFailover"));
    let hard = OPTIMIZED_TAINT.replace("PreferNoExecute", "NoExecute");
    let tolerant = format!("{without}    clusterTolerations:\n    - operator: Exists\n");
    let files = [
        ("taint.yaml", hard.as_str()),
        ("policy.yaml", &tolerant),
        ("nginx.yaml", NGINX),
    ];
    check("optimized", "tolerant", &files, "", &stays("ToleratedWithoutEnd"));
}

#[test]
fn the_example_of_the_configurable_proposal_works_as_written() {
    check_example("configurable");
}

#[test]
fn the_duplicated_example_of_the_overview_works_as_written() {
    check_example("classic");
}

#[test]
fn the_divided_example_of_the_overview_works_as_written() {
    let scenario = "\
name: divided
duration: 15m
profile: classic
clusters: [{name: member1}, {name: member2}]
manifests: [nginx.yaml]
events:
- {at: 60s, cluster: member1, state: unreachable}
expect:
- {from: 55s, until: 11m20s, binding: default/nginx-deployment, clusters: {member1: 1, member2: 2}}
- {decision: {decision: Evicted, object: default/nginx-deployment, cluster: member1, reason: TaintUntolerated}}
- {from: 12m10s, binding: default/nginx-deployment, clusters: {member2: 3}}
- {workload: Deployment default/nginx, readyReplicas: {member1: 1, member2: 3}}
";
    let files = [
        ("scenario.yaml", scenario),
        (
            "nginx.yaml",
            include_str!("../../../documents/accepted/overview-238.yaml"),
        ),
    ];
    assert_held(&run(&Folder::new("documents-divided", &files).load().unwrap(), Some(1)));
}

#[test]
fn the_documents_policy_leaves_and_stays_away_or_says_why_it_stays() {
    // As its text requires, dependencies follow. The delay of the policy, 5,000 s, is 83 minutes.
    let policy = APPLICATION_POLICY.replace("spec:\n", "spec:\n  propagateDeps: true\n");
    let health = root().join("examples/application-failover/health.yaml");
    let check = |name: &str, policy: &str, expect: &str| {
        let scenario = format!(
            "name: {name}\nduration: 100m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
             manifests: [{}, nginx.yaml, policy.yaml]\nevents:\n\
             - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready}}]}}\nexpect:\n{expect}",
            health.display()
        );
        let files = [
            ("scenario.yaml", scenario.as_str()),
            ("nginx.yaml", NGINX),
            ("policy.yaml", policy),
        ];
        assert_held(&run(
            &Folder::new(&format!("documents-{name}"), &files).load().unwrap(),
            Some(1),
        ));
    };
    let stays = "\
        - {from: 1m, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}, evictingFrom: []}\n\
        - {decision: {decision: EvictionsWait, cluster: member1, reason: WouldReturn}}\n\
        - {decision: {decision: Evicted, absent: true}}\n";
    check("application", &policy, stays);
    let block = "    application:\n      blockPredecessorSeconds: 600\n";
    let leaves = "\
        - {from: 1m, until: 85m, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}}\n\
        - {decision: {decision: Evicted, cluster: member1, reason: ApplicationFailure}}\n\
        - {from: 90m, binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: [], worksIn: [member2]}\n";
    check(
        "application-block",
        &policy.replace("    application:\n", block),
        leaves,
    );
}
