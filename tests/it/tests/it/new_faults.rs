//! One scenario for each fault of the world: it takes effect, and no promise is broken.

use crate::support::{Folder, assert_held, root, run};

const TWO: &str = "{name: member1}, {name: member2}";

/// Runs nginx on member clusters, three replicas in total; `rest` contains events and expectations.
fn check(name: &str, clusters: &str, rest: &str) {
    let example = root().join("examples/nginx-divided");
    let example = example.display();
    let scenario = format!(
        "name: {name}\nduration: 20m\ninvariants: true\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\nclusters: [{clusters}]\n\
         manifests: [{example}/taint-policy.yaml, {example}/nginx.yaml, {example}/policy.yaml]\n{rest}"
    );
    let report = run(
        &Folder::new(&format!("faults-{name}"), &[("scenario.yaml", &scenario)])
            .load()
            .unwrap(),
        Some(1),
    );
    assert_held(&report);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}

/// The replacement never becomes ready, so the grace period of ten minutes ends the eviction.
#[test]
fn a_lasting_step_of_the_wall_clock_in_either_direction_moves_no_grace_period() {
    let clusters = "{name: member1}, {name: member2, failureModes: [{mode: never-ready, workload: default/nginx}]}";
    for kind in ["clock-step-ahead", "clock-step-back"] {
        let rest = format!(
            "events:\n- {{at: 60s, drain: {{cluster: member1}}}}\n- {{at: 80s, fault: {{kind: {kind}, by: 1h}}}}\n\
             - {{at: 18m, cluster: member2, failureModes: []}}\n- {{at: 18m, undrain: member1}}\nexpect:\n\
             - {{from: 70s, until: 640s, binding: default/nginx-deployment, evictingFrom: [member1], \
             worksIn: [member1, member2]}}\n\
             - {{at: 650s, decision: {{decision: Released, absent: true}}}}\n\
             - {{at: 690s, decision: {{decision: Released, cluster: member1, reason: GracePeriodExceeded}}}}\n"
        );
        check(kind, clusters, &rest);
    }
}

/// The next leader is another process, which starts at the wall time after the step.
#[test]
fn a_step_of_the_wall_clock_before_a_change_of_leaders_moves_no_grace_period() {
    let clusters = "{name: member1}, {name: member2, failureModes: [{mode: never-ready, workload: default/nginx}]}";
    let takeovers = [
        ("leader", "fault: {kind: leader-change}"),
        ("restart", "kill-controller: '*', for: 20s"),
    ];
    for (kind, (name, takeover)) in ["clock-step-ahead", "clock-step-back"]
        .into_iter()
        .flat_map(|kind| takeovers.map(|takeover| (kind, takeover)))
    {
        let rest = format!(
            "events:\n- {{at: 60s, drain: {{cluster: member1}}}}\n- {{at: 80s, fault: {{kind: {kind}, by: 1h}}}}\n\
             - {{at: 2m, {takeover}}}\n- {{at: 18m, cluster: member2, failureModes: []}}\n\
             - {{at: 18m, undrain: member1}}\nexpect:\n\
             - {{from: 70s, until: 640s, binding: default/nginx-deployment, evictingFrom: [member1], \
             worksIn: [member1, member2]}}\n\
             - {{at: 650s, decision: {{decision: Released, absent: true}}}}\n\
             - {{at: 700s, decision: {{decision: Released, cluster: member1, reason: GracePeriodExceeded}}}}\n"
        );
        check(&format!("{name}-after-{kind}"), clusters, &rest);
    }
}

#[test]
fn a_process_that_gets_no_processor_at_its_start_evicts_nothing_for_it() {
    check(
        "starved-start",
        TWO,
        "events:\n- {at: 60s, fault: {kind: starved-start, for: 50s}}\n\
         - {at: 60s, cluster: member1, state: unreachable}\n- {at: 105s, cluster: member1, state: recover}\nexpect:\n\
         - {from: 30s, binding: default/nginx-deployment, clusters: {member1: 1, member2: 2}, evictingFrom: [], \
         worksIn: [member1, member2]}\n- {decision: {decision: Evicted, absent: true}}\n",
    );
}

#[test]
fn a_plugin_that_is_slow_without_failing_makes_no_cluster_unready() {
    check(
        "sluggish-plugin",
        TWO,
        "events:\n- {at: 60s, fault: {kind: sluggish-plugin, for: 3m}}\nexpect:\n\
         - {from: 30s, cluster: member1, ready: 'True'}\n- {from: 30s, cluster: member2, ready: 'True'}\n\
         - {decision: {decision: Evicted, absent: true}}\n",
    );
}

