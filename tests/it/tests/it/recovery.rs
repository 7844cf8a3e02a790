//! Restarts, wall clock steps and faults of the control plane change no deadline.

use crate::support::{Folder, TAINT_POLICY, assert_held, root, run};

fn check(name: &str, clusters: &str, rest: &str) {
    let examples = root().join("examples/nginx-divided");
    let examples = examples.display();
    let scenario = format!(
        "name: {name}\nduration: 16m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\nclusters: {clusters}\n\
         manifests: [taint-policy.yaml, {examples}/nginx.yaml, {examples}/policy.yaml]\n{rest}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
    ];
    let scenario = Folder::new(&format!("recovery-{name}"), &files).load().unwrap();
    assert_held(&run(&scenario, Some(1)));
}

const TWO: &str = "[{name: member1}, {name: member2}]";

#[test]
fn a_blip_evicts_nothing_with_or_without_a_change_of_leader() {
    for change in ["", "- {at: 101s, fault: {kind: leader-change}}\n"] {
        let rest = format!(
            "events:\n- {{at: 100s, cluster: member1, state: unreachable}}\n{change}\
             - {{at: 106s, cluster: member1, state: recover}}\n\
             expect:\n- {{decision: {{decision: Evicted, absent: true}}}}\n\
             - {{from: 60s, cluster: member1, ready: 'True'}}\n\
             - {{from: 60s, binding: default/nginx-deployment, clusters: {{member1: 1, member2: 2}}}}\n"
        );
        check(if change.is_empty() { "blip-control" } else { "blip" }, TWO, &rest);
    }
}

#[test]
fn a_lost_cluster_is_found_one_threshold_after_a_change_of_leader() {
    let rest = "events:\n- {at: 100s, cluster: member1, state: unreachable}\n- {at: 101s, fault: {kind: leader-change}}\n\
        expect:\n- {at: 125s, cluster: member1, ready: 'True'}\n- {at: 150s, cluster: member1, ready: 'False'}\n\
        - {at: 150s, binding: default/nginx-deployment, clusters: {member2: 3}}\n";
    check("lost", TWO, rest);
}

/// The replacement is never ready, so only the grace period of 10 minutes ends the eviction, which starts at 91 s.
const NEVER_READY: &str = "[{name: member1}, {name: member2, failureModes: [{mode: never-ready}]}]";

#[test]
fn a_step_of_the_wall_clock_neither_ends_nor_extends_a_grace_period() {
    for kind in ["clock-ahead", "clock-behind"] {
        let rest = format!(
            "events:\n- {{at: 60s, cluster: member1, state: unreachable}}\n\
             - {{at: 150s, fault: {{kind: {kind}, by: 1h, for: 90s}}}}\n\
             expect:\n- {{at: 95s, decision: {{decision: Evicted, cluster: member1}}}}\n\
             - {{at: 685s, decision: {{decision: Released, absent: true}}}}\n\
             - {{at: 700s, decision: {{decision: Released, cluster: member1, reason: GracePeriodExceeded}}}}\n"
        );
        check(kind, NEVER_READY, &rest);
    }
}

#[test]
fn a_step_of_the_wall_clock_ends_no_toleration() {
    // Lost at 1 m, tainted at 90 s, and tolerated for five minutes after that.
    let tolerant = "events:\n- {at: 10s, apply: tolerant.yaml}\n- {at: 60s, cluster: member1, state: unreachable}\n\
        - {at: 150s, fault: {kind: clock-ahead, by: 1h, for: 90s}}\n\
        expect:\n- {at: 385s, decision: {decision: Evicted, absent: true}}\n\
        - {at: 400s, decision: {decision: Evicted, cluster: member1}}\n";
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\n\
        metadata: {name: nginx-propagation, namespace: default}\nspec:\n\
        \x20 resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]\n\
        \x20 placement:\n    clusterAffinity: {clusterNames: [member1, member2]}\n\
        \x20   replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}\n\
        \x20   clusterTolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 300}]\n";
    let examples = root().join("examples/nginx-divided");
    let examples = examples.display();
    let scenario = format!(
        "name: tolerant\nduration: 10m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\nclusters: {TWO}\n\
         manifests: [taint-policy.yaml, {examples}/nginx.yaml, {examples}/policy.yaml]\n{tolerant}"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("tolerant.yaml", policy),
    ];
    let scenario = Folder::new("recovery-tolerant", &files).load().unwrap();
    assert_held(&run(&scenario, Some(1)));
}

