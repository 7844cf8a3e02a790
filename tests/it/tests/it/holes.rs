//! Regression tests for safety holes found in a review, with their numbers in that review.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, TAINT_POLICY, assert_held, root, run};

/// Runs nginx on member clusters; `rest` contains events and expectations. No invariant may be violated.
fn check(name: &str, clusters: &str, flags: &str, rest: &str) -> Report {
    let example = root().join("examples/nginx-duplicated");
    let example = example.display();
    let scenario = format!(
        "name: {name}\nduration: 25m\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true{flags}}}\nclusters: [{clusters}]\n\
         manifests: [taint-policy.yaml, {example}/nginx.yaml, policy.yaml]\n{rest}"
    );
    let policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: nginx, namespace: default}\n\
                  spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]\n  placement:\n    \
                  clusterAffinity: {clusterNames: [member1, member2]}\n    \
                  spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]\n";
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("policy.yaml", policy),
    ];
    let report = run(&Folder::new(&format!("holes-{name}"), &files).load().unwrap(), Some(1));
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    report
}

const TWO: &str = "{name: member1}, {name: member2}";

/// Hole 1: member2 is lost after it last reported Healthy, and then member1 is drained.
#[test]
fn a_stale_report_of_a_dead_target_releases_nothing() {
    check(
        "stale-report",
        TWO,
        "",
        "events:\n- {at: 100s, cluster: member2, state: unreachable}\n- {at: 112s, drain: {cluster: member1}}\n\
         - {at: 10m, cluster: member2, state: recover}\n- {at: 15m, undrain: member1}\nexpect:\n\
         - {from: 113s, until: 9m, binding: default/nginx-deployment, worksIn: [member1, member2]}\n",
    );
}

/// Hole 3: a probe fails during a change of leader.
#[test]
fn a_blip_at_a_change_of_leader_evicts_nothing() {
    check(
        "blip",
        TWO,
        "",
        "events:\n- {at: 100s, cluster: member1, state: unreachable}\n- {at: 101s, fault: {kind: leader-change}}\n\
         - {at: 106s, cluster: member1, state: recover}\nexpect:\n\
         - {from: 30s, binding: default/nginx-deployment, evictingFrom: [], worksIn: [member1, member2]}\n\
         - {decision: {decision: Evicted, absent: true}}\n",
    );
}

/// Hole 6: the wall clock steps ahead while an old copy waits for a replacement that never becomes ready.
#[test]
fn a_step_of_the_wall_clock_ends_no_grace_period() {
    check(
        "clock",
        "{name: member1}, {name: member2, failureModes: [{mode: never-ready, workload: default/nginx}]}",
        "",
        "events:\n- {at: 30s, drain: {cluster: member1}}\n\
         - {at: 50s, fault: {kind: clock-ahead, by: 1h, for: 90s}}\n- {at: 15m, cluster: member2, failureModes: []}\n\
         - {at: 15m, undrain: member1}\nexpect:\n\
         - {from: 45s, until: 10m, binding: default/nginx-deployment, evictingFrom: [member1], worksIn: [member1, member2]}\n",
    );
}

/// Hole 13: writes to bindings fail for minutes, as with an unavailable webhook.
#[test]
fn an_eviction_goes_on_soon_after_writes_get_through_again() {
    check(
        "back-off",
        TWO,
        "",
        "events:\n- {at: 60s, cluster: member1, state: unreachable}\n\
         - {at: 80s, fault: {kind: write-outage, resource: resourcebindings, for: 6m}}\n\
         - {at: 16m, cluster: member1, state: recover}\nexpect:\n\
         - {at: 8m30s, binding: default/nginx-deployment, clusters: {member2: 2}}\n",
    );
}

/// The application recovers while the status of its binding, or of its Works, cannot be written, so that they still call
/// it unhealthy.
#[test]
fn an_application_that_recovered_while_writes_failed_stays() {
    let example = root().join("examples/nginx-duplicated");
    let check = |resource: &str, toleration_s: u32| {
        let policy = format!(
            "{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {{name: nginx, namespace: \
             default}}, spec: {{resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: nginx}}], propagateDeps: \
             true, placement: {{spreadConstraints: [{{spreadByField: cluster, minGroups: 1, maxGroups: 1}}]}}, failover: \
             {{application: {{decisionConditions: {{tolerationSeconds: {toleration_s}}}, purgeMode: Gracefully}}}}}}}}"
        );
        let scenario = format!(
            "name: stale-health\nduration: 10m\ninvariants: true\nclusters: [{{name: member1, replicaReadyAfter: 9s}}, \
             {{name: member2}}]\nmanifests: [{}/nginx.yaml, {{objects: [{policy}]}}]\nevents:\n\
             - {{at: 50s, cluster: member1, failureModes: [{{mode: never-ready, workload: default/nginx}}]}}\n\
             - {{at: 55s, fault: {{kind: write-outage, resource: {resource}, for: 222s}}}}\n\
             - {{at: 60s, cluster: member1, failureModes: []}}\nexpect:\n\
             - {{from: 45s, binding: default/nginx-deployment, clusters: {{member1: 2}}}}\n",
            example.display()
        );
        let name = format!("holes-stale-health-{resource}");
        let report = run(
            &Folder::new(&name, &[("scenario.yaml", &scenario)]).load().unwrap(),
            Some(1),
        );
        assert_held(&report);
        assert!(report.violations.is_empty(), "{resource}: {:#?}", report.violations);
    };
    check("resourcebindings", 35);
    check("works", 150);
}

