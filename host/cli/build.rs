//! Records the commit of the sources in the program: `BULKHEAD_COMMIT` of the environment, or the commit that git
//! names. Without both, the program has none.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=BULKHEAD_COMMIT");
    let given = std::env::var("BULKHEAD_COMMIT")
        .ok()
        .filter(|commit| !commit.trim().is_empty());
    if let Some(commit) = given.or_else(commit) {
        println!("cargo:rustc-env=BULKHEAD_COMMIT={}", commit.trim());
    }
    if let Ok(target) = std::env::var("TARGET") {
        println!("cargo:rustc-env=BULKHEAD_TARGET={target}");
    }
}

/// Returns the commit of the repository that contains this file, and runs this script again after the next commit.
fn commit() -> Option<String> {
    // A copy of the sources may be in a repository of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // The log of HEAD changes with each commit and checkout. A repository without it has no later commits.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if std::path::Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
