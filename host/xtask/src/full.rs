//! Checks that take too long for CI. Each step has a short form in `.ci/run` or in the tests.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use crate::test::OPTIMIZED_TESTS;
use crate::{
    BUILD, browser, docs, fuzz, guests, install, languages, mutants, mutations, promtool, registry, release, semver,
    sh, supply, upgrade,
};

/// Seeds of random federations, from seed 0 on.
const TRIAL_SEEDS: &str = "10000";
/// Seeds of each example, and of the fleet, whose runs are long.
const EXAMPLE_SEEDS: &str = "200";
const FLEET_SEEDS: &str = "5";
/// Seeds of each deliberate mistake.
const MUTATION_SEEDS: &str = "200";
/// Shard of the small changes of core: every tenth.
const MUTANTS_SHARD: &str = "0/10";
/// Cases of each property test.
const PROPERTY_CASES: &str = "20000";
/// Seconds of each fuzz target.
const FUZZ_SECONDS: u32 = 60;

/// Name of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Simulate 10,000 random federations, in the release profile.
    Trials,
    /// Simulate each example 200 times with all faults, the fleet 5 times, in the release profile.
    Examples,
    /// Find every deliberate mistake in 200 seeds.
    Mutations,
    /// Change every tenth condition or result of the decisions in core; its tests must find 95 %.
    Mutants,
    /// Check the reference pages and build the site with mdBook.
    Docs,
    /// Check HTML reports and the web console in headless Chromium; needs Node.js, npm and kubectl.
    Browser,
    /// Create, build and test a plugin of each kind in each language; needs Python, Node.js, Go and make.
    Languages,
    /// Lint a scrape of a running process and the alerts with promtool, of the Debian package or `$PROMTOOL`.
    Promtool,
    /// Raise each alert by a fault on real control planes and follow the runbook, with a Prometheus server of the Debian
    /// package or `$PROMETHEUS`; needs Go and kubectl.
    Alerts,
    /// Run the property tests with 20,000 cases each.
    Proptest,
    /// Run each fuzz target for a minute.
    Fuzz,
    /// Run the program for a long time: the example `soak`.
    Soak,
    /// Build the release for this machine twice, and compare the bytes.
    Release,
    /// Change the leader 20 times in a storm, on real control planes; needs Go and kubectl.
    Leaders,
    /// Publish the release of this commit, or of `$RELEASE`, to a registry, install it by chart and by kustomize, upgrade
    /// and roll back, on real control planes; needs root, Go, kubectl and the Git history.
    Install,
    /// Push, sign and pull plugins with oras, cosign and wkg through a registry with TLS and passwords, and on real
    /// control planes with faults of the registry in a storm; needs Go, kubectl and unshare.
    Registry,
    /// Upgrade from the previous version and roll back, on real control planes; needs Go, kubectl and the Git history.
    Upgrade,
    /// Check licences, bans and sources of dependencies with cargo-deny.
    SupplyChain,
    /// Compare the interfaces of published crates with the last release, with cargo-semver-checks.
    Semver,
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    fn run(self, root: &Path) -> anyhow::Result<()> {
        match self {
            Self::Trials => trials(root),
            Self::Examples => examples(root),
            Self::Mutations => sh::run(root, &mutations::build(root)?, &["--seeds", MUTATION_SEEDS]),
            Self::Mutants => mutants::check(root, MUTANTS_SHARD),
            Self::Docs => docs::build(root).map(|_| ()),
            Self::Browser => {
                guests::build(root)?;
                sh::cargo(root, BUILD)?;
                browser::check(root)
            }
            Self::Languages => languages::check(root),
            Self::Promtool => promtool::check(root),
            Self::Alerts => alerts(root),
            Self::Proptest => properties(root),
            Self::Fuzz => fuzz::check(root, &[], FUZZ_SECONDS),
            Self::Soak => sh::cargo(root, &["run", "--example", "soak"]),
            Self::Release => release::check(root),
            Self::Leaders => leaders(root),
            Self::Install => install::check(root),
            Self::Registry => registry::check(root),
            Self::Upgrade => upgrade::check(root),
            Self::SupplyChain => supply::check(root),
            Self::Semver => semver::check(root, None),
        }
    }
}

/// Lists the steps with their meaning.
pub(crate) fn list() -> String {
    let mut out = String::new();
    for step in Step::value_variants() {
        let help = step
            .to_possible_value()
            .and_then(|value| value.get_help().map(ToString::to_string));
        let _ = writeln!(out, "{:<12} {}", step.name(), help.unwrap_or_default());
    }
    out
}

