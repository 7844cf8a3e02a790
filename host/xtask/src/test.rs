//! Tests of the workspace, each in the profile in which compiling and running it takes less time.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::{MetadataCommand, Package};

use crate::sh;

/// Unit tests, which the profile `test` compiles fast.
pub(crate) const UNIT_TESTS: &[&str] = &["test", "--workspace", "--lib", "--bins"];
const DOCUMENTATION_TESTS: &[&str] = &["test", "--workspace", "--doc"];
/// Tests with the optimization of the program.
pub(crate) const OPTIMIZED_TESTS: &[&str] = &["test", "--workspace", "--profile", "dev"];
/// Test programs that need the optimization: they play whole federations, or run plugins up to their limits.
const OPTIMIZED_PROGRAMS: &[&str] = &["bounds", "cli", "edited", "it", "vectors"];

/// Runs all tests. Test programs without heavy work are compiled like unit tests, in a sixth of the time.
///
/// # Errors
///
/// A test does not compile, or fails.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let programs = programs(root)?;
    let others = programs
        .iter()
        .map(String::as_str)
        .filter(|name| !OPTIMIZED_PROGRAMS.contains(name));
    sh::cargo(root, &[UNIT_TESTS, &selection(others)].concat())?;
    sh::cargo(root, DOCUMENTATION_TESTS)?;
    let optimized = selection(OPTIMIZED_PROGRAMS.iter().copied());
    sh::cargo(root, &[OPTIMIZED_TESTS, &optimized].concat())
}

/// Returns the names of the test programs of all crates.
fn programs(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    let metadata = metadata.context("reading the crates of the workspace")?;
    Ok(metadata.packages.iter().flat_map(programs_of).collect())
}

fn programs_of(package: &Package) -> impl Iterator<Item = String> {
    let targets = package.targets.iter().filter(|target| target.is_test() && target.test);
    targets.map(|target| target.name.clone())
}

/// Returns arguments that select test programs.
fn selection<'a>(programs: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    programs.flat_map(|name| ["--test", name]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that no program has would stop cargo, and a name that two have would select both.
    #[test]
    fn each_test_program_has_a_name_of_its_own_and_the_optimized_ones_exist() {
        let mut names = programs(&crate::root()).unwrap();
        names.sort();
        for name in OPTIMIZED_PROGRAMS {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
        let all = names.clone();
        names.dedup();
        assert_eq!(names, all);
    }
}
