//! Invariants hold under injected faults.

use std::path::{Path, PathBuf};

use bulkhead_simulator::scenario;
use bulkhead_simulator::trial::{self, Base, DisruptionKind, TrialOptions, Trials};

use crate::standing::requested_return;
use crate::support::{Folder, TAINT_POLICY, assert_held, engines, root, try_run};

fn trials(base: Base, seeds: u64, faults: &str) -> Trials {
    let kinds = DisruptionKind::parse(faults).unwrap();
    trial::run(
        &TrialOptions {
            kinds,
            threads: 2,
            ..TrialOptions::new(base, 1, seeds, engines())
        },
        |_| {},
    )
    .unwrap()
}

#[track_caller]
fn check(base: Base, seeds: u64) {
    let label = format!("{base:?}");
    let trials = trials(base, seeds, "all");
    assert!(trials.failure.is_none(), "{label}: {:#?}", trials.failure);
    assert!(
        trials.decisions > 0 && trials.disruptions.values().sum::<u64>() > seeds,
        "{trials:?}"
    );
}

fn example(name: &str) -> PathBuf {
    root().join("examples").join(name).join("scenario.yaml")
}

/// CI runs a thousand of them with the program: `.ci/run`.
#[test]
fn random_federations_survive_whatever_goes_wrong() {
    let folder = Folder::new("random", &[]);
    check(Base::Random(folder.path().to_path_buf()), 60);
}

#[test]
fn examples_survive_whatever_goes_wrong() {
    for (name, seeds) in [("nginx-divided", 3), ("nginx-duplicated", 3), ("two-regions", 1)] {
        check(Base::Scenario(example(name)), seeds);
    }
}

/// The copy that stands in is needed until the one at home is healthy, with any fault on the way.
#[test]
fn requested_returns_survive_whatever_goes_wrong() {
    let scenario = requested_return("requested-trials", "12m", "", "");
    let folder = Folder::new(
        "requested-trials",
        &[("scenario.yaml", &scenario), ("taint-policy.yaml", TAINT_POLICY)],
    );
    check(Base::Scenario(folder.path().join("scenario.yaml")), 4);
}

#[test]
fn a_crash_before_or_after_any_write_breaks_no_promise() {
    let folder = Folder::new("every-write", &[("scenario.yaml", &small(""))]);
    let sweep = trial::sweep(&folder.path().join("scenario.yaml"), &engines(), 2).unwrap();
    assert!(sweep.writes > 30, "{sweep:?}");
    assert!(sweep.broken.is_empty(), "{:#?}", sweep.broken);
}

/// Returns a scenario with two clusters, one application and one loss.
fn small(flags: &str) -> String {
    let examples = root().join("examples/nginx-divided");
    let examples = Path::display(&examples);
    format!(
        "name: small\nduration: 5m\nflags: {{{flags}feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1}}, {{name: member2}}]\n\
         manifests: [{examples}/taint-policy.yaml, {examples}/nginx.yaml, {examples}/policy.yaml]\n\
         events: [{{at: 40s, cluster: member1, state: unreachable}}, {{at: 3m, cluster: member1, state: recover}}]\n"
    )
}

/// Karmada's rules, which purge without a replacement, violate an invariant. The written file reproduces the
/// violation.
#[test]
fn a_broken_promise_is_found_made_small_and_written_to_a_file() {
    let text = small(
        "eviction-pre-check: none, purge-without-replacement: after-grace-period, restore-recovered-source: never, \
         graceful-eviction-timeout: 30s, ",
    );
    // A policy that selects one cluster only.
    let text = text.replace("nginx-divided/policy.yaml", "no-other-place/policy.yaml");
    let folder = Folder::new("careless", &[("scenario.yaml", &text)]);
    let found = trials(
        Base::Scenario(folder.path().join("scenario.yaml")),
        200,
        "cluster-loss,compact,respond",
    );
    let failure = found.failure.expect("nothing was found");
    assert_eq!(
        failure.violations.first().map(|violation| violation.invariant),
        Some("S1"),
        "{failure:?}"
    );
    assert!(failure.parts.1 < failure.parts.0, "{failure:?}");
    let again = try_run(&scenario::load(failure.file.as_ref().unwrap()).unwrap(), None).unwrap();
    let listed = |violations: &[bulkhead_simulator::report::Violation]| violations.to_vec();
    assert_eq!(listed(&again.violations), listed(&failure.violations));
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
