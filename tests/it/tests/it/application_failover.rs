//! Failover of applications that fail while their cluster is ready.

use crate::support::{Folder, assert_held, example, root, run};

/// Runs nginx on one of two clusters, never ready on member1 from 2m on, with this `failover.application`.
fn check(name: &str, application: &str, events: &str, expectations: &str) {
    let policy = format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: p, namespace: default}}\n\
         spec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: nginx}}]\n  propagateDeps: true\n\
         \x20 failover: {{application: {application}}}\n  placement:\n\
         \x20   clusterAffinity: {{clusterNames: [member1, member2]}}\n\
         \x20   spreadConstraints: [{{spreadByField: cluster, minGroups: 1, maxGroups: 1}}]\n"
    );
    let examples = root().join("examples/application-failover");
    let examples = examples.display();
    let scenario = format!(
        "name: {name}\nduration: 12m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{examples}/health.yaml, {examples}/nginx.yaml, policy.yaml]\nevents:\n\
         - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready}}]}}\n{events}expect:\n\
         - {{at: 1m, binding: default/nginx-deployment, clusters: {{member1: 3}}}}\n{expectations}"
    );
    let folder = Folder::new(name, &[("scenario.yaml", &scenario), ("policy.yaml", &policy)]);
    assert_held(&run(&folder.load().unwrap(), None));
}

#[test]
fn an_application_that_fails_moves_and_does_not_go_back() {
    for seed in 0..3 {
        assert_held(&run(&example("application-failover"), Some(seed)));
    }
}

#[test]
fn an_application_that_fits_nowhere_else_stays_and_goes_on_when_it_is_well_again() {
    for seed in 0..3 {
        assert_held(&run(&example("no-other-place"), Some(seed)));
    }
}

/// Runs nginx on member1, where it is never ready from 2m to 8m. Member2 has room for one of its three replicas.
/// `placement` and `purge_mode` are those of the policy.
fn check_without_place(name: &str, placement: &str, purge_mode: &str, expectations: &str) {
    let policy = format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: p, namespace: default}}\n\
         spec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: nginx}}]\n  propagateDeps: true\n\
         \x20 failover: {{application: {{decisionConditions: {{tolerationSeconds: 30}}, purgeMode: {purge_mode}}}}}\n\
         \x20 placement: {placement}\n"
    );
    let examples = root().join("examples/application-failover");
    let examples = examples.display();
    let capacity = |pods: u64| format!("capacity: {{nodes: 1, cpu: '64', memory: 256Gi, pods: {pods}}}");
    let (first, second) = (capacity(20), capacity(1));
    let scenario = format!(
        "name: {name}\nduration: 12m\nflags: {{graceful-eviction-timeout: 60s}}\n\
         clusters: [{{name: member1, {first}}}, {{name: member2, {second}}}]\n\
         manifests: [{examples}/health.yaml, {examples}/nginx.yaml, policy.yaml]\nevents:\n\
         - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready}}]}}\n\
         - {{at: 8m, cluster: member1, failureModes: []}}\nexpect:\n\
         - {{at: 1m, binding: default/nginx-deployment, clusters: {{member1: 3}}}}\n\
         - {{from: 1m, binding: default/nginx-deployment, worksIn: [member1]}}\n{expectations}\
         - {{at: 11m, workload: Deployment default/nginx, readyReplicas: {{member1: 3}}}}\n"
    );
    let folder = Folder::new(name, &[("scenario.yaml", &scenario), ("policy.yaml", &policy)]);
    assert_held(&run(&folder.load().unwrap(), None));
}

#[test]
fn an_application_on_its_only_feasible_cluster_waits_with_a_reason() {
    for purge_mode in ["Directly", "Gracefully", "Never"] {
        check_without_place(
            &format!("only-cluster-{}", purge_mode.to_lowercase()),
            "{clusterAffinity: {clusterNames: [member1]}}",
            purge_mode,
            "- {from: 1m, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n\
             - {decision: {decision: EvictionsWait, cluster: member1, reason: NoTargetCluster}}\n\
             - {decision: {decision: Evicted, absent: true}}\n",
        );
    }
}

