//! Checks the profiles of the workspace.

use std::collections::BTreeSet;
use std::fs;

use cargo_metadata::MetadataCommand;

/// A crate that is missing in the profile would be compiled twice with optimization, for its users and for its tests.
#[test]
fn unit_tests_are_compiled_without_optimization() {
    let manifest = super::root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let of_tests = table["profile"]["test"]["package"].as_table().unwrap();
    let levels = of_tests.iter().filter(|(_, settings)| {
        let level = settings.get("opt-level").and_then(toml::Value::as_integer);
        level == Some(0)
    });
    let listed: BTreeSet<_> = levels.map(|(name, _)| name.clone()).collect();
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let members: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    assert_eq!(listed, members);
}
