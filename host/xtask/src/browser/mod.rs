//! HTML reports and the web console in headless Chromium: errors, layout, keyboard, contrast and structure, with pictures.
//!
//! `host/xtask/browser/check.cjs` checks pages, and `host/xtask/browser/live.cjs` a console that follows a failover.
//! Chromium is the package of the distribution; the packages of Node.js are installed into `target/tools/browser`.

mod console;
mod packages;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use self::console::Console;
use crate::sh;

/// Folder of reports and pictures.
const OUT: &str = "target/browser";
/// Export of a control plane for `bulkhead what-if`.
const EXPORT: &str = "host/xtask/browser/export";
/// Examples with a report: one with plugins, one with regions, and one with more clusters than lanes.
const EXAMPLES: [&str; 3] = ["nginx-divided", "two-regions", "fleet"];
/// Scenarios whose journals the console shows, each with a name for its pictures.
const RECORDED: [(&str, &str); 3] = [
    ("console", "examples/two-regions/scenario.yaml"),
    ("hostile", "host/xtask/browser/hostile.yaml"),
    ("thousand", "host/xtask/browser/thousand.yaml"),
];
/// Pages of the console, with filters that find an eviction and its binding.
const PAGES: [&str; 5] = ["", "timeline?decision=Evicted", "bindings", "plugins", "what-if"];

/// Makes the reports with `target/debug/bulkhead`, checks each page on two sizes of screen in two colour schemes, and
/// follows a failover in the console.
///
/// # Errors
///
/// A program is missing, or a page has a problem.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let chromium = packages::chromium()?;
    fs::create_dir_all(root.join(OUT)).with_context(|| format!("creating {OUT}"))?;
    let program = root.join("target/debug/bulkhead");
    let mut pages = reports(root, &program)?;
    let mut consoles = Vec::new();
    for (name, scenario) in RECORDED {
        let console = Console::of_scenario(root, &program, scenario, &format!("{OUT}/{name}"))?;
        pages.extend(PAGES.iter().map(|page| format!("{name}={}{page}", console.address)));
        consoles.push(console);
    }
    let mut checks = packages::node(root)?;
    checks
        .arg("host/xtask/browser/check.cjs")
        .arg(&chromium)
        .arg(OUT)
        .args(&pages);
    run(&mut checks)?;

    let live = Console::of_federation(root, &program, &format!("{OUT}/live"))?;
    let mut follow = packages::node(root)?;
    follow
        .arg("host/xtask/browser/live.cjs")
        .arg(&chromium)
        .arg(OUT)
        .arg(&live.address);
    follow
        .arg(&live.kubeconfig)
        .arg("examples/nginx-divided")
        .arg(live.process().to_string());
    run(&mut follow)
}

/// Makes the HTML reports. Returns their paths.
fn reports(root: &Path, program: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = Vec::new();
    for example in EXAMPLES {
        let page = format!("{OUT}/{example}.html");
        let scenario = format!("examples/{example}/scenario.yaml");
        sh::run(root, program, &["simulate", &scenario, "--report", &page])?;
        pages.push(page);
    }
    let page = format!("{OUT}/what-if.html");
    let gates = [
        "--feature-gates",
        "Failover=true",
        "--enable-no-execute-taint-eviction=true",
    ];
    let status = Command::new(program)
        .args(["what-if", EXPORT, "--down", "member1", "--report", &page])
        .args(gates)
        .current_dir(root)
        .status()
        .context("starting bulkhead what-if")?;
    // One of the workloads has no other place, which the report shows and the exit code says.
    if status.code() != Some(1) {
        bail!("bulkhead what-if {EXPORT} ended with {status} in place of 1");
    }
    pages.push(page);
    Ok(pages)
}

fn run(node: &mut Command) -> anyhow::Result<()> {
    let status = node
        .status()
        .context("starting node, which the browser step needs; install Node.js 20 or later")?;
    if !status.success() {
        bail!("pages have problems ({status}); the pictures are in {OUT}");
    }
    Ok(())
}