#[test]
fn each_purge_mode_does_with_the_old_copy_what_its_name_says() {
    let tolerate = "decisionConditions: {tolerationSeconds: 30}";
    let ill_everywhere = "- {at: 2m, cluster: member2, failureModes: [{mode: never-ready}]}\n";
    check(
        "purge-gracefully-healthy",
        &format!("{{{tolerate}, purgeMode: Gracefully, gracePeriodSeconds: 300}}"),
        "",
        "- {at: 4m, binding: default/nginx-deployment, clusters: {member2: 3}, evictingFrom: [], worksIn: [member2]}\n\
         - {decision: {decision: Released, cluster: member1, reason: ReplacementHealthy, plugin: ResourceHealth}}\n",
    );
    check(
        "purge-gracefully-over",
        &format!("{{{tolerate}, purgeMode: Graciously, gracePeriodSeconds: 20}}"),
        ill_everywhere,
        "- {at: 2m45s, binding: default/nginx-deployment, clusters: {member2: 3}, evictingFrom: [member1]}\n\
         - {at: 2m58s, decision: {decision: Released, cluster: member1, reason: GracePeriodExceeded}}\n",
    );
    check(
        "purge-never",
        &format!("{{{tolerate}, purgeMode: Never}}"),
        "",
        "- {from: 3m, binding: default/nginx-deployment, clusters: {member2: 3}, evictingFrom: [member1], \
         worksIn: [member1, member2]}\n- {decision: {decision: Held, cluster: member1, reason: DeletionSuppressed}}\n\
         - {decision: {decision: Removed, cluster: member1, absent: true}}\n",
    );
    check(
        "purge-directly",
        &format!("{{{tolerate}, purgeMode: Immediately}}"),
        ill_everywhere,
        "- {at: 2m45s, binding: default/nginx-deployment, clusters: {member2: 3}, evictingFrom: [member1], \
         worksIn: [member2]}\n- {decision: {decision: Removed, cluster: member1}}\n",
    );
}

#[test]
fn karmada_3736_the_old_copy_waits_until_the_new_one_is_healthy() {
    check(
        "waits-for-health",
        "{preConditions: {healthyState: Healthy}, decisionConditions: {tolerationSeconds: 30}}",
        "- {at: 2m, cluster: member2, failureModes: [{mode: never-ready}]}\n- {at: 5m, cluster: member2, failureModes: []}\n",
        "- {from: 2m33s, until: 4m59s, binding: default/nginx-deployment, clusters: {member2: 3}, \
         evictingFrom: [member1], worksIn: [member1, member2]}\n\
         - {at: 5m30s, binding: default/nginx-deployment, evictingFrom: [], worksIn: [member2]}\n",
    );
}

#[test]
fn a_pause_holds_an_application_back_that_should_leave() {
    let pause = "apiVersion: bulkhead.dev/v1alpha1\nkind: EvictionPause\nmetadata: {name: freeze}\n\
                 spec: {namespaces: [default], reason: quarter-end}\n";
    Folder::new("app-paused", &[("freeze.yaml", pause)]);
    check(
        "app-paused",
        "{decisionConditions: {tolerationSeconds: 30}}",
        "- {at: 1m, apply: freeze.yaml}\n\
         - {at: 5m, delete: {apiVersion: bulkhead.dev/v1alpha1, kind: EvictionPause, name: freeze}}\n",
        "- {from: 1m, until: 4m59s, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n\
         - {at: 4m, decision: {decision: EvictionsWait, object: default/nginx-deployment, reason: EvictionPaused}}\n\
         - {at: 5m10s, binding: default/nginx-deployment, clusters: {member2: 3}}\n",
    );
}

#[test]
fn without_a_block_an_application_goes_back() {
    check(
        "no-block",
        "{decisionConditions: {tolerationSeconds: 30}}",
        "- {at: 4m, cluster: member1, failureModes: []}\n\
         - {at: 5m, cluster: member2, failureModes: [{mode: never-ready}]}\n",
        "- {at: 4m50s, binding: default/nginx-deployment, clusters: {member2: 3}}\n\
         - {at: 6m, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n",
    );
}

