//! The journey of a lost cluster in ARCHITECTURE.md leads through files and functions that exist.

use std::collections::BTreeSet;
use std::fs;

/// Maximum number of files on the way. A change that needs another one splits a responsibility.
const FILES_MAX: usize = 20;

/// Returns file and function of each step of the journey.
fn steps(architecture: &str) -> Vec<(String, String)> {
    let (_, section) = architecture.split_once("\n## Follow a lost cluster\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with('|') && line.contains('`'));
    rows.map(|row| {
        let mut quoted = row.split('`').skip(1).step_by(2).map(str::to_owned);
        (quoted.next().unwrap(), quoted.next().unwrap())
    })
    .collect()
}

#[test]
fn the_journey_of_a_lost_cluster_is_short_and_leads_through_existing_functions() {
    let root = super::root();
    let steps = steps(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    assert!(
        (10..=FILES_MAX).contains(&steps.len()),
        "the journey has {} files, and {FILES_MAX} are permitted",
        steps.len()
    );
    let files: BTreeSet<_> = steps.iter().map(|(file, _)| file).collect();
    assert_eq!(files.len(), steps.len(), "a file has one step");
    for (file, function) in steps {
        let text = fs::read_to_string(root.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_there = [format!("fn {function}("), format!("fn {function}<")]
            .iter()
            .any(|declaration| text.contains(declaration));
        assert!(is_there, "{file} has no function {function}");
    }
}
