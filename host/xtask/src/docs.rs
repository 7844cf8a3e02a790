//! Documentation site: checked reference pages, then mdBook.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::sh;

/// Version of mdBook that builds the site.
const VERSION: &str = "0.5.4";
/// Text in the names of the tests that compare reference pages with the program.
const REFERENCE_TESTS: &str = "the_page_of";

/// Builds the site to `target/book`. Fails if a reference page differs from the program; `UPDATE_GOLDENS=1` writes the
/// pages anew. Returns the first page.
pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    sh::cargo(
        root,
        &["test", "--workspace", "--tests", "--quiet", "--", REFERENCE_TESTS],
    )?;
    let mdbook = mdbook(root)?;
    let status = Command::new(&mdbook).args(["build", "docs"]).current_dir(root).status();
    let status = status.with_context(|| format!("starting {}", mdbook.display()))?;
    if !status.success() {
        bail!("mdbook build docs failed ({status})");
    }
    Ok(root.join("target/book/index.html"))
}

/// Returns the program mdBook of `target/tools`. Installs it if it is missing or has another version.
fn mdbook(root: &Path) -> anyhow::Result<PathBuf> {
    let program = root.join("target/tools/bin/mdbook");
    if is_installed(&program) {
        return Ok(program);
    }
    let features = ["--no-default-features", "--features", "search"];
    let fixed = [
        "install",
        "mdbook",
        "--locked",
        "--version",
        VERSION,
        "--root",
        "target/tools",
    ];
    sh::cargo(root, &[&fixed[..], &features[..]].concat()).with_context(|| {
        format!("the site needs mdBook {VERSION} in target/tools, and cargo could not install it; check the network")
    })?;
    Ok(program)
}

/// Returns true if the program exists and has the version of this file.
fn is_installed(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .ends_with(&format!("v{VERSION}"))
    })
}