#[test]
fn an_application_that_never_was_healthy_is_left_alone_where_the_policy_says_so() {
    check(
        "never-settled",
        "{preConditions: {healthyState: Healthy}, decisionConditions: {tolerationSeconds: 30}}",
        "- {at: 1s, cluster: member1, failureModes: [{mode: never-ready}]}\n",
        "- {from: 1m, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n",
    );
}

#[test]
fn timers_go_on_from_where_they_were_when_everything_restarts() {
    check(
        "restart",
        "{decisionConditions: {tolerationSeconds: 120}}",
        "- {at: 2m50s, kill-controller: \"*\", for: 10s}\n- {at: 3m30s, kill-controller: \"*\", for: 5s}\n",
        "- {at: 3m58s, binding: default/nginx-deployment, clusters: {member1: 3}}\n\
         - {at: 4m10s, binding: default/nginx-deployment, clusters: {member2: 3}}\n\
         - {binding: default/nginx-deployment, clusters: {member2: 3}, evictingFrom: [], worksIn: [member2]}\n",
    );
}

#[test]
fn karmada_2989_a_lost_cluster_never_looks_like_a_failed_application() {
    check(
        "lost",
        "{decisionConditions: {tolerationSeconds: 30}}",
        "- {at: 100s, cluster: member1, state: unreachable}\n",
        "- {from: 1m, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n\
         - {at: 4m, cluster: member1, ready: \"False\"}\n",
    );
}

#[test]
fn a_cluster_scoped_application_fails_over_too() {
    let health = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: health}\n\
                  spec:\n  target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}\n  customizations:\n    \
                  healthInterpretation:\n      luaScript: |\n        function InterpretHealth(obj)\n          \
                  return obj.metadata.labels.state ~= \"broken\"\n        end\n";
    let role = |state: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: demo, labels: {{state: {state}}}}}\n\
             rules: []\n"
        )
    };
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: p}\nspec:\n  \
                  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: demo}]\n  \
                  propagateDeps: true\n  failover: {application: {decisionConditions: {tolerationSeconds: 30}, \
                  purgeMode: Never, blockPredecessorSeconds: 0}}\n  placement: {spreadConstraints: \
                  [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}\n";
    let scenario = "name: cluster-scoped\nduration: 4m\nclusters: [{name: member1}, {name: member2}]\n\
                    manifests: [health.yaml, role.yaml, policy.yaml]\nevents: [{at: 1m, apply: broken.yaml}]\nexpect:\n\
                    - {at: 55s, binding: demo-clusterrole, clusters: {member1: 0}}\n\
                    - {at: 85s, binding: demo-clusterrole, clusters: {member1: 0}}\n\
                    - {at: 95s, binding: demo-clusterrole, clusters: {member2: 0}, evictingFrom: [member1]}\n\
                    - {decision: {decision: Evicted, object: demo-clusterrole, cluster: member1, reason: ApplicationFailure}}\n";
    let files = [
        ("scenario.yaml", scenario),
        ("health.yaml", health),
        ("role.yaml", &role("fine")),
        ("broken.yaml", &role("broken")),
        ("policy.yaml", policy),
    ];
    assert_held(&run(&Folder::new("cluster-scoped", &files).load().unwrap(), None));
}

#[test]
fn a_profile_is_a_set_of_flags_and_flags_override_it() {
    let folder = root().join("examples/nginx-divided");
    let folder = folder.display();
    let scenario = |flags: &str, evicted_by: &str| {
        format!(
            "name: classic\nduration: 15m\nprofile: classic\nflags: {flags}\nclusters: [{{name: member1}}, {{name: member2}}]\n\
             manifests: [{folder}/nginx.yaml, {folder}/policy.yaml]\nevents:\n\
             - {{at: 60s, cluster: member1, state: unreachable}}\nexpect:\n\
             - {{at: 6m, binding: default/nginx-deployment, clusters: {{member1: 1, member2: 2}}}}\n\
             - {{at: {evicted_by}, binding: default/nginx-deployment, clusters: {{member2: 3}}}}\n"
        )
    };
    // Five minutes until the taint, and five more for the toleration that the webhook adds to every policy.
    let all = Folder::new("profile", &[("scenario.yaml", &scenario("{}", "13m"))]);
    assert_held(&run(&all.load().unwrap(), None));
    let flags = "{default-not-ready-toleration-seconds: 0}";
    let less = Folder::new("profile-less", &[("scenario.yaml", &scenario(flags, "8m"))]);
    assert_held(&run(&less.load().unwrap(), None));
}

