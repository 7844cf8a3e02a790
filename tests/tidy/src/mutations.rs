//! Checks that the patches with deliberate mistakes fit the code, and that production code has none.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Folder with the patches and the added files.
const SOURCE: &str = "tests/mutations";

/// Returns the text of each patch with its name.
fn patches() -> Vec<(String, String)> {
    let entries = fs::read_dir(super::root().join(SOURCE))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let patches = entries.filter(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn every_patch_fits_the_code() {
    let names: Vec<_> = patches().into_iter().map(|(name, _)| name).collect();
    assert!(!names.is_empty());
    let output = Command::new("git")
        .args(["apply", "--check"])
        .args(&names)
        .current_dir(super::root())
        .output();
    let output = output.unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "change the context of the patches in {SOURCE} by hand:\n{message}"
    );
}

#[test]
fn every_mistake_is_in_a_patch() {
    let list = super::root().join(SOURCE).join("files/host/core/src/mutation.rs");
    let list = fs::read_to_string(list).unwrap();
    let names: Vec<_> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Self::"))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    let patches = patches();
    for name in names.iter().map(|name| name.trim_end_matches(',')) {
        let call = format!("Mutation::{name}");
        assert!(
            patches.iter().any(|(_, text)| text.contains(&call)),
            "no patch has {call}"
        );
    }
}

#[test]
fn production_code_has_no_mistakes() {
    let root = super::root();
    // It applies the patches.
    let xtask = root.join("host/xtask");
    let sources = ["host", "plugins"].map(|folder| super::size::sources(&root.join(folder)));
    let production: Vec<_> = sources
        .into_iter()
        .flatten()
        .filter(|path| !path.starts_with(&xtask))
        .collect();
    assert!(production.len() > 500, "only {} files were found", production.len());
    let has_mistake = |path: &&PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        ["Mutation::", "mutation::on", "mod mutation;"]
            .iter()
            .any(|mark| text.contains(mark))
    };
    let found: Vec<_> = production.iter().filter(has_mistake).collect();
    assert!(found.is_empty(), "{found:?}");
}
