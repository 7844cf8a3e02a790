//! Rules for dependencies (`deny.toml`), checked with cargo-deny. A test of `bulkhead-tidy` checks licences, bans and
//! sources without it.

use std::path::{Path, PathBuf};

use crate::sh;
use crate::tools::Tool;

/// Checks dependencies.
const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    features: &["--no-default-features"],
};

/// Checks licences, bans and sources; and advisories, if a copy of their database is on this machine.
///
/// # Errors
///
/// cargo-deny cannot be installed, or a dependency breaks a rule.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let program = CARGO_DENY.ensure(root)?;
    sh::run(root, &program, &["--locked", "check", "licenses", "bans", "sources"])?;
    let databases = databases();
    if !databases.as_ref().is_some_and(|folder| folder.is_dir()) {
        let folder = databases.map_or_else(|| "CARGO_HOME".to_owned(), |folder| folder.display().to_string());
        println!("advisories are not checked: {folder} has no database; `cargo deny fetch` gets it");
        return Ok(());
    }
    sh::run(root, &program, &["--locked", "check", "--disable-fetch", "advisories"])
}

/// Returns the folder in which cargo-deny keeps databases of advisories.
fn databases() -> Option<PathBuf> {
    Some(sh::cargo_home()?.join("advisory-dbs"))
}