/// Gives a Deployment an image that its only cluster cannot pull after two minutes, and corrects it at `fixed_at`. Without a
/// pre-check it leaves that cluster, as in Karmada, whose application failover evicts an application from every cluster
/// where it fails. `grace` is the grace period of the policy.
fn check_bad_image(name: &str, grace: &str, fixed_at: &str, expected: &str) {
    let nginx = std::fs::read_to_string(root().join("examples/application-failover/nginx.yaml")).unwrap();
    let with_image = |image: &str| nginx.replace("image: nginx", &format!("image: {image}"));
    let policy = format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: p, namespace: default}}\n\
         spec:\n  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: nginx}}]\n  \
         placement: {{clusterAffinity: {{clusterNames: [member1]}}}}\n\
         \x20 propagateDeps: true\n  failover: {{application: {{decisionConditions: {{tolerationSeconds: 30}}, \
         purgeMode: Gracefully, gracePeriodSeconds: {grace}}}}}\n"
    );
    let scenario = format!(
        "name: {name}\nduration: 12m\nflags: {{eviction-pre-check: none}}\n\
         clusters: [{{name: member1, unpullableImages: [bad]}}, {{name: member2}}]\n\
         manifests: [good.yaml, policy.yaml]\nevents:\n\
         - {{at: 2m, apply: bad.yaml}}\n- {{at: {fixed_at}, apply: fixed.yaml}}\nexpect:\n\
         - {{at: 1m, binding: default/nginx-deployment, clusters: {{member1: 3}}}}\n\
         - {{at: 3m, binding: default/nginx-deployment, clusters: {{}}, evictingFrom: [member1]}}\n\
         - {{from: 1m, binding: default/nginx-deployment, worksIn: [member1]}}\n\
         - {{decision: {{decision: Released, absent: true}}}}\n\
         - {{from: 8m, binding: default/nginx-deployment, clusters: {{member1: 3}}, evictingFrom: []}}\n\
         - {{from: 8m, workload: Deployment default/nginx, readyReplicas: {{member1: 3}}}}\n{expected}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("policy.yaml", policy.as_str()),
        ("good.yaml", &with_image("good")),
        ("bad.yaml", &with_image("bad")),
        ("fixed.yaml", &with_image("fixed")),
    ];
    assert_held(&run(&Folder::new(name, &files).load().unwrap(), None));
}

#[test]
fn an_application_that_failed_everywhere_gets_its_corrected_template() {
    let expected = "- {decision: {decision: CalledOff, cluster: member1, reason: LastPlace}}\n";
    check_bad_image("bad-image", "60", "5m", expected);
}

#[test]
fn a_corrected_template_does_not_wait_for_the_grace_period() {
    let expected = "\
        - {at: 5m55s, binding: default/nginx-deployment, clusters: {}, evictingFrom: [member1]}\n\
        - {from: 6m10s, binding: default/nginx-deployment, clusters: {member1: 3}, evictingFrom: []}\n\
        - {decision: {decision: CalledOff, cluster: member1, reason: TemplateChanged}}\n\
        - {decision: {decision: CalledOff, reason: LastPlace, absent: true}}\n";
    check_bad_image("corrected-image", "600", "6m", expected);
}

/// Widget in a custom kind whose health is its label, a Deployment, a StatefulSet of a namespace, and a ConfigMap that the
/// Deployment needs. `NS` is the namespace of the StatefulSet.
const SEVERAL_KINDS: &str = "\
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: widgets}
spec:
  target: {apiVersion: example.io/v1, kind: Widget}
  customizations:
    healthInterpretation:
      luaScript: |
        function InterpretHealth(object)
          return object.metadata.labels.state ~= 'broken'
        end
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}, data: {a: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: a, envFrom: [{configMapRef: {name: settings}}]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: a}]}}
---
{apiVersion: example.io/v1, kind: Widget, metadata: {name: gear, namespace: default, labels: {state: fine}}}
";

