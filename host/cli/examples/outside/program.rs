//! The program in a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::Instant;

/// Time limit for a line of the log, and for the end of the process.
const PATIENCE: Duration = Duration::from_mins(2);
/// Interval between two looks at the log.
const LOOK: Duration = Duration::from_millis(100);
/// Ticks per second of the times in `/proc/PID/stat`, which Linux fixes for programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Running program, which is killed on drop.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of the program that was built beside this example.
pub(crate) fn beside_this() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("finding this example")?;
    let folder = this.ancestors().nth(2).context("this example is in no target folder")?;
    let path = folder.join("bulkhead");
    if !path.exists() {
        bail!(
            "{} does not exist; build it with `cargo build -p bulkhead --bin bulkhead`",
            path.display()
        );
    }
    Ok(path)
}

impl Program {
    /// Starts the program with a number of worker threads for its controllers. Its output goes to `log`.
    pub(crate) fn start(path: &Path, workers: usize, log: &Path, arguments: &[String]) -> anyhow::Result<Self> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let child = Command::new(path)
            .args(arguments)
            .env("TOKIO_WORKER_THREADS", workers.to_string())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {}", path.display()))?;
        Ok(Self {
            child,
            log: log.to_path_buf(),
        })
    }

    /// Waits for a line of the log that contains a text. Returns the rest of that line.
    pub(crate) async fn said(&mut self, text: &str) -> anyhow::Result<String> {
        let started = Instant::now();
        loop {
            let log = self.log();
            if let Some((_, rest)) = log.lines().find_map(|line| line.split_once(text)) {
                return Ok(rest.trim().to_owned());
            }
            if let Some(status) = self.ended()? {
                bail!("the program ended with {status}:\n{log}");
            }
            if started.elapsed() > PATIENCE {
                bail!("the program did not log {text:?} in time:\n{log}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the exit status once the process has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().context("looking at the program")
    }

    /// Returns the folder of the process below `/proc`.
    pub(crate) fn proc(&self) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string())
    }

    /// Returns the processor time that the process has used, in seconds.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(self.proc().join("stat")).context("reading the times of the program")?;
        // The name of the program, in parentheses, may contain spaces. User and system time are fields 14 and 15.
        let (_, fields) = stat
            .rsplit_once(')')
            .context("the times of the program have another form")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        Ok(ticks.sum::<Result<u64, _>>()? as f64 / TICKS_PER_SECOND)
    }

    /// Stops the program with SIGTERM.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        if !asked.context("running kill")?.success() {
            bail!("the program could not be stopped:\n{}", self.log());
        }
        let started = Instant::now();
        while self.ended()?.is_none() {
            if started.elapsed() > PATIENCE {
                bail!("the program does not stop:\n{}", self.log());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}
