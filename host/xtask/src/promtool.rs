//! Programs of the distribution's package `prometheus`, and the lint of a scrape and of the alerts with promtool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::sh;
use crate::test::OPTIMIZED_TESTS;

/// Folder that the package is unpacked into, without an installation and its service.
const TOOLS: &str = "target/tools/promtool";
/// Test that scrapes a running process, and gives the scrape to the promtool of `$PROMTOOL`.
const SCRAPE_TEST: &str = "every_metric_of_a_scrape";

/// Checks a scrape, and the alerts with their tests.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let promtool = packaged(root, "promtool")?;
    let monitoring = root.join("host/deploy/chart/monitoring");
    sh::run(&monitoring, &promtool, &["check", "rules", "alerts.yaml"])?;
    sh::run(&monitoring, &promtool, &["test", "rules", "alerts_test.yaml"])?;
    let promtool = promtool.to_str().context("the path of promtool is not UTF-8")?;
    let arguments = [OPTIMIZED_TESTS, &["--test", "cli", SCRAPE_TEST]].concat();
    sh::cargo_with(root, &arguments, &[("PROMTOOL", promtool)])
}

/// Returns a program of the package, or the one that the variable with its name in capitals names: `$PROMTOOL` or
/// `$PROMETHEUS`.
pub(crate) fn packaged(root: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let variable = name.to_uppercase();
    if let Some(given) = std::env::var_os(&variable) {
        return Ok(given.into());
    }
    let tools = root.join(TOOLS);
    let program = tools.join("usr/bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&tools).with_context(|| format!("creating {TOOLS}"))?;
    let ran = |name: &str, arguments: &[&str]| {
        let status = Command::new(name).args(arguments).current_dir(&tools).status();
        status.with_context(|| format!("starting {name}; without Debian's packages, set ${variable} to a program"))
    };
    if !ran("apt-get", &["download", "prometheus"])?.success() {
        bail!("apt-get download prometheus failed; run `apt-get update`, or set ${variable} to a program");
    }
    let package = fs::read_dir(&tools)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.context("apt-get download prometheus left no package")?;
    let name = package.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !ran("dpkg-deb", &["--extract", name, "."])?.success() {
        bail!("dpkg-deb --extract {name} failed in {TOOLS}");
    }
    Ok(program)
}
