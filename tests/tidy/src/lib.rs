//! Rules that no compiler checks: which crate may know which, how long a file may be, how the contract may change, and
//! whether what is deployed, and what the documents name, fits the program.
//!
//! The rules are the tables of ARCHITECTURE.md; a new edge changes both in one commit.

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod deploy;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod size;

#[cfg(test)]
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}
