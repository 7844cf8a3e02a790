//! Checks the profiles of the workspace.

use std::collections::BTreeSet;
use std::fs;

/// A crate that is missing in the profile would be compiled twice with optimization, for its users and for its tests.
#[test]
fn unit_tests_are_compiled_without_optimization() {
    let text = fs::read_to_string(super::root().join("Cargo.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let of_tests = table["profile"]["test"]["package"].as_table().unwrap();
    let levels = of_tests.iter().filter(|(_, settings)| {
        let level = settings.get("opt-level").and_then(toml::Value::as_integer);
        level == Some(0)
    });
    let listed: BTreeSet<_> = levels.map(|(name, _)| name.clone()).collect();
    assert_eq!(listed, super::members());
}
