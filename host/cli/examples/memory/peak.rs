//! Peak resident memory of a process, as Linux counts it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Value for `clear_refs` that resets the peak.
const RESET: &str = "5";

/// Folder of this process below `/proc`.
pub(crate) const THIS: &str = "/proc/self";

/// Measurement of the memory of one process.
pub(crate) struct Peak {
    proc: PathBuf,
    start_kib: u64,
}

impl Peak {
    /// Starts a measurement. `proc` is the folder of the process below `/proc`.
    pub(crate) fn start(proc: impl AsRef<Path>) -> anyhow::Result<Self> {
        let proc = proc.as_ref().to_path_buf();
        fs::write(proc.join("clear_refs"), RESET).context("resetting the peak of the resident memory")?;
        let start_kib = field_kib(&proc, "VmRSS:")?;
        Ok(Self { proc, start_kib })
    }

    /// Returns the peak since the start above the memory at the start, in KiB.
    pub(crate) fn kib(&self) -> anyhow::Result<u64> {
        Ok(field_kib(&self.proc, "VmHWM:")?.saturating_sub(self.start_kib))
    }
}

fn field_kib(proc: &Path, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(proc.join("status")).context("reading the memory of the process")?;
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let value = value.with_context(|| format!("the process has no {name}"))?;
    Ok(value.trim().trim_end_matches("kB").trim().parse()?)
}