/// Hole 4: bindings of two kinds derive the same name.
#[test]
fn a_second_kind_whose_binding_has_the_same_name_takes_nothing_over() {
    let object = |version: &str| {
        format!("{{apiVersion: {version}, kind: Gateway, metadata: {{name: public, namespace: default}}, spec: {{}}}}")
    };
    let policy = |name: &str, version: &str, cluster: &str| {
        format!(
            "{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {{name: {name}, namespace: \
             default}}, spec: {{resourceSelectors: [{{apiVersion: {version}, kind: Gateway}}], placement: {{clusterAffinity: \
             {{clusterNames: [{cluster}]}}}}}}}}"
        )
    };
    let (istio, api) = ("networking.istio.io/v1", "gateway.networking.k8s.io/v1");
    let scenario = format!(
        "name: twins\nduration: 5m\ninvariants: true\nclusters: [{TWO}]\ncustomKinds:\n\
         - {{apiVersion: {istio}, kind: Gateway, plural: gateways}}\n- {{apiVersion: {api}, kind: Gateway, plural: gateways}}\n\
         manifests: [{{objects: [{}, {}]}}]\nevents:\n- {{at: 1m, apply: {{objects: [{}, {}]}}}}\nexpect:\n\
         - {{from: 30s, binding: default/public-gateway, worksIn: [member1]}}\n\
         - {{decision: {{decision: Removed, absent: true}}}}\n",
        object(istio),
        policy("istio", istio, "member1"),
        object(api),
        policy("api", api, "member2"),
    );
    let report = run(
        &Folder::new("holes-twins", &[("scenario.yaml", &scenario)])
            .load()
            .unwrap(),
        Some(1),
    );
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}

/// A cluster is well, and its status cannot be written: it gets no taint that evicts for the time in which its status was
/// wrong.
#[test]
fn a_cluster_that_answers_gets_no_taint_because_of_its_last_status() {
    let root = root();
    let scenario = format!(
        "name: stale-taint\nduration: 12m\ninvariants: true\nprofile: optimized\n\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{documents}/accepted/optimized-248.yaml, {documents}/refused/optimized-386.yaml, {nginx}]\nevents:\n\
         - {{at: 60s, cluster: member1, state: unreachable}}\n- {{at: 3m30s, cluster: member1, state: recover}}\n\
         - {{at: 3m30s, fault: {{kind: write-outage, resource: clusters, for: 186s}}}}\nexpect:\n\
         - {{from: 55s, binding: default/nginx-deployment, clusters: {{member1: 2, member2: 2}}}}\n",
        documents = root.join("tests/documents").display(),
        nginx = root.join("examples/optimized/nginx.yaml").display(),
    );
    let folder = Folder::new("holes-stale-taint", &[("scenario.yaml", &scenario)]);
    let report = run(&folder.load().unwrap(), Some(1));
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}

/// The same while its workloads leave, one each ten seconds: those that are still there stay.
#[test]
fn workloads_of_a_cluster_that_answers_stay_although_its_status_cannot_be_written() {
    let scenario = format!(
        "name: stale-readiness\nduration: 12m\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true, resource-eviction-rate: 0.1}}\n\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\n\
         manifests: [{example}/taint-policy.yaml, {{file: {example}/app.yaml, count: 20}}]\nevents:\n\
         - {{at: 60s, cluster: member1, state: unreachable}}\n\
         - {{at: 100s, fault: {{kind: write-outage, resource: clusters, for: 8m}}}}\n\
         - {{at: 2m, cluster: member1, state: recover}}\nexpect:\n\
         - {{at: 55s, bindingsOn: {{cluster: member1, count: 20}}}}\n\
         - {{from: 135s, bindingsOn: {{cluster: member1, count: 16}}}}\n",
        example = root().join("examples/failback").display(),
    );
    let folder = Folder::new("holes-stale-readiness", &[("scenario.yaml", &scenario)]);
    let report = run(&folder.load().unwrap(), Some(1));
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}
