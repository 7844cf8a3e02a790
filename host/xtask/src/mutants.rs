//! Small changes of the decisions in core, such as `<` for `<=`, each of which a test of core must find.
//!
//! cargo-mutants makes the changes in a copy of the workspace. `.cargo/mutants.toml` selects the files, and lists the
//! changes that no test can find, with the reason. The deliberate mistakes of [`mutations`](crate::mutations) are
//! larger, and the simulation finds them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::tools::Tool;

const TOOL: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
    features: &[],
};
/// Folder for the results, in a folder of their own.
const OUTPUT: &str = "target/mutants";
/// Share of the changes that tests must find, in percent.
const FOUND_MIN: u64 = 95;
/// Exit codes of cargo-mutants after a complete run: all found, some missed, some without an end.
const COMPLETE: [i32; 3] = [0, 2, 3];

/// Numbers of changes, as cargo-mutants writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Outcomes {
    /// Changes with which a test fails.
    caught: u64,
    /// Changes with which a test does not end in time.
    timeout: u64,
    /// Changes with which all tests pass.
    missed: u64,
}

impl Outcomes {
    fn found(self) -> u64 {
        self.caught + self.timeout
    }

    fn is_enough(self) -> bool {
        self.found() * 100 >= FOUND_MIN * (self.found() + self.missed)
    }
}

/// Makes the changes of a shard, such as `0/10` for the first tenth of all changes, and runs the tests of core with
/// each.
///
/// # Errors
///
/// cargo-mutants cannot be installed or does not end as it should, or fewer than 95 % of the changes are found.
pub(crate) fn check(root: &Path, shard: &str) -> anyhow::Result<()> {
    let program = TOOL.ensure(root)?;
    let arguments = ["mutants", "--shard", shard, "--no-times", "--output", OUTPUT];
    let status = Command::new(&program).args(arguments).current_dir(root).status();
    let status = status.with_context(|| format!("starting {}", program.display()))?;
    if !status.code().is_some_and(|code| COMPLETE.contains(&code)) {
        bail!("cargo mutants --shard {shard} failed ({status})");
    }
    let file = root.join(OUTPUT).join("mutants.out/outcomes.json");
    let about = || format!("reading {}", file.display());
    let outcomes: Outcomes = serde_json::from_slice(&fs::read(&file).with_context(about)?).with_context(about)?;
    println!("{} changes found, {} missed", outcomes.found(), outcomes.missed);
    if !outcomes.is_enough() {
        bail!(
            "the tests of core find fewer than {FOUND_MIN} % of the changes; {OUTPUT}/mutants.out/missed.txt has the rest"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_of_twenty_changes_are_enough() {
        let of = |text: &str| serde_json::from_str::<Outcomes>(text).unwrap().is_enough();
        assert!(of(
            r#"{"caught": 18, "timeout": 1, "missed": 1, "unviable": 7, "total_mutants": 27}"#
        ));
        assert!(!of(
            r#"{"caught": 18, "timeout": 0, "missed": 1, "unviable": 7, "total_mutants": 26}"#
        ));
    }
}