/// No event follows the recovery of the filter, so the workload must be tried again without one.
#[test]
fn a_workload_created_while_a_filter_is_faulty_is_placed_after_its_recovery() {
    let example = root().join("examples/own-scheduler");
    let filter = root().join("target/guests/require-label.wasm");
    for kind in ["lying-plugin", "failing-plugin", "slow-plugin"] {
        let scenario = format!(
            "name: faulty-filter\nduration: 3m\ninvariants: true\nclusters: [{{name: beta, labels: {{tier: gold}}}}, \
             {{name: delta, labels: {{tier: gold}}}}]\nmanifests: [{example}/policy.yaml]\nevents:\n\
             - {{at: 30s, plugins: [{{name: gold-only, wasm: {filter}, config: {{key: tier, value: gold}}}}]}}\n\
             - {{at: 55s, fault: {{kind: {kind}, for: 15s}}}}\n- {{at: 60s, apply: {example}/web-after.yaml}}\nexpect:\n\
             - {{from: 62s, until: 68s, binding: default/web-after-deployment, clusters: {{}}}}\n\
             - {{from: 100s, binding: default/web-after-deployment, clusters: {{beta: 1, delta: 1}}}}\n\
             - {{at: 110s, workload: Deployment default/web-after, readyReplicas: {{beta: 1, delta: 1}}}}\n",
            example = example.display(),
            filter = filter.display(),
        );
        let folder = Folder::new(&format!("faulty-filter-{kind}"), &[("scenario.yaml", &scenario)]);
        let report = run(&folder.load().unwrap(), Some(1));
        assert_held(&report);
        assert!(report.violations.is_empty(), "{kind}: {:#?}", report.violations);
    }
}

#[test]
fn a_work_that_was_created_anew_between_read_and_write_is_reported_correctly() {
    check(
        "recreate",
        TWO,
        "events:\n- {at: 60s, fault: {kind: recreate, resource: works}}\n\
         - {at: 61s, cluster: member1, failureModes: [{mode: never-ready, workload: default/nginx}]}\n\
         - {at: 3m, cluster: member1, failureModes: []}\nexpect:\n\
         - {at: 55s, binding: default/nginx-deployment, clusters: {member1: 1, member2: 2}}\n\
         - {at: 2m, workload: Deployment default/nginx, readyReplicas: {member1: 0, member2: 2}}\n\
         - {at: 5m, workload: Deployment default/nginx, readyReplicas: {member1: 1, member2: 2}}\n",
    );
}

#[test]
fn a_member_that_joins_again_under_its_name_gets_its_copy_again() {
    check(
        "rejoin",
        TWO,
        "events:\n- {at: 60s, fault: {kind: rejoin, cluster: member1}}\nexpect:\n\
         - {at: 59s, workload: Deployment default/nginx, readyReplicas: {member1: 1, member2: 2}}\n\
         - {at: 62s, workload: Deployment default/nginx, readyReplicas: {member1: 0, member2: 2}}\n\
         - {at: 90s, workload: Deployment default/nginx, readyReplicas: {member1: 1, member2: 2}}\n\
         - {decision: {decision: Released, absent: true}}\n- {decision: {decision: Withdrawn, absent: true}}\n",
    );
}

#[test]
fn a_person_who_writes_in_the_same_moment_delays_no_eviction() {
    check(
        "racing-write",
        TWO,
        "events:\n- {at: 60s, fault: {kind: racing-write, resource: resourcebindings}}\n\
         - {at: 60s, fault: {kind: racing-write, resource: clusters}}\n\
         - {at: 60s, cluster: member1, state: unreachable}\n- {at: 8m, cluster: member1, state: recover}\nexpect:\n\
         - {decision: {decision: Evicted, cluster: member1}}\n\
         - {at: 4m, binding: default/nginx-deployment, clusters: {member2: 3}}\n\
         - {at: 12m, binding: default/nginx-deployment, evictingFrom: []}\n",
    );
}

#[test]
fn a_target_that_dies_while_its_copy_is_judged_releases_nothing_until_it_is_back() {
    check(
        "target-loss",
        TWO,
        "events:\n- {at: 60s, fault: {kind: target-loss, after: 1, for: 3m}}\n\
         - {at: 65s, drain: {cluster: member1}}\n- {at: 15m, undrain: member1}\nexpect:\n\
         - {from: 68s, until: 4m, binding: default/nginx-deployment, evictingFrom: [member1], \
         worksIn: [member1, member2]}\n- {at: 3m, cluster: member2, ready: 'False'}\n\
         - {at: 4m, decision: {decision: Released, absent: true}}\n\
         - {at: 8m, binding: default/nginx-deployment, evictingFrom: [], worksIn: [member2]}\n",
    );
}
