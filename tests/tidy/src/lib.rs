//! Rules that no compiler checks: dependencies between crates, circles of modules, file lengths, profiles of the
//! workspace, changes of the plugin contract, patches with deliberate mistakes, licences and sources of dependencies,
//! secrets in tracked files, and the agreement of manifests and documents with the program.
//!
//! ARCHITECTURE.md contains the rules as tables; a commit that adds an edge changes both.

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod deploy;
#[cfg(test)]
mod goldens;
#[cfg(test)]
mod journey;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod links;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod size;
#[cfg(test)]
mod supply;
#[cfg(test)]
mod voice;

#[cfg(test)]
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Returns the names of the crates of the workspace.
#[cfg(test)]
fn members() -> std::collections::BTreeSet<String> {
    let mut command = cargo_metadata::MetadataCommand::new();
    let metadata = command
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let names = metadata.packages.iter().map(|package| package.name.to_string());
    names.collect()
}
