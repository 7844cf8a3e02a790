//! Examples of the documents, with their manifests as written.

use crate::support::{Folder, assert_held, root, run};

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

/// ClusterTaintPolicy of the proposal "Optimize Cluster Failover", unchanged.
pub(crate) const OPTIMIZED_TAINT: &str = r#"apiVersion: "policy.karmada.io/v1alpha1"
kind: "ClusterTaintPolicy"
metadata:
  name: "detect-cluster-not-ready"
spec:
  targetCluster:
    clusterNames:
    - "member1"
    - "member2"
  matchConditions:
  - conditionType: "Ready"
    operator: "In"
    statusValues:
    - "False"
    - "Unknown"
  taintsToAdd:
  - key: "cluster.karmada.io/not-ready"
    effect: PreferNoExecute
    addOnMatchSeconds: 300
    removeOnMismatchSeconds: 180
"#;

/// PropagationPolicy of the proposal "Optimize Cluster Failover", unchanged; `pureMode` is its spelling.
const OPTIMIZED_POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx-propagation
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: nginx
  placement:
    clusterAffinity:
      clusterNames:
      - member1
      - member2
  failover:
    cluster:
      pureMode: Directly
      tolerationSeconds: 100
";

/// PropagationPolicy of the proposal "Configurable cluster failover", unchanged.
const CONFIGURABLE_POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx-propagation
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  failover:
    cluster:
      purgeMode: Graciously
      gracePeriodSeconds: 100
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
";

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

#[test]
fn the_examples_of_the_optimized_proposal_work_as_written() {
    // The taint is added 300 s after Ready is False, at 6m30s, and tolerated for 100 s.
    let expect = "\
        - {from: 55s, until: 485s, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}}\n\
        - {at: 500s, binding: default/nginx-deployment, clusters: {member2: 2}}\n\
        - {at: 500s, workload: Deployment default/nginx, readyReplicas: {member1: 2, member2: 2}}\n\
        - {decision: {decision: Evicted, object: default/nginx-deployment, cluster: member1, reason: TaintUntolerated}}\n\
        - {binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: []}\n";
    let files = [
        ("taint.yaml", OPTIMIZED_TAINT),
        ("policy.yaml", OPTIMIZED_POLICY),
        ("nginx.yaml", NGINX),
    ];
    check("optimized", "optimized", &files, "", expect);
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
    // The taint is added after five minutes, at 6m30s, and the webhook adds tolerations of five more. The copy on
    // member2 fails, so that the old one is kept for the grace period of the policy.
    let fails = "- {at: 10m, cluster: member2, failureModes: [{mode: never-ready}]}\n";
    let expect = "\
        - {from: 55s, until: 11m20s, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}, \
        evictingFrom: []}\n\
        - {at: 12m10s, binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: [member1]}\n\
        - {at: 12m50s, binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: [member1]}\n\
        - {binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: []}\n\
        - {decision: {decision: Released, cluster: member1, reason: GracePeriodExceeded}}\n";
    let files = [("policy.yaml", CONFIGURABLE_POLICY), ("nginx.yaml", NGINX)];
    check("configurable", "configurable", &files, fails, expect);
}

/// The policy of the proposal "Application failover mechanism" with `propagateDeps`, as its text requires, and a shorter
/// delay.
const APPLICATION_POLICY: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx-propagation
spec:
  propagateDeps: true
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
    - apiVersion: apps/v1
      kind: StatefulSet
      name: mysql
  failover:
    application:
      preConditions:
        delaySeconds: 50
      decisionConditions:
        tolerationSeconds: 200
        healthyState:
        - Unhealthy
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
";

#[test]
fn the_documents_policy_leaves_and_stays_away_or_says_why_it_stays() {
    let health = root().join("examples/application-failover/health.yaml");
    let check = |name: &str, policy: &str, expect: &str| {
        let scenario = format!(
            "name: {name}\nduration: 14m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
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
    check("application", APPLICATION_POLICY, stays);
    let block = "    application:\n      blockPredecessorSeconds: 600\n";
    let leaves = "\
        - {at: 5m, binding: default/nginx-deployment, clusters: {member1: 2, member2: 2}, evictingFrom: []}\n\
        - {decision: {decision: Evicted, cluster: member1, reason: ApplicationFailure}}\n\
        - {from: 6m30s, binding: default/nginx-deployment, clusters: {member2: 2}, evictingFrom: [], worksIn: [member2]}\n";
    check(
        "application-block",
        &APPLICATION_POLICY.replace("    application:\n", block),
        leaves,
    );
}