/// Runs the steps, all without a selection, and prints a table of their results. A step that fails does not stop the
/// next one.
pub(crate) fn run(root: &Path, selected: &[Step]) -> ExitCode {
    let is_selected = |step: &&Step| selected.is_empty() || selected.contains(step);
    let mut results = Vec::new();
    for step in Step::value_variants().iter().filter(is_selected) {
        println!("\n== {}", step.name());
        let start = Instant::now();
        let result = step.run(root);
        if let Err(error) = &result {
            eprintln!("error: {}: {error:#}", step.name());
        }
        results.push((*step, result.is_ok(), start.elapsed()));
    }
    print!("\n{}", table(&results));
    if results.iter().all(|(_, passed, _)| *passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn table(results: &[(Step, bool, Duration)]) -> String {
    let mut out = format!("{:<12} {:<6} {:>9}\n", "STEP", "RESULT", "TIME");
    for (step, passed, took) in results {
        let (result, seconds) = (if *passed { "passed" } else { "failed" }, took.as_secs());
        let time = format!("{}m{:02}s", seconds / 60, seconds % 60);
        let _ = writeln!(out, "{:<12} {result:<6} {time:>9}", step.name());
    }
    out
}

/// Builds the guests and the program in the release profile. Returns the program.
fn program(root: &Path) -> anyhow::Result<PathBuf> {
    guests::build(root)?;
    sh::cargo(root, &[BUILD, &["--release"]].concat())?;
    Ok(root.join("target/release/bulkhead"))
}

fn trials(root: &Path) -> anyhow::Result<()> {
    let arguments = [
        "simulate",
        "--random",
        "target/random",
        "--seed",
        "0",
        "--seeds",
        TRIAL_SEEDS,
    ];
    sh::run(root, &program(root)?, &arguments)
}

fn leaders(root: &Path) -> anyhow::Result<()> {
    sh::cargo(root, &["xtask", "e2e", "run", "leaders change", "--long"])
}

fn alerts(root: &Path) -> anyhow::Result<()> {
    let prometheus = promtool::packaged(root, "prometheus")?;
    let prometheus = prometheus.to_str().context("the path of Prometheus is not UTF-8")?;
    sh::cargo(root, &["xtask", "e2e", "alerts", "--prometheus", prometheus])
}

/// Simulates every example. Names all that fail.
fn examples(root: &Path) -> anyhow::Result<()> {
    let (program, mut failures) = (program(root)?, Vec::new());
    for name in scenarios(root)? {
        println!("-- {name}");
        let file = format!("examples/{name}/scenario.yaml");
        let seeds = if name == "fleet" { FLEET_SEEDS } else { EXAMPLE_SEEDS };
        let arguments = ["simulate", &file, "--seeds", seeds, "--faults", "all"];
        if let Err(error) = sh::run(root, &program, &arguments) {
            failures.push(format!("{error:#}"));
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("; "));
    }
    Ok(())
}

/// Returns the folders of `examples` with a scenario, in order of name.
fn scenarios(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.join("scenario.yaml").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Runs the unit tests and the test programs that have property tests; a selection of packages would rebuild wasmtime
/// with other features.
fn properties(root: &Path) -> anyhow::Result<()> {
    let programs = [
        "--lib",
        "--test",
        "promises",
        "--test",
        "scheduling",
        "--test",
        "bounds",
    ];
    let arguments = [OPTIMIZED_TESTS, &["--quiet"], &programs].concat();
    sh::cargo_with(root, &arguments, &[("PROPTEST_CASES", PROPERTY_CASES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_step_with_its_result_and_time() {
        let results = [
            (Step::Trials, true, Duration::from_secs(754)),
            (Step::Docs, false, Duration::from_millis(900)),
        ];
        let expected = [
            "STEP         RESULT      TIME",
            "trials       passed    12m34s",
            "docs         failed     0m00s",
            "",
        ];
        assert_eq!(table(&results), expected.join("\n"));
    }

    #[test]
    fn the_list_describes_every_step() {
        let list = list();
        let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(
            names,
            [
                "trials",
                "examples",
                "mutations",
                "mutants",
                "docs",
                "browser",
                "languages",
                "promtool",
                "alerts",
                "proptest",
                "fuzz",
                "soak",
                "release",
                "leaders",
                "install",
                "registry",
                "upgrade",
                "supply-chain",
                "semver"
            ]
        );
        assert!(list.lines().all(|line| line.split_whitespace().count() > 3), "{list}");
    }

    #[test]
    fn every_example_with_a_scenario_is_simulated() {
        let names = scenarios(&crate::root()).unwrap();
        for example in ["fleet", "nginx-divided"] {
            assert!(names.contains(&example.to_owned()), "{names:?}");
        }
    }
}
