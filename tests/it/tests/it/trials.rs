//! Things go wrong, and the promises hold.

use bulkhead::scenario;
use bulkhead::simulation::trial::{self, Sort, TrialOptions, Trials};

use crate::support::{Folder, assert_held, engines, root, try_run};

fn trials(file: &std::path::Path, seeds: u64, faults: &str) -> Trials {
    let scenario = scenario::load(file).unwrap();
    let sorts = Sort::parse(faults).unwrap();
    let options =
        TrialOptions { first_seed: 1, seeds, sorts, engines: engines(), file: file.to_path_buf(), threads: 2 };
    trial::run(&scenario, &options, |_| {}).unwrap()
}

fn check(example: &str, seeds: u64) {
    let trials = trials(&root().join("examples").join(example).join("scenario.yaml"), seeds, "all");
    assert!(trials.failure.is_none(), "{example}: {:#?}", trials.failure);
    assert!(trials.decisions > 0 && trials.troubles.values().sum::<u64>() > seeds, "{trials:?}");
}

#[test]
fn divided_replicas_survive_whatever_goes_wrong() {
    check("nginx-divided", 20);
}

#[test]
fn duplicated_copies_survive_whatever_goes_wrong() {
    check("nginx-duplicated", 20);
}

#[test]
fn spread_replicas_survive_whatever_goes_wrong() {
    check("two-regions", 10);
}

/// Karmada's rules, which purge without a replacement, break a promise; the file that is written breaks it again.
#[test]
fn a_broken_promise_is_found_made_small_and_written_to_a_file() {
    let examples = root().join("examples/nginx-divided");
    let examples = examples.display();
    let text = format!(
        "name: careless\nduration: 5m\nflags: {{feature-gates: {{Failover: true}}, enable-no-execute-taint-eviction: true, \
         allow-no-execute-taint-policy: true, eviction-pre-check: none, purge-without-replacement: after-grace-period, \
         restore-recovered-source: never, graceful-eviction-timeout: 30s}}\n\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{examples}/taint-policy.yaml, {examples}/nginx.yaml, {examples}/policy.yaml]\n"
    );
    let folder = Folder::new("careless", &[("scenario.yaml", &text)]);
    let found = trials(&folder.path().join("scenario.yaml"), 200, "cluster-loss");
    let failure = found.failure.expect("nothing was found");
    assert_eq!(failure.violations.first().map(|violation| violation.invariant), Some("S1"), "{failure:?}");
    assert!(failure.troubles.1 < failure.troubles.0 || failure.troubles.0 == 1, "{failure:?}");
    let again = try_run(&scenario::load(&failure.file).unwrap(), None).unwrap();
    let told = |violations: &[bulkhead::report::Violation]| violations.to_vec();
    assert_eq!(told(&again.violations), told(&failure.violations));
    assert!(!again.held());
}

#[test]
fn promises_are_looked_at_when_a_scenario_says_so() {
    let text = "name: quiet\nduration: 2m\nclusters: [{name: member1}, {name: member2}]\ninvariants: true\n\
                events:\n- {at: 20s, fault: {kind: leader-change}}\n- {at: 30s, fault: {kind: crash-after-write, for: 5s}}\n\
                expect: [{cluster: member1, ready: \"True\"}]\n";
    let report = try_run(&Folder::new("quiet", &[("scenario.yaml", text)]).load().unwrap(), None).unwrap();
    assert_held(&report);
    assert!(report.timeline.iter().any(|entry| entry.what == "goes wrong"));
}
