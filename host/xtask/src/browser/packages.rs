//! Chromium, and the packages of Node.js that control it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Packages of Node.js: control of the browser, and rules of accessibility.
const PACKAGES: [(&str, &str); 2] = [("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];
/// Folder of the packages.
const TOOLS: &str = "target/tools/browser";
/// Names of the program in distributions.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Returns a command for Node.js that finds the packages.
///
/// # Errors
///
/// The packages cannot be installed.
pub(super) fn node(root: &Path) -> anyhow::Result<Command> {
    install(root)?;
    let mut node = Command::new("node");
    node.env("NODE_PATH", root.join(TOOLS).join("node_modules"))
        .current_dir(root);
    Ok(node)
}

/// Returns the browser. Installs it with apt-get if it is missing and the user is root.
pub(super) fn chromium() -> anyhow::Result<PathBuf> {
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
fn install(root: &Path) -> anyhow::Result<()> {
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
