//! Child processes that end with their owner, whatever happens to the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

/// A program that runs. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output goes to a file.
    pub(crate) fn start(program: &Path, arguments: &[String], log: PathBuf) -> anyhow::Result<Self> {
        let about = || format!("starting {}", program.display());
        let file = File::options().create(true).append(true).open(&log).with_context(about)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone().with_context(about)?)
            .stderr(file)
            .spawn()
            .with_context(about)?;
        Ok(Self { child, log })
    }

    /// Where its output is.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("the process has no id")?;
        kill_process(id, signal).context("sending a signal")
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it ended by itself.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
