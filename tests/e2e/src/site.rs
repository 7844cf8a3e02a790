//! Programs that the scenarios run, and the folders that they leave.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::servers::Servers;

/// Programs and folders that the scenarios use.
pub(crate) struct Site {
    /// Kubernetes server programs.
    pub(crate) servers: Servers,
    /// Path of the `bulkhead` program.
    pub(crate) program: PathBuf,
    /// Root of the workspace.
    pub(crate) root: PathBuf,
}

impl Site {
    /// Returns the folder with the logs of all scenarios, one subfolder each.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("target/e2e/run")
    }

    /// Removes the data of the control planes of all scenarios, several hundred megabytes each, once they ended. The
    /// logs stay.
    pub(crate) fn remove_data(&self) -> anyhow::Result<()> {
        let logs = self.logs();
        let about = || format!("removing the data of control planes from {}", logs.display());
        let Ok(scenarios) = fs::read_dir(&logs) else {
            return Ok(());
        };
        for scenario in scenarios {
            remove_data(&scenario.with_context(about)?.path()).with_context(about)?;
        }
        Ok(())
    }
}

/// Removes the data of etcd, which is large, from the folders of all planes.
fn remove_data(directory: &Path) -> anyhow::Result<()> {
    for plane in fs::read_dir(directory)? {
        let data = plane?.path().join("etcd");
        if data.exists() {
            fs::remove_dir_all(data)?;
        }
    }
    Ok(())
}

/// Keeps the folder of the previous run for troubleshooting, without its data.
pub(crate) fn set_aside(directory: &Path, before: &Path) -> anyhow::Result<()> {
    if before.exists() {
        fs::remove_dir_all(before)?;
    }
    remove_data(directory)?;
    Ok(fs::rename(directory, before)?)
}
