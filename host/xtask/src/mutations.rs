//! Copy of the workspace with deliberate mistakes, which the simulation must find.
//!
//! The mistakes are not part of the workspace. `tests/mutations` has one patch for each file that they change, and the
//! files that they add. The copy in `target/mutations/tree` is built with the target folder of the workspace, so that both
//! share the crates from the registry. Its crates have a version of their own: Cargo names the files of a crate after
//! package, version and place in the workspace, and would otherwise take the crates of the copy for those of the
//! workspace.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::sh;

/// Folder with the patches, and with the added files in `files`.
const SOURCE: &str = "tests/mutations";
/// Copy that is built. Files whose content did not change keep their times, so that a build is incremental.
const TREE: &str = "target/mutations/tree";
/// Addition to the version of all crates of the copy. Dependencies on a version of the workspace accept it.
const BUILD: &str = "+mutations";
/// Copy that is being made.
const NEXT: &str = "target/mutations/next";

/// Builds the search for deliberate mistakes. Returns the program.
pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    cargo(root, "build")?;
    Ok(root.join("target/debug/examples/mutations"))
}

/// Checks that the deliberate mistakes compile.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    cargo(root, "check")
}

/// Returns the mistakes in files that changed since a revision, in order of name.
///
/// A file counts as changed if it differs from the revision or is not in it, committed or not. A changed patch counts
/// as well.
pub(crate) fn changed(root: &Path, revision: &str) -> anyhow::Result<BTreeSet<String>> {
    let differs = ["diff", "--name-only", "-z", revision, "--"];
    let mut files = names(root, &differs).with_context(|| format!("comparing the files with `{revision}`"))?;
    files.extend(listed(root, &["--others", "--exclude-standard"])?);
    let mut mistakes = BTreeSet::new();
    for patch in patches(root)? {
        let text = fs::read_to_string(&patch).with_context(|| format!("reading {}", patch.display()))?;
        let patch = patch.strip_prefix(root).unwrap_or(&patch);
        if files.contains(patch) || patched_files(&text).any(|file| files.contains(Path::new(file))) {
            mistakes.extend(mistakes_of(&text));
        }
    }
    Ok(mistakes)
}

/// Returns the files that a patch changes.
fn patched_files(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
}

/// Returns the mistakes that a patch activates.
fn mistakes_of(patch: &str) -> impl Iterator<Item = String> {
    let added = patch
        .lines()
        .filter(|line| line.starts_with('+') && !line.starts_with("+++"));
    added.flat_map(|line| line.split("Mutation::").skip(1)).map(|rest| {
        let name = rest.chars().take_while(|letter| letter.is_ascii_alphanumeric());
        name.collect()
    })
}

/// Brings the copy up to date and runs a command of Cargo for its search.
fn cargo(root: &Path, command: &str) -> anyhow::Result<()> {
    update_tree(root)?;
    let manifest = root.join(TREE).join("Cargo.toml").display().to_string();
    let target = root.join("target").display().to_string();
    let arguments = [
        command,
        "--workspace",
        "--example",
        "mutations",
        "--manifest-path",
        &manifest,
    ];
    sh::cargo_with(root, &arguments, &[("CARGO_TARGET_DIR", &target)])
}

/// Brings the copy up to date with the workspace and the patches.
fn update_tree(root: &Path) -> anyhow::Result<()> {
    let next = root.join(NEXT);
    if next.exists() {
        fs::remove_dir_all(&next).with_context(|| format!("removing {}", next.display()))?;
    }
    let mut files = copy_sources(root, &next)?;
    let added = root.join(SOURCE).join("files");
    for file in listed(&added, &[".", "--others", "--cached"])? {
        copy(&added.join(&file), &next.join(&file))?;
        files.insert(file);
    }
    apply(root)?;
    let manifest = next.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
    let text = with_version(&text).with_context(|| format!("{}: no version of the workspace", manifest.display()))?;
    fs::write(&manifest, text).with_context(|| format!("writing {}", manifest.display()))?;
    move_changed(&next, &root.join(TREE), &files)
}

/// Adds to the version of the workspace in its manifest.
fn with_version(manifest: &str) -> Option<String> {
    const START: &str = "\nversion = \"";
    let section = manifest.find("[workspace.package]")?;
    let start = section + manifest[section..].find(START)? + START.len();
    let end = start + manifest[start..].find('"')?;
    Some(format!("{}{BUILD}{}", &manifest[..end], &manifest[end..]))
}