#[test]
fn a_step_of_the_wall_clock_fails_no_application() {
    let examples = root().join("examples/application-failover");
    let examples = examples.display();
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\n\
        spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]\n  propagateDeps: true\n\
        \x20 failover: {application: {decisionConditions: {tolerationSeconds: 300}}}\n  placement:\n\
        \x20   clusterAffinity: {clusterNames: [member1, member2]}\n\
        \x20   spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n";
    let scenario = format!(
        "name: app\nduration: 10m\nclusters: {TWO}\n\
         manifests: [{examples}/health.yaml, {examples}/nginx.yaml, policy.yaml]\nevents:\n\
         - {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready}}]}}\n\
         - {{at: 150s, fault: {{kind: clock-ahead, by: 1h, for: 90s}}}}\n\
         expect:\n- {{at: 415s, decision: {{decision: Evicted, absent: true}}}}\n\
         - {{at: 440s, decision: {{decision: Evicted, cluster: member1, reason: ApplicationFailure}}}}\n"
    );
    let files = [("scenario.yaml", scenario.as_str()), ("policy.yaml", policy)];
    let scenario = Folder::new("recovery-application", &files).load().unwrap();
    assert_held(&run(&scenario, Some(1)));
}

#[test]
fn evictions_resume_soon_after_the_control_plane_takes_writes_again() {
    // Each fault fails one write. With a doubling delay after each failure, the eviction would take hours.
    let refused: String = (0..24)
        .map(|_| "- {at: 80s, fault: {kind: respond, code: 500, resource: resourcebindings}}\n")
        .collect();
    let rest = format!(
        "events:\n- {{at: 60s, cluster: member1, state: unreachable}}\n{refused}\
         expect:\n- {{at: 100s, decision: {{decision: Evicted, cluster: member1}}}}\n\
         - {{at: 100s, binding: default/nginx-deployment, clusters: {{member1: 1, member2: 2}}}}\n\
         - {{at: 8m30s, binding: default/nginx-deployment, clusters: {{member2: 3}}}}\n"
    );
    check("refused", TWO, &rest);
}

/// Random federation 62217: the eviction was neither called off nor ended, because the cluster that recovered had a
/// `NoSchedule` taint and no other cluster satisfied the spread constraints.
#[test]
fn a_copy_stays_beside_a_taint_that_keeps_new_copies_off_its_cluster() {
    let policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: \
                  default}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: web}], placement: \
                  {spreadConstraints: [{spreadByField: region, minGroups: 1, maxGroups: 1}, {spreadByField: cluster, \
                  minGroups: 2, maxGroups: 2}]}}}";
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {a: b}}";
    let closed = "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}, spec: {taints: \
                  [{effect: NoSchedule, key: example.com/maintenance}]}}";
    let scenario = format!(
        "name: closed\nduration: 8m\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1, region: north}}, {{name: member2, region: north}}, {{name: member3}}]\n\
         manifests: [taint-policy.yaml, {{objects: [{policy}, {settings}]}}]\nevents:\n\
         - {{at: 100s, apply: {{objects: [{closed}]}}}}\n- {{at: 3m, cluster: member1, state: unreachable}}\n\
         - {{at: 5m, cluster: member1, state: recover}}\nexpect:\n\
         - {{at: 4m30s, binding: default/web-configmap, evictingFrom: [member1], worksIn: [member1, member2]}}\n\
         - {{decision: {{decision: CalledOff, object: default/web-configmap, cluster: member1, reason: SourceRecovered}}}}\n\
         - {{binding: default/web-configmap, clusters: {{member1: 0, member2: 0}}, evictingFrom: []}}\n"
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
    ];
    assert_held(&run(&Folder::new("recovery-closed", &files).load().unwrap(), Some(1)));
}
