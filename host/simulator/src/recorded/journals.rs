//! Journals of several processes, read as one.
//!
//! Each process writes a journal of its own. After a change of leaders, the decisions about an object are in several
//! of them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bulkhead_journal::segment;

/// Returns the journals in these directories: a directory that has one, or those of its subdirectories. Each journal
/// is there once, however often it was named.
///
/// # Errors
///
/// A directory cannot be read, or neither it nor a subdirectory has a journal.
pub fn journals(directories: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for directory in directories {
        for journal in below(directory)? {
            let is_known = |known: &PathBuf| is_same(known, &journal);
            if !found.iter().any(is_known) {
                found.push(journal);
            }
        }
    }
    Ok(found)
}

fn below(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !segment::list(directory).context("--journal")?.is_empty() {
        return Ok(vec![directory.to_path_buf()]);
    }
    let reading = || format!("--journal: reading the directory {}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        // The folder of a journal that this user may not read must not look empty.
        if path.is_dir() && !segment::list(&path).context("--journal")?.is_empty() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!(
            "--journal: {}: there is no journal in this directory or directly below it; `bulkhead run` and `bulkhead \
             simulate` write one with --journal",
            directory.display()
        );
    }
    found.sort();
    Ok(found)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    canonical(one) == canonical(other)
}

/// Merges lists by time, each of which keeps its order. Of equal times, an earlier list goes first.
pub(super) fn merged<T>(lists: Vec<Vec<(i64, T)>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut merged = Vec::new();
    loop {
        let next = lists
            .iter_mut()
            .enumerate()
            .filter_map(|(at, list)| Some((list.peek()?.0, at)))
            .min();
        let Some(taken) = next.and_then(|(_, at)| lists.get_mut(at)?.next()) else {
            return merged;
        };
        merged.push(taken.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_merged_by_time_and_each_keeps_its_order() {
        // The clock of the second process was set back.
        let lists = vec![vec![(1, 'a'), (5, 'b'), (5, 'c')], vec![(5, 'd'), (2, 'e'), (9, 'f')]];
        assert_eq!(merged(lists), ['a', 'b', 'c', 'd', 'e', 'f']);
        assert!(merged::<char>(Vec::new()).is_empty());
    }

    #[test]
    fn a_directory_has_a_journal_or_those_of_its_subdirectories() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["pods/b", "pods/a", "pods/logs", "one"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        for name in ["pods/a", "pods/b", "one"] {
            std::fs::write(segment::path(&path(name), 1), "").unwrap();
        }
        let found = |names: &[&str]| journals(&names.iter().map(|name| path(name)).collect::<Vec<_>>());
        assert_eq!(found(&["pods"]).unwrap(), [path("pods/a"), path("pods/b")]);
        assert_eq!(found(&["one", "pods/b"]).unwrap(), [path("one"), path("pods/b")]);
        assert_eq!(
            found(&["pods/a", "pods", "pods/../pods/a"]).unwrap(),
            [path("pods/a"), path("pods/b")]
        );
        let error = format!("{:#}", found(&["pods/logs"]).unwrap_err());
        assert!(
            error.contains("pods/logs: there is no journal in this directory or directly below it"),
            "{error}"
        );
        assert!(found(&["nowhere"]).is_err());
    }
}
