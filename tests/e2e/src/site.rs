//! Program and checkout of one version, the servers that it runs on, and the folders that its scenarios leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::servers::Servers;
use crate::tools::Tools;

/// Programs and folders that the scenarios use.
pub(crate) struct Site {
    /// Kubernetes server programs.
    pub(crate) servers: Servers,
    /// Path of the `bulkhead` program.
    pub(crate) program: PathBuf,
    /// Root of the workspace that the program was built from.
    pub(crate) root: PathBuf,
    /// True if scenarios with two forms run in the long one.
    pub(crate) is_long: bool,
    /// Path of the program `prometheus`, for the trials of alerts.
    pub(crate) prometheus: Option<PathBuf>,
    /// Programs of the scenarios with registries.
    pub(crate) registry_tools: Option<Tools>,
    logs: PathBuf,
    /// Help of `bulkhead run`, with all arguments of this version.
    help: String,
}

impl Site {
    /// Uses a program, and the manifests in the workspace that it was built from.
    pub(crate) fn new(servers: Servers, program: &Path, root: &Path) -> anyhow::Result<Self> {
        let logs = root.join("target/e2e/run");
        Self::with_logs(servers, program, root, logs)
    }

    /// Returns the site of another version, with the same servers and log folder.
    pub(crate) fn of_version(&self, program: &Path, root: &Path) -> anyhow::Result<Self> {
        Self::with_logs(self.servers.clone(), program, root, self.logs.clone())
    }

    fn with_logs(servers: Servers, program: &Path, root: &Path, logs: PathBuf) -> anyhow::Result<Self> {
        let found = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
        let (program, root) = (found(program)?, found(root)?);
        let output = Command::new(&program).args(["run", "--help"]).output();
        let output = output.with_context(|| format!("starting {}", program.display()))?;
        ensure!(output.status.success(), "{} run --help failed", program.display());
        Ok(Self {
            servers,
            program,
            root,
            is_long: false,
            prometheus: None,
            registry_tools: None,
            logs,
            help: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// Returns the folder with the logs of all scenarios, one subfolder each.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }

    /// Returns true if `bulkhead run` of this version has the argument.
    pub(crate) fn accepts(&self, argument: &str) -> bool {
        self.help.split([' ', '\n', '=']).any(|word| word == argument)
    }
}

/// Keeps the folder of the previous run for troubleshooting.
pub(crate) fn set_aside(directory: &Path, before: &Path) -> anyhow::Result<()> {
    if before.exists() {
        fs::remove_dir_all(before)?;
    }
    Ok(fs::rename(directory, before)?)
}
