//! Upgrade from the previous version and rollback to it, on real control planes.
//!
//! The program of the previous version is built from the Git history, in a worktree below `target/previous`. Its build
//! folder stays, so that the next run compiles nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use crate::{BUILD, BUILD_PROGRAM, sh};

/// Previous version, N-1. Each release moves it to the commit of the release before: see CONTRIBUTING.md.
pub(crate) const PREVIOUS: &str = "e85b902a0b3749923b0b7be8d70be79e4a5fb194";
/// Folder of the previous version.
const FOLDER: &str = "target/previous";
/// Changes of the previous version's profile `dev`, which optimizes dependencies at level 2, keeps line tables and
/// optimizes across the units of each crate: 47 minutes of the processor for a program that runs for a few minutes.
/// These take a third of it. Assertions stay as they are, because they are part of what is tested.
const PROFILE: &[&str] = &["debug=false", "lto=\"off\"", "opt-level=1", "package.\"*\".opt-level=1"];
/// Packages that only procedural macros use. The level of `package."*"` holds for them too, and a macro runs for less
/// time than its optimization takes.
const MACROS: &[&str] = &[
    "async-trait",
    "clap_derive",
    "darling_core",
    "darling_macro",
    "derive_more-impl",
    "displaydoc",
    "educe",
    "enum-ordinalize",
    "enum-ordinalize-derive",
    "futures-macro",
    "kube-derive",
    "pest_derive",
    "pest_generator",
    "pest_meta",
    "pin-project-internal",
    "proc-macro2",
    "prometheus-client-derive-encode",
    "prost-derive",
    "quote",
    "ref-cast-impl",
    "schemars_derive",
    "serde_derive",
    "serde_derive_internals",
    "strum_macros",
    "syn",
    "synstructure",
    "thiserror-impl",
    "time-macros",
    "tokio-macros",
    "tracing-attributes",
    "wasmtime-internal-component-macro",
    "wasmtime-internal-versioned-export-macros",
    "wasmtime-internal-wit-bindgen",
    "zerocopy-derive",
];

/// Builds both versions, and runs the scenario of the end-to-end tests with them.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let checkout = Checkout::of(root, PREVIOUS)?;
    let previous = checkout.build()?;
    sh::cargo(root, BUILD)?;
    let path = |path: &Path| path.display().to_string();
    let program = path(&root.join("target/debug/bulkhead"));
    let (root_path, previous, previous_root) = (path(root), path(&previous), path(&checkout.folder));
    let arguments = [
        "--program",
        &program,
        "--root",
        &root_path,
        "upgrade",
        "--previous",
        &previous,
        "--previous-root",
        &previous_root,
    ];
    sh::run(root, &root.join("target/debug/bulkhead-e2e"), &arguments)
}

/// Worktree of a revision. It is removed on drop.
pub(crate) struct Checkout<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Checkout<'a> {
    /// Adds the worktree.
    ///
    /// # Errors
    ///
    /// The history lacks the revision.
    pub(crate) fn of(root: &'a Path, revision: &str) -> anyhow::Result<Self> {
        let commit = format!("{revision}^{{commit}}");
        sh::git(root, &["rev-parse", "--verify", "--quiet", &commit]).map_err(|_| {
            anyhow!(
                "cannot build the previous version: the Git history of {} lacks the commit {revision}; fetch it with `git \
                 fetch --unshallow`, or in a full clone with `git fetch origin {revision}`",
                root.display()
            )
        })?;
        let folder = root.join(FOLDER).join("checkout");
        let checkout = Self { root, folder };
        // A run that was killed leaves its worktree behind.
        checkout.remove();
        let path = checkout.folder.display().to_string();
        // Forced: the folder may be missing, and its registration not.
        sh::git(root, &["worktree", "add", "--force", "--detach", &path, revision])?;
        Ok(checkout)
    }

    /// Returns the folder of the worktree.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Builds the program of the revision, and returns its path.
    ///
    /// # Errors
    ///
    /// The build fails.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        let target = self.root.join(FOLDER).join("build");
        let folder = target.display().to_string();
        let profile = profile();
        let settings = profile.iter().flat_map(|setting| ["--config", setting.as_str()]);
        let arguments: Vec<_> = BUILD_PROGRAM
            .iter()
            .copied()
            .chain(["--locked"])
            .chain(settings)
            .collect();
        sh::cargo_with(&self.folder, &arguments, &[("CARGO_TARGET_DIR", &folder)])
            .context("building the previous version")?;
        Ok(target.join("debug/bulkhead"))
    }

    fn remove(&self) {
        // Without a worktree both fail, and nothing is left to remove.
        let path = self.folder.display().to_string();
        let _ = sh::git(self.root, &["worktree", "remove", "--force", &path]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the settings of [`PROFILE`] and of [`MACROS`], as `--config` takes them. Cargo warns about packages that the
/// version does not have.
fn profile() -> Vec<String> {
    let of_profile = PROFILE.iter().map(|setting| format!("profile.dev.{setting}"));
    let of_macros = MACROS
        .iter()
        .map(|package| format!("profile.dev.package.{package}.opt-level=0"));
    of_profile.chain(of_macros).collect()
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a repository with one commit. Returns the commit.
    fn repository(folder: &Path) -> String {
        fs::write(folder.join("Cargo.toml"), "[workspace]\n").unwrap();
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        sh::git(folder, &["init", "--quiet"]).unwrap();
        sh::git(folder, &["add", "."]).unwrap();
        sh::git(folder, &[&identity[..], &["commit", "--quiet", "-m", "first"]].concat()).unwrap();
        sh::git(folder, &["rev-parse", "HEAD"]).unwrap()
    }

    #[test]
    fn the_settings_of_the_previous_version_have_a_value_and_name_each_package_once() {
        for setting in profile() {
            let pair = setting.split_once('=').filter(|(_, value)| !value.is_empty());
            assert!(
                pair.is_some_and(|(key, _)| key.starts_with("profile.dev.")),
                "{setting}"
            );
        }
        assert!(MACROS.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn a_history_without_the_previous_version_is_an_error_that_says_how_to_fetch_it() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let error = Checkout::of(folder.path(), PREVIOUS).err().unwrap().to_string();
        let expected = format!("lacks the commit {PREVIOUS}; fetch it with `git fetch --unshallow`");
        assert!(error.contains(&expected), "{error}");
    }

    #[test]
    fn the_worktree_of_the_previous_version_is_removed_and_one_of_a_killed_run_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let commit = repository(folder.path());
        let listed = || sh::git(folder.path(), &["worktree", "list"]).unwrap().lines().count();
        std::mem::forget(Checkout::of(folder.path(), &commit).unwrap());
        assert_eq!(listed(), 2);
        let checkout = Checkout::of(folder.path(), &commit).unwrap();
        let path = checkout.folder.clone();
        assert!(path.join("Cargo.toml").is_file());
        drop(checkout);
        assert!(!path.exists());
        assert_eq!(listed(), 1);
    }
}