/// Propagates [`SEVERAL_KINDS`] with one policy. Each of them fails at another time on member1.
fn check_several_kinds(name: &str, policy: &str, namespace: &str) {
    let policy = format!(
        "apiVersion: policy.karmada.io/v1alpha1\n{policy}\nspec:\n  propagateDeps: true\n  resourceSelectors:\n  \
         - {{apiVersion: apps/v1, kind: Deployment}}\n  - {{apiVersion: apps/v1, kind: StatefulSet, name: db, namespace: {namespace}}}\n  \
         - {{apiVersion: example.io/v1, kind: Widget}}\n  - {{apiVersion: v1, kind: ConfigMap, name: settings}}\n  \
         failover: {{application: {{decisionConditions: {{tolerationSeconds: 30}}, purgeMode: Gracefully}}}}\n  \
         placement: {{spreadConstraints: [{{spreadByField: cluster, minGroups: 1, maxGroups: 1}}]}}\n"
    );
    let scenario = format!(
        "name: {name}\nduration: 12m\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         customKinds: [{{apiVersion: example.io/v1, kind: Widget, plural: widgets}}]\n\
         manifests: [all.yaml, policy.yaml]\nevents:\n\
         - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready, workload: default/web}}]}}\n\
         - {{at: 5m, cluster: member1, failureModes: [{{mode: never-ready, workload: {namespace}/db}}]}}\n\
         - {{at: 8m, apply: {{objects: [{{apiVersion: example.io/v1, kind: Widget, metadata: {{name: gear, \
         namespace: default, labels: {{state: broken}}}}}}]}}}}\nexpect:\n\
         - {{at: 1m, binding: default/web-deployment, clusters: {{member1: 2}}}}\n\
         - {{from: 1m, until: 5m30s, binding: {namespace}/db-statefulset, clusters: {{member1: 2}}}}\n\
         - {{from: 1m, until: 8m30s, binding: default/gear-widget, clusters: {{member1: 0}}}}\n\
         - {{from: 4m, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [], worksIn: [member2]}}\n\
         - {{from: 7m, binding: {namespace}/db-statefulset, clusters: {{member2: 2}}, evictingFrom: [], worksIn: [member2]}}\n\
         - {{from: 9m, binding: default/gear-widget, clusters: {{member2: 0}}}}\n\
         - {{from: 1m, binding: default/settings-configmap, clusters: {{member1: 0}}}}\n\
         - {{from: 4m, binding: default/settings-configmap, worksIn: [member1, member2]}}\n\
         - {{decision: {{decision: Evicted, object: default/web-deployment, cluster: member1, reason: ApplicationFailure}}}}\n\
         - {{decision: {{decision: Evicted, object: {namespace}/db-statefulset, cluster: member1, reason: ApplicationFailure}}}}\n\
         - {{decision: {{decision: Evicted, object: default/gear-widget, cluster: member1, reason: ApplicationFailure}}}}\n\
         - {{decision: {{decision: Evicted, object: default/settings-configmap, absent: true}}}}\n\
         - {{decision: {{decision: Evicted, cluster: member2, absent: true}}}}\n"
    );
    let all = SEVERAL_KINDS.replace("NS", namespace);
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("all.yaml", all.as_str()),
        ("policy.yaml", policy.as_str()),
    ];
    assert_held(&run(&Folder::new(name, &files).load().unwrap(), None));
}

/// A kind without a health interpreter, such as a ConfigMap, never fails. It goes where the workload needs it, and stays
/// where its own policy placed it.
#[test]
fn of_the_kinds_that_one_policy_selects_only_the_failed_application_leaves() {
    let metadata = "kind: ClusterPropagationPolicy\nmetadata: {name: p}";
    check_several_kinds("kinds-of-all-namespaces", metadata, "shop");
    let metadata = "kind: PropagationPolicy\nmetadata: {name: p, namespace: default}";
    check_several_kinds("kinds-of-one-namespace", metadata, "default");
}
