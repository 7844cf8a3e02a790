//! Checks the length of source files.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum length of a file, in lines. A longer file has more than one responsibility.
const LINES_MAX: usize = 500;

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let skipped = path
            .file_name()
            .is_some_and(|name| name == "target" || name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !skipped {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the Rust files below a folder.
pub(super) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    rust_files(folder, &mut found);
    found
}

#[test]
fn no_file_is_longer_than_the_limit() {
    let files = sources(&super::root());
    assert!(files.len() > 50, "only {} files were found", files.len());
    let long = files.iter().filter_map(|path| {
        let lines = fs::read_to_string(path).unwrap().lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", path.display()))
    });
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
