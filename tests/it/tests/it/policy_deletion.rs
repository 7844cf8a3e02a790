//! Policies that are deleted while they are in charge of a workload.

use crate::support::{Folder, assert_held, run};

/// Returns a Deployment, and a policy with this metadata that places it.
fn web(metadata: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: default}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: web, image: web}}]}}\n---\n{}",
        policy("PropagationPolicy", metadata, "member1")
    )
}

fn policy(kind: &str, metadata: &str, cluster: &str) -> String {
    format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec:\n  resourceSelectors: \
         [{{apiVersion: apps/v1, kind: Deployment, name: web}}]\n  placement: {{clusterAffinity: {{clusterNames: \
         [{cluster}]}}}}\n"
    )
}

const WITH_FINALIZER: &str = "name: first, namespace: default, finalizers: [karmada.io/propagation-policy-controller]";
const WITHOUT_FINALIZER: &str = "name: first, namespace: default";

/// Runs a scenario in which the policy of a Deployment on member1 is deleted after a minute.
fn check(folder: &str, metadata: &str, events: &str, expect: &str) {
    let scenario = format!(
        "name: policy-deletion\nduration: 4m\nclusters: [{{name: member1}}, {{name: member2}}]\nmanifests: [web.yaml]\n\
         events:\n  - {{at: 60s, delete: {{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, namespace: \
         default, name: first}}}}\n{events}expect:\n{expect}"
    );
    let later = policy("PropagationPolicy", "name: first, namespace: default", "member2");
    let cluster_wide = policy("ClusterPropagationPolicy", "name: second", "member2");
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("web.yaml", &web(metadata)),
        ("later.yaml", &later),
        ("second.yaml", &cluster_wide),
    ];
    let loaded = Folder::new(folder, &files).load().unwrap();
    for seed in 0..3 {
        assert_held(&run(&loaded, Some(seed)));
    }
}

const STAYS: &str = "  - {from: 50s, binding: default/web-deployment, worksIn: [member1]}\n  \
                     - {at: 230s, workload: Deployment default/web, readyReplicas: {member1: 2}}\n";

#[test]
fn a_workload_stays_when_its_policy_is_deleted() {
    check("policy-deletion-finalizer", WITH_FINALIZER, "", STAYS);
    check("policy-deletion-plain", WITHOUT_FINALIZER, "", STAYS);
}

/// A policy of the same name is a new object only after the finalizer of the deleted one was removed.
#[test]
fn a_deleted_policy_can_be_created_again_and_claims_the_template() {
    let events = "  - {at: 120s, apply: later.yaml}\n";
    let expect = "  - {at: 110s, binding: default/web-deployment, worksIn: [member1]}\n  \
                  - {at: 230s, binding: default/web-deployment, worksIn: [member2]}\n";
    check("policy-deletion-again", WITH_FINALIZER, events, expect);
    check("policy-deletion-again-plain", WITHOUT_FINALIZER, events, expect);
}

#[test]
fn another_policy_takes_over_the_template_of_a_deleted_one() {
    let events = "  - {at: 40s, apply: second.yaml}\n";
    let expect = "  - {at: 55s, binding: default/web-deployment, worksIn: [member1]}\n  \
                  - {at: 230s, binding: default/web-deployment, worksIn: [member2]}\n";
    check("policy-deletion-second", WITH_FINALIZER, events, expect);
    check("policy-deletion-second-plain", WITHOUT_FINALIZER, events, expect);
}
