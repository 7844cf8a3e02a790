//! Public interfaces of the published crates, compared with the last release by cargo-semver-checks.
//!
//! An incompatible change needs a version that permits it. Until the first release there is nothing to compare with.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::MetadataCommand;

use crate::sh;
use crate::tools::Tool;

/// Compares interfaces. Each of its versions reads the documentation of a few versions of the compiler.
const CARGO_SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    features: &[],
};
/// Tags of releases.
const TAGS: &str = "v[0-9]*";

/// Compares each published crate with a revision, or else with the last release. Crates that the revision does not have
/// are left out.
///
/// # Errors
///
/// cargo-semver-checks cannot be installed, or a change is not compatible with the version of its crate.
pub(crate) fn check(root: &Path, baseline: Option<&str>) -> anyhow::Result<()> {
    let Some(baseline) = baseline.map(str::to_owned).or_else(|| last_release(root)) else {
        println!(
            "skipped: the history has no tag {TAGS} of a release; `cargo xtask semver --baseline REVISION` compares with \
             any revision"
        );
        return Ok(());
    };
    let program = CARGO_SEMVER_CHECKS.ensure(root)?;
    for package in published(root)? {
        if !has(root, &baseline, &package) {
            println!("{package}: new since {baseline}");
            continue;
        }
        let arguments = [
            "semver-checks",
            "check-release",
            "--package",
            &package,
            "--baseline-rev",
            &baseline,
        ];
        sh::run(root, &program, &arguments)?;
    }
    Ok(())
}

/// Returns the tag of the last release, if the history has one.
fn last_release(root: &Path) -> Option<String> {
    sh::git(root, &["describe", "--tags", "--abbrev=0", "--match", TAGS]).ok()
}

/// Returns true if a revision has a package of this name.
fn has(root: &Path, revision: &str, package: &str) -> bool {
    let line = format!("name = \"{package}\"");
    let manifests = [
        "grep",
        "--quiet",
        "--fixed-strings",
        &line,
        revision,
        "--",
        "*Cargo.toml",
    ];
    sh::git(root, &manifests).is_ok()
}

/// Returns the names of the crates of the workspace that are published.
fn published(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading the packages of the workspace")?;
    let packages = metadata.packages.iter().filter(|package| package.publish.is_none());
    Ok(packages.map(|package| package.name.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_published_crates_are_compared() {
        let names = published(&crate::root()).unwrap();
        for name in ["bulkhead-conformance", "bulkhead-runtime", "bulkhead-sdk"] {
            assert!(names.iter().any(|published| published == name), "{names:?}");
        }
        assert!(!names.iter().any(|published| published == "xtask"), "{names:?}");
    }

    #[test]
    fn the_baseline_is_the_last_release_and_has_the_crates_of_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        let commit = |name: &str| {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(
                root.join(name).join("Cargo.toml"),
                format!("[package]\nname = \"{name}\"\n"),
            )
            .unwrap();
            sh::git(root, &["add", "."]).unwrap();
            sh::git(root, &[&identity[..], &["commit", "--quiet", "-m", name]].concat()).unwrap();
        };
        sh::git(root, &["init", "--quiet"]).unwrap();
        commit("first");
        assert_eq!(last_release(root), None);
        check(root, None).unwrap();
        sh::git(root, &["tag", "nightly"]).unwrap();
        assert_eq!(last_release(root), None);
        sh::git(root, &["tag", "v0.1.0"]).unwrap();
        commit("second");
        assert_eq!(last_release(root).as_deref(), Some("v0.1.0"));
        assert!(has(root, "v0.1.0", "first") && !has(root, "v0.1.0", "second"));
        assert!(has(root, "HEAD", "second") && !has(root, "HEAD", "sec"));
    }
}
