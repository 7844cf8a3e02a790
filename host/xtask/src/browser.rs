//! HTML reports and the web console in headless Chromium: errors, layout, keyboard, contrast and structure, with pictures.
//!
//! `host/xtask/browser/check.cjs` makes the checks. Chromium is the package of the distribution; the packages of
//! Node.js are installed into `target/tools/browser`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

use crate::sh;

/// Packages of Node.js: control of the browser, and rules of accessibility.
const PACKAGES: [(&str, &str); 2] = [("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];
/// Folder of the packages.
const TOOLS: &str = "target/tools/browser";
/// Folder of reports and pictures.
const OUT: &str = "target/browser";
/// Names of the program in distributions.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Export of a control plane for `bulkhead what-if`.
const EXPORT: &str = "host/xtask/browser/export";
/// Examples with a report: one with plugins, one with regions, and one with more clusters than lanes.
const EXAMPLES: [&str; 3] = ["nginx-divided", "two-regions", "fleet"];

/// Example whose journal the console shows.
const RECORDED: &str = "two-regions";
/// Pages of the console, with a filter that finds an eviction.
const CONSOLE: [&str; 4] = ["", "timeline?decision=Evicted", "bindings", "plugins"];

/// Makes the reports with `target/debug/bulkhead`, and checks each on two sizes of screen in two colour schemes.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let chromium = chromium()?;
    install_packages(root)?;
    fs::create_dir_all(root.join(OUT)).with_context(|| format!("creating {OUT}"))?;
    let program = root.join("target/debug/bulkhead");
    let mut pages = Vec::new();
    for example in EXAMPLES {
        let page = format!("{OUT}/{example}.html");
        sh::run(
            root,
            &program,
            &[
                "simulate",
                &format!("examples/{example}/scenario.yaml"),
                "--report",
                &page,
            ],
        )?;
        pages.push(page);
    }
    let page = format!("{OUT}/what-if.html");
    let gates = [
        "--feature-gates",
        "Failover=true",
        "--enable-no-execute-taint-eviction=true",
    ];
    sh::run(
        root,
        &program,
        &[&["what-if", EXPORT, "--down", "member1", "--report", &page], &gates[..]].concat(),
    )?;
    pages.push(page);
    let (_console, address) = console(root, &program)?;
    pages.extend(CONSOLE.iter().map(|page| format!("{address}{page}")));

    let status = Command::new("node")
        .arg("host/xtask/browser/check.cjs")
        .arg(chromium)
        .arg(OUT)
        .args(&pages)
        .env("NODE_PATH", root.join(TOOLS).join("node_modules"))
        .current_dir(root)
        .status()
        .context("starting node, which the browser step needs; install Node.js 20 or later")?;
    if !status.success() {
        bail!("the reports have problems ({status}); the pictures are in {OUT}");
    }
    Ok(())
}

/// Console that is stopped when it is dropped.
struct Console(Child);

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the console over the journal of an example. Returns it with its address.
fn console(root: &Path, program: &Path) -> anyhow::Result<(Console, String)> {
    let journal = format!("{OUT}/journal");
    let _ = fs::remove_dir_all(root.join(&journal));
    let scenario = format!("examples/{RECORDED}/scenario.yaml");
    sh::run(root, program, &["simulate", &scenario, "--journal", &journal])?;
    let child = Command::new(program)
        .args(["console", "--journal", &journal, "--bind-address", "127.0.0.1:0"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn();
    let mut console = Console(child.context("starting bulkhead console")?);
    let out = console.0.stdout.take().context("bulkhead console has no output")?;
    let mut line = String::new();
    BufReader::new(out)
        .read_line(&mut line)
        .context("reading the address of the console")?;
    let address = line
        .trim()
        .strip_prefix("console at ")
        .context("bulkhead console prints no address")?;
    Ok((console, address.to_owned()))
}

/// Returns the browser. Installs it with apt-get if it is missing and the user is root.
fn chromium() -> anyhow::Result<PathBuf> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    if is_root() {
        let apt = |arguments: &[&str]| {
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .status()
                .is_ok_and(|status| status.success())
        };
        apt(&["update"]);
        apt(&["install", "-y", "chromium"]);
    }
    installed().context("the browser step needs Chromium; install it with `apt-get install -y chromium`")
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let named = |name: &str| {
        folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|program| program.is_file())
    };
    CHROMIUM.into_iter().find_map(named)
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Installs the packages with npm if one is missing or has another version.
fn install_packages(root: &Path) -> anyhow::Result<()> {
    let tools = root.join(TOOLS);
    let is_installed = |(name, version): &(&str, &str)| {
        let manifest = fs::read_to_string(tools.join("node_modules").join(name).join("package.json"));
        manifest.is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if PACKAGES.iter().all(is_installed) {
        return Ok(());
    }
    fs::create_dir_all(&tools).with_context(|| format!("creating {TOOLS}"))?;
    let status = Command::new("npm")
        .args([
            "install",
            "--no-save",
            "--no-package-lock",
            "--no-audit",
            "--no-fund",
            "--prefix",
            TOOLS,
        ])
        .args(PACKAGES.map(|(name, version)| format!("{name}@{version}")))
        .current_dir(root)
        .status()
        .context("starting npm, which the browser step needs; install Node.js 20 or later")?;
    if !status.success() {
        bail!("npm install into {TOOLS} failed ({status}); check the network");
    }
    Ok(())
}
