//! Override policies: objects that differ by member.

use crate::support::{Folder, assert_held, run};

/// A Deployment on both members.
const APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: default, labels: {app: app}}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: 'public.example/team/app:1'}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: app, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: app}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
";

/// Returns an OverridePolicy for clusters with the label `site: edge`.
fn policy(overriders: &str) -> String {
    format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {{name: mirror, namespace: default}}\n\
         spec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: app}}]\n  overrideRules:\n  - \
         targetCluster: {{labelSelector: {{matchLabels: {{site: edge}}}}}}\n    overriders: {overriders}\n"
    )
}

/// Runs a scenario in which member2 is at the edge.
fn check(folder: &str, manifests: &str, policy: &str, events: &str, expect: &str) {
    let scenario = format!(
        "name: overrides\nduration: 5m\nclusters: [{{name: member1}}, {{name: member2, labels: {{site: edge}}}}]\n\
         manifests: {manifests}\n{events}expect:\n{expect}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("app.yaml", APP),
        ("override.yaml", policy),
    ];
    let loaded = Folder::new(folder, &files).load().unwrap();
    for seed in 0..3 {
        assert_held(&run(&loaded, Some(seed)));
    }
}

const MIRROR: &str = "{imageOverrider: [{component: Registry, operator: replace, value: mirror.example}]}";
const MIRRORED: &str = "workload: Deployment default/app, images: {member1: ['public.example/team/app:1'], \
                        member2: ['mirror.example/team/app:1']}, readyReplicas: {member1: 1, member2: 1}";

#[test]
fn a_cluster_override_policy_is_applied_before_that_of_the_namespace() {
    let wide = policy("{plaintext: [{path: /spec/replicas, operator: replace, value: 2}]}")
        .replace("kind: OverridePolicy", "kind: ClusterOverridePolicy")
        .replace("name: mirror, namespace: default", "name: wide");
    let both = format!(
        "{wide}---\n{}",
        policy("{plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}")
    );
    let ready = |count: u32| {
        format!("- {{from: 2m, workload: Deployment default/app, readyReplicas: {{member1: 1, member2: {count}}}}}\n")
    };
    let manifests = "[app.yaml, override.yaml]";
    check("overrides-of-clusters", manifests, &wide, "", &ready(2));
    check("overrides-of-both", manifests, &both, "", &ready(3));
}

#[test]
fn a_member_gets_the_image_that_an_override_policy_names_for_it() {
    let expect = format!(
        "  - {{from: 1m, {MIRRORED}}}\n  - {{event: {{reason: ApplyOverridePolicySucceed, name: app}}}}\n  \
         - {{event: {{reason: ApplyOverridePolicyFailed, name: app, absent: true}}}}\n"
    );
    check(
        "overrides-first",
        "[override.yaml, app.yaml]",
        &policy(MIRROR),
        "",
        &expect,
    );
}

#[test]
fn a_policy_that_comes_and_goes_changes_the_works_that_exist() {
    let gone = "apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, namespace: default, name: mirror";
    let events = format!("events:\n  - {{at: 2m, apply: override.yaml}}\n  - {{at: 4m, delete: {{{gone}}}}}\n");
    let image = "['public.example/team/app:1']";
    let plain = format!("workload: Deployment default/app, images: {{member1: {image}, member2: {image}}}");
    let expect = format!(
        "  - {{at: 110s, {plain}}}\n  - {{at: 110s, event: {{reason: ApplyOverridePolicySucceed, absent: true}}}}\n  \
         - {{at: 3m30s, {MIRRORED}}}\n  - {{{plain}}}\n"
    );
    check("overrides-late", "[app.yaml]", &policy(MIRROR), &events, &expect);
}

#[test]
fn a_cluster_whose_override_fails_gets_no_object() {
    let remove = "{plaintext: [{path: /spec/template/spec/volumes, operator: remove}]}";
    let expect = "  - {at: 2m, workload: Deployment default/app, readyReplicas: {member1: 1}}\n  \
                  - {binding: default/app-deployment, worksIn: [member1]}\n  \
                  - {event: {reason: ApplyOverridePolicyFailed, name: app}}\n  \
                  - {event: {reason: SyncWorkFailed}}\n";
    check(
        "overrides-failed",
        "[override.yaml, app.yaml]",
        &policy(remove),
        "",
        expect,
    );
}
