//! Kubernetes events of an eviction: few writes, and the steps that an owner needs.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, TAINT_POLICY, apps, assert_held, run};

const APPS: u64 = 20;
/// Member1 first, then member2.
const PLACEMENT: &str = "\x20   clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: second, clusterNames: [member2]}
";

/// Runs a federation whose workloads are on member1, which is lost or not.
fn federation(is_lost: bool) -> Report {
    let lost = "events: [{at: 2m, cluster: member1, state: unreachable}]\n";
    let scenario = format!(
        "name: events\nduration: 5m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n  \
         resource-eviction-rate: 1000\nclusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{file: apps.yaml, count: {APPS}}}]\n{}expect:\n\
         - {{bindingsOn: {{cluster: {}, count: {APPS}}}}}\n{}",
        if is_lost { lost } else { "" },
        if is_lost { "member2" } else { "member1" },
        if is_lost { STEPS } else { "" },
    );
    let apps = apps(1, PLACEMENT);
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("apps.yaml", apps.as_str()),
    ];
    let name = if is_lost { "events-lost" } else { "events-calm" };
    let report = run(&Folder::new(name, &files).load().unwrap(), Some(1));
    assert_held(&report);
    report
}

/// Steps that the owner of a Deployment finds at its object, and an operator at its binding.
const STEPS: &str = "\
- {event: {reason: ScheduleBindingSucceed, name: app-1}}
- {event: {reason: EvictWorkloadFromClusterSucceed, name: app-1}}
- {event: {reason: ScheduleBindingSucceed, name: app-1-deployment}}
- {event: {reason: EvictWorkloadFromClusterSucceed, name: app-1-deployment}}
- {event: {reason: EvictionsQueued, name: member1}}
- {event: {reason: EvictionsCompleted, name: member1}}
- {event: {reason: TaintClusterSucceed, name: member1}}
";

/// Returns the number of writes to events.
fn writes(report: &Report) -> u64 {
    let of_events = report.writes.iter().filter(|row| row.resource.starts_with("events"));
    of_events.map(|row| row.count).sum()
}

#[test]
fn an_eviction_costs_six_writes_of_events_and_has_the_steps_that_an_owner_needs() {
    let (calm, lost) = (writes(&federation(false)), writes(&federation(true)));
    let storm = lost.saturating_sub(calm);
    // Four of them are placement and release, at binding and template.
    let of_cluster = 8;
    assert!(
        storm >= 4 * APPS && storm <= 6 * APPS + of_cluster,
        "{storm} writes for {APPS} evictions"
    );
}
