//! Objects on the way from an embedded control plane to its members.

use std::fs;

use super::{Program, folder, has_kubectl, root};

/// Sends the kind `Widget` to every member, and widgets and the Deployment `web` to member1.
const POLICIES: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: definitions}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: widgets.example.io}]
  placement: {}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: objects, namespace: default}
spec:
  resourceSelectors: [{apiVersion: example.io/v1, kind: Widget}, {apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
";

/// Replaces the registry of images on member1.
const OVERRIDE: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: mirror.example}]}
";

/// Requests that `web` is scheduled again.
const REBALANCER: &str = "\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
";

/// Writes a manifest to the folder of a control plane and applies it.
fn apply(embedded: &Program, name: &str, manifest: &str) -> String {
    let path = embedded.folder.join(name);
    fs::write(&path, manifest).unwrap();
    embedded.kubectl_output(&["apply", "-f", &path.display().to_string()])
}

/// Returns the output of `kubectl get`; empty if it fails.
fn get(embedded: &Program, arguments: &[&str]) -> String {
    let output = embedded.kubectl(&[&["get"], arguments].concat());
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn custom_resources_overrides_and_rebalancers_work_as_with_karmada() {
    if !has_kubectl("custom_resources_overrides_and_rebalancers_work_as_with_karmada") {
        return;
    }
    let mut embedded = Program::start(&folder("propagation"), &["--members", "2"]);
    embedded.kubectl_output(&["wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s"]);
    apply(&embedded, "policies.yaml", POLICIES);
    apply(&embedded, "override.yaml", OVERRIDE);
    let definition = root().join("tests/kubectl/definition.yaml");
    embedded.kubectl_output(&["apply", "-f", &definition.display().to_string()]);
    let widget = root().join("tests/kubectl/widget-one.yaml");
    embedded.kubectl_output(&[
        "wait",
        "--for=condition=Established",
        "crd/widgets.example.io",
        "--timeout=60s",
    ]);
    embedded.kubectl_output(&["apply", "-f", &widget.display().to_string()]);
    embedded.kubectl_output(&["create", "deployment", "web", "--image=public.example/team/web:1"]);

    embedded.until("the member serves the widget", |embedded| {
        get(
            embedded,
            &[
                "--context",
                "member1",
                "widget",
                "widget",
                "-o",
                "jsonpath={.spec.size}",
            ],
        ) == "3"
    });
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    embedded.until("the member has the image of its registry", |embedded| {
        get(embedded, &["--context", "member1", "deployment", "web", "-o", image]) == "mirror.example/team/web:1"
    });
    let others = get(
        &embedded,
        &["--context", "member2", "widgets,deployments", "-o", "name"],
    );
    assert_eq!(others, "", "the policy does not select member2");
    assert_eq!(
        get(&embedded, &["deployment", "web", "-o", image]),
        "public.example/team/web:1"
    );
    embedded.until("an event names the override policy", |embedded| {
        get(embedded, &["events", "-o", "jsonpath={.items[*].reason}"]).contains("ApplyOverridePolicySucceed")
    });

    apply(&embedded, "rebalancer.yaml", REBALANCER);
    embedded.until("the workload was scheduled again", |embedded| {
        let result = "jsonpath={.status.observedWorkloads[0].result}";
        get(embedded, &["workloadrebalancer", "again", "-o", result]) == "Successful"
            && !get(
                embedded,
                &["rb", "web-deployment", "-o", "jsonpath={.spec.rescheduleTriggeredAt}"],
            )
            .is_empty()
    });
    let refused = OVERRIDE.replace("overrideRules:", "targetCluster: {}\n  overrideRules:");
    let path = embedded.folder.join("refused.yaml");
    fs::write(&path, refused).unwrap();
    let output = embedded.kubectl(&["apply", "-f", &path.display().to_string()]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("overrideRules"),
        "{message}"
    );
    assert_eq!(embedded.stop(), Some(0));
}

#[test]
fn a_rollout_on_a_member_has_a_history_and_is_undone() {
    if !has_kubectl("a_rollout_on_a_member_has_a_history_and_is_undone") {
        return;
    }
    let mut embedded = Program::start(&folder("rollout"), &["--members", "1"]);
    embedded.kubectl_output(&["wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s"]);
    let on_member = |embedded: &Program, arguments: &[&str]| {
        embedded.kubectl_output(&[&["--context", "member1"], arguments].concat())
    };
    on_member(&embedded, &["create", "deployment", "web", "--image=nginx:1"]);
    on_member(&embedded, &["set", "image", "deployment/web", "nginx=nginx:2"]);
    embedded.until("there are two revisions", |embedded| {
        let history = on_member(embedded, &["rollout", "history", "deployment/web"]);
        history.lines().filter(|line| line.starts_with(['1', '2'])).count() == 2
    });
    on_member(&embedded, &["rollout", "undo", "deployment/web"]);
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(
        get(&embedded, &["--context", "member1", "deployment", "web", "-o", image]),
        "nginx:1"
    );
    embedded.until("the undone revision is the third", |embedded| {
        let history = on_member(embedded, &["rollout", "history", "deployment/web"]);
        history.lines().any(|line| line.starts_with('3')) && !history.lines().any(|line| line.starts_with('1'))
    });
    assert_eq!(embedded.stop(), Some(0));
}
