//! Kubernetes events of an eviction: few writes, and the steps that an owner needs.

use bulkhead_simulator::report::Report;

use crate::support::{Folder, TAINT_POLICY, apps, assert_held, run};

const APPS: u64 = 20;
/// Member1 first, then member2.
const PLACEMENT: &str = "\x20   clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: second, clusterNames: [member2]}
";

/// Runs a federation whose workloads are on member1, with these settings, events and further expectations. They end on
/// `cluster`.
fn federation(name: &str, settings: &str, events: &str, cluster: &str, expect: &str) -> Report {
    let scenario = format!(
        "name: events\nduration: 6m\nflags:\n  feature-gates: {{Failover: true}}\n  \
         enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n{settings}\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [taint-policy.yaml, {{file: apps.yaml, count: {APPS}}}]\n{events}expect:\n\
         - {{bindingsOn: {{cluster: {cluster}, count: {APPS}}}}}\n{expect}",
    );
    let apps = apps(1, PLACEMENT);
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
        ("apps.yaml", apps.as_str()),
    ];
    let report = run(&Folder::new(name, &files).load().unwrap(), Some(1));
    assert_held(&report);
    report
}

const FAST: &str = "\x20 resource-eviction-rate: 1000\n";
const LOSS: &str = "events: [{at: 2m, cluster: member1, state: unreachable}]\n";

fn calm() -> Report {
    federation("events-calm", FAST, "", "member1", "")
}

fn lost(settings: &str, expect: &str) -> Report {
    federation("events-lost", &format!("{FAST}{settings}"), LOSS, "member2", expect)
}

/// Returns the expectation that every binding left member1 once.
fn all_recorded() -> String {
    let recorded =
        |app| format!("- {{binding: default/app-{app}-deployment, recorded: [Evicted member1, Released member1]}}\n");
    (1..=APPS).map(recorded).collect()
}

/// Steps that the owner of a Deployment finds at its object and in its record, and an operator at the cluster.
const STEPS: &str = "\
- {event: {reason: ScheduleBindingSucceed, name: app-1}}
- {event: {reason: EvictWorkloadFromClusterSucceed, name: app-1}}
- {event: {reason: EvictWorkloadFromClusterSucceed, name: app-1-deployment, absent: true}}
- {event: {reason: EvictionsQueued, name: member1}}
- {event: {reason: EvictionsCompleted, name: member1}}
- {event: {reason: TaintClusterSucceed, name: member1}}
";

/// Returns the number of writes to events and to records.
fn writes(report: &Report) -> [u64; 2] {
    ["events", "failoverrecords"].map(|plural| {
        let rows = report.writes.iter().filter(|row| row.resource.starts_with(plural));
        rows.map(|row| row.count).sum()
    })
}

#[test]
fn an_eviction_costs_four_writes_of_events_and_records_and_has_the_steps_that_an_owner_needs() {
    let expect = format!("{STEPS}{}", all_recorded());
    let ([calm, none], [lost, records]) = (writes(&calm()), writes(&lost("", &expect)));
    let (storm, of_cluster) = (lost.saturating_sub(calm), 8);
    assert_eq!(none, 0, "a record without an eviction");
    assert_eq!(records, 2 * APPS, "evicted with its first hold, and released");
    // Two of them are placement and release, at the template.
    assert!(
        storm >= 2 * APPS && storm <= 2 * APPS + of_cluster,
        "{storm} events for {APPS} evictions"
    );
}

#[test]
fn without_records_the_steps_are_events_at_the_binding_too() {
    let expect = "\
- {event: {reason: ScheduleBindingSucceed, name: app-1-deployment}}
- {event: {reason: EvictWorkloadFromClusterSucceed, name: app-1-deployment}}
- {binding: default/app-1-deployment, recorded: []}
";
    let ([calm, _], [lost, records]) = (writes(&calm()), writes(&lost("  failover-records: false\n", expect)));
    assert_eq!(records, 0);
    assert!(
        lost.saturating_sub(calm) >= 4 * APPS,
        "{lost} events for {APPS} evictions"
    );
}

#[test]
fn records_are_complete_after_a_restart_and_a_change_of_leaders_in_the_middle_of_evictions() {
    let events = "events:\n- {at: 2m, cluster: member1, state: unreachable}\n\
                  - {at: 2m45s, kill-controller: '*', for: 10s}\n- {at: 3m10s, fault: {kind: leader-change}}\n\
                  - {at: 3m15s, kill-controller: failoverRecord, for: 20s}\n";
    federation("events-restarts", "", events, "member2", &all_recorded());
}
