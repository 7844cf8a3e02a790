//! Dependencies of workloads: shared ones, late ones, and ones that are no longer referenced.

use crate::support::{Folder, assert_held, run};

/// Returns a Deployment on one cluster that refers to these ConfigMaps, and its policy.
fn workload(name: &str, cluster: &str, needs: &[&str]) -> String {
    let sources: Vec<_> = needs
        .iter()
        .map(|name| format!("{{configMapRef: {{name: {name}}}}}"))
        .collect();
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: \
         {{containers: [{{name: c, image: i, envFrom: [{}]}}]}}\n---\napiVersion: policy.karmada.io/v1alpha1\nkind: \
         PropagationPolicy\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  propagateDeps: true\n  \
         resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: {name}}}]\n  placement: {{clusterAffinity: \
         {{clusterNames: [{cluster}]}}}}\n---\n",
        sources.join(", ")
    )
}

fn settings(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{a: b}}\n")
}

/// Runs a scenario of two Deployments that share `settings`; the second one also needs `late`.
fn check(folder: &str, head: &str, expect: &str) {
    let scenario = format!(
        "name: dependencies\nduration: 4m\nclusters: [{{name: member1}}, {{name: member2}}]\nmanifests: [objects.yaml]\n\
         {head}expect:\n{expect}"
    );
    let objects = workload("one", "member1", &["settings"])
        + &workload("two", "member2", &["settings", "late"])
        + &settings("settings");
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("objects.yaml", &objects),
        ("late.yaml", &settings("late")),
    ];
    let loaded = Folder::new(folder, &files).load().unwrap();
    for seed in 0..3 {
        assert_held(&run(&loaded, Some(seed)));
    }
}

const DELETE_TWO: &str =
    "  - {at: 2m, delete: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: two}}\n";

#[test]
fn what_two_workloads_need_goes_with_the_last_of_them() {
    let head = format!(
        "events:\n  - {{at: 65s, delete: {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: one}}}}\n{DELETE_TWO}"
    );
    let expect = "  - {at: 50s, binding: default/settings-configmap, worksIn: [member1, member2]}\n  \
                  - {at: 110s, binding: default/settings-configmap, worksIn: [member2]}\n  \
                  - {at: 110s, decision: {decision: Unbound, object: default/settings-configmap, absent: true}}\n  \
                  - {decision: {decision: Unbound, object: default/settings-configmap, reason: NotDependedOn}}\n  \
                  - {decision: {decision: Removed, object: default/settings-configmap, cluster: member2}}\n  \
                  - {decision: {decision: Removed, object: default/two-deployment, cluster: member2}}\n";
    check("dependencies-shared", &head, expect);
}

#[test]
fn what_comes_late_follows_and_a_killed_distributor_cleans_up_when_it_is_back() {
    let head = format!(
        "events:\n  - {{at: 30s, apply: late.yaml}}\n  - {{at: 110s, kill-controller: dependenciesDistributor, for: 30s}}\n\
         {DELETE_TWO}"
    );
    let expect = "  - {at: 25s, decision: {decision: Bound, object: default/late-configmap, absent: true}}\n  \
                  - {at: 50s, binding: default/late-configmap, worksIn: [member2]}\n  \
                  - {at: 135s, decision: {decision: Unbound, object: default/late-configmap, absent: true}}\n  \
                  - {decision: {decision: Removed, object: default/late-configmap, cluster: member2}}\n  \
                  - {binding: default/settings-configmap, worksIn: [member1]}\n";
    check("dependencies-late", &head, expect);
}

#[test]
fn without_the_gate_nothing_follows() {
    let head = format!("flags: {{feature-gates: {{PropagateDeps: false}}}}\nevents:\n{DELETE_TWO}");
    let expect = "  - {decision: {decision: Bound, reason: Dependency, absent: true}}\n  \
                  - {decision: {decision: Removed, object: default/two-deployment, cluster: member2}}\n";
    check("dependencies-off", &head, expect);
}