/// Copies the files of the workspace that are not ignored. Returns their paths.
fn copy_sources(root: &Path, next: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = listed(root, &["--others", "--cached", "--exclude-standard"])?;
    // A deleted file is listed until it is committed.
    files.retain(|file| root.join(file).is_file() && !file.starts_with(SOURCE));
    for file in &files {
        copy(&root.join(file), &next.join(file))?;
    }
    Ok(files)
}

/// Returns the files below a folder that Git lists.
fn listed(folder: &Path, arguments: &[&str]) -> anyhow::Result<BTreeSet<PathBuf>> {
    names(folder, &[&["ls-files", "-z"], arguments].concat())
}

/// Returns the file names that a command of Git prints, separated by zero bytes.
fn names(folder: &Path, arguments: &[&str]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let output = output.context("starting git, which lists the files of the workspace")?;
    if !output.status.success() {
        bail!(
            "git {} failed in {}: {}",
            arguments[0],
            folder.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Applies the patches to the new copy. All are tried, so that the error names each one that does not fit.
fn apply(root: &Path) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    for patch in patches(root)? {
        let directory = format!("--directory={NEXT}");
        let output = Command::new("git")
            .args(["apply", &directory])
            .arg(&patch)
            .current_dir(root)
            .output();
        let output = output.context("starting git, which applies the patches")?;
        if !output.status.success() {
            problems.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
    }
    if !problems.is_empty() {
        let all = problems.join("\n");
        bail!("patches of {SOURCE} do not fit the code; change their context by hand and try again\n{all}");
    }
    Ok(())
}

/// Returns the patches, in order of name.
fn patches(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let folder = root.join(SOURCE);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            found.insert(path);
        }
    }
    Ok(found)
}

/// Moves files whose content is new into the tree, and removes files that are gone.
fn move_changed(next: &Path, tree: &Path, files: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for file in files {
        let (from, to) = (next.join(file), tree.join(file));
        let content = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        if fs::read(&to).ok().as_ref() != Some(&content) {
            copy(&from, &to)?;
        }
    }
    let list = tree.join(".files");
    let before = fs::read_to_string(&list).unwrap_or_default();
    for gone in before.lines().map(Path::new).filter(|file| !files.contains(*file)) {
        // It may have been removed by hand.
        let _ = fs::remove_file(tree.join(gone));
    }
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    fs::write(&list, names.join("\n")).with_context(|| format!("writing {}", list.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_its_files_and_mistakes() {
        let patch = "--- a/host/core/src/x.rs\n+++ b/host/core/src/x.rs\n@@ -1,2 +1,3 @@\n-    if a || Mutation::Gone {\n\
                     +    if a || mutation::on(Mutation::Karmada3747) && !mutation::on(Mutation::TaintStays) {\n";
        assert_eq!(patched_files(patch).collect::<Vec<_>>(), ["host/core/src/x.rs"]);
        assert_eq!(mistakes_of(patch).collect::<Vec<_>>(), ["Karmada3747", "TaintStays"]);
    }

    #[test]
    fn each_patch_activates_a_mistake_in_a_file_of_the_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut mistakes = BTreeSet::new();
        for patch in patches(&root).expect("there are patches") {
            let text = fs::read_to_string(&patch).expect("a patch is text");
            assert!(patched_files(&text).count() > 0, "{}", patch.display());
            assert!(
                patched_files(&text).all(|file| root.join(file).is_file()),
                "{}",
                patch.display()
            );
            mistakes.extend(mistakes_of(&text));
        }
        let declared = root.join(SOURCE).join("files/host/core/src/mutation.rs");
        let declared = fs::read_to_string(declared).expect("the mistakes are declared");
        let unknown: Vec<_> = mistakes
            .iter()
            .filter(|name| !declared.contains(&format!("    {name},")))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn the_crates_of_the_copy_have_a_version_of_their_own() {
        let manifest = "[workspace]\nresolver = \"3\"\n\n[workspace.package]\nedition = \"2024\"\n\
                        version = \"0.1.0\"\nlicense = \"MIT\"\n\n[workspace.dependencies]\n";
        let expected = manifest.replace("0.1.0", "0.1.0+mutations");
        assert_eq!(with_version(manifest), Some(expected));
        assert_eq!(with_version("[package]\nversion = \"0.1.0\"\n"), None);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let workspace = fs::read_to_string(workspace).expect("the workspace has a manifest");
        assert!(with_version(&workspace).expect("it has a version").contains(BUILD));
    }
}
