//! Programs of other projects that the scenarios with a registry run.

use std::io;
use std::path::{Path, PathBuf};

/// Programs that the scenarios with a registry run besides `bulkhead`, and the choice of these scenarios.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tools {
    /// Path of the program `registry` of the project distribution.
    #[arg(value_parser = program)]
    pub(crate) registry: PathBuf,
    /// Part of a scenario name; without it, all scenarios run.
    #[arg(default_value = "")]
    pub(crate) filter: String,
    /// Path of the program `oras`.
    #[arg(long, value_parser = program)]
    pub(crate) oras: PathBuf,
    /// Path of the program `cosign`.
    #[arg(long, value_parser = program)]
    pub(crate) cosign: PathBuf,
    /// Path of the program `wkg`. Without it, the scenarios with it are left out.
    #[arg(long, value_parser = program)]
    pub(crate) wkg: Option<PathBuf>,
}

/// Returns the absolute path of a program, which runs in other folders.
fn program(path: &str) -> io::Result<PathBuf> {
    Path::new(path).canonicalize()
}
