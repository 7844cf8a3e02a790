//! Affinity and anti-affinity between workloads, from a label of the template to the placement.

use crate::support::{Folder, assert_held, run};

const TOGETHER: &str = "workloadAffinity: {affinity: {groupByLabelKey: stack}}";
const APART: &str = "workloadAffinity: {antiAffinity: {groupByLabelKey: stack}}";
const ANY_ONE: &str = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]";

/// Returns a Deployment of the stack `shop`, and its policy with these fields of the placement.
fn workload(name: &str, placement: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\n\
         metadata: {{name: {name}, namespace: default, labels: {{stack: shop}}}}\nspec:\n  \
         replicas: 1\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}\n---\n\
         apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
         metadata: {{name: {name}, namespace: default}}\nspec:\n  \
         resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: {name}}}]\n  \
         placement: {{{placement}}}\n"
    )
}

/// Runs the workload `one`, which has one possible cluster, and 30 s later the workload `two`.
fn check(name: &str, gate: bool, one: &str, two: &str, rest: &str) {
    let scenario = format!(
        "name: {name}\nduration: 2m\nflags: {{feature-gates: {{WorkloadAffinity: {gate}}}}}\n\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\nmanifests: [one.yaml]\n\
         events:\n  - {{at: 30s, apply: two.yaml}}\n{rest}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("one.yaml", &workload("one", one)),
        ("two.yaml", &workload("two", two)),
    ];
    let loaded = Folder::new(&format!("workload-affinity-{name}"), &files)
        .load()
        .unwrap();
    for seed in 0..3 {
        assert_held(&run(&loaded, Some(seed)));
    }
}

#[test]
fn workloads_with_the_same_label_share_a_cluster() {
    let one = format!("clusterAffinity: {{clusterNames: [member3]}}, {TOGETHER}");
    let two = format!("{ANY_ONE}, {TOGETHER}");
    let expect = "expect:\n  - {at: 25s, binding: default/one-deployment, clusters: {member3: 1}}\n  \
                  - {binding: default/two-deployment, clusters: {member3: 1}}\n";
    check("together", true, &one, &two, expect);
}

#[test]
fn without_the_gate_the_label_has_no_effect() {
    let one = format!("clusterAffinity: {{clusterNames: [member3]}}, {TOGETHER}");
    let two = format!("{ANY_ONE}, {TOGETHER}");
    let expect = "expect:\n  - {at: 25s, binding: default/one-deployment, clusters: {member3: 1}}\n  \
                  - {binding: default/two-deployment, clustersOneOf: [{member1: 1}, {member2: 1}]}\n";
    check("gate-off", false, &one, &two, expect);
}

#[test]
fn a_workload_without_a_cluster_is_placed_when_it_leaves_its_group() {
    let both = format!("clusterAffinity: {{clusterNames: [member1]}}, {APART}");
    let rest = "  - {at: 1m, apply: {objects: [{apiVersion: apps/v1, kind: Deployment, \
                metadata: {name: two, namespace: default, labels: {stack: blog}}, spec: {replicas: 1}}]}}\nexpect:\n  \
                - {at: 25s, binding: default/one-deployment, clusters: {member1: 1}}\n  \
                - {at: 55s, binding: default/two-deployment, clusters: {}}\n  \
                - {binding: default/two-deployment, clusters: {member1: 1}}\n";
    check("apart", true, &both, &both, rest);
}
