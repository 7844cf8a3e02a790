//! Child processes that end with their owner, even if the test fails.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

/// Unit of times in `/proc` (`USER_HZ`), independent of the kernel's tick rate.
const TICKS_PER_SECOND: u64 = 100;

/// A running program. It is killed on drop.
pub(crate) struct Process {
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output is appended to a log file.
    pub(crate) fn start(program: &Path, arguments: &[String], log: PathBuf) -> anyhow::Result<Self> {
        Self::start_in(Path::new("."), program, arguments, log)
    }

    /// Like [`Self::start`], in a working directory.
    pub(crate) fn start_in(folder: &Path, program: &Path, arguments: &[String], log: PathBuf) -> anyhow::Result<Self> {
        Self::start_with(folder, program, arguments, &[], log)
    }

    /// Like [`Self::start_in`], with environment variables besides those of this process.
    pub(crate) fn start_with(
        folder: &Path,
        program: &Path,
        arguments: &[String],
        variables: &[(String, String)],
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let child = spawn(folder, program, arguments, variables, &log)?;
        let (folder, program, arguments) = (folder.to_path_buf(), program.to_path_buf(), arguments.to_vec());
        Ok(Self {
            folder,
            program,
            arguments,
            variables: variables.to_vec(),
            child,
            log,
        })
    }

    /// Restarts the program, after killing it if it runs. The log file is continued.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        self.child = spawn(&self.folder, &self.program, &self.arguments, &self.variables, &self.log)?;
        Ok(())
    }

    /// Returns the path of the log file.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("the process has no id")?;
        kill_process(id, signal).context("sending a signal")
    }

    /// Kills the program and waits until it has ended.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the current resource usage.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).context("reading what the process used");
        let stat = read("stat")?;
        // The name in parentheses may contain spaces. User and system time are fields 14 and 15 of the line.
        let fields = stat
            .rsplit_once(')')
            .context("stat has no name")?
            .1
            .split_whitespace()
            .skip(11)
            .take(2);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        let status = read("status")?;
        let bytes = |name: &str| {
            let value = status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let value = value.with_context(|| format!("status has no {name}"))?;
            let kib: u64 = value
                .trim()
                .trim_end_matches(" kB")
                .parse()
                .with_context(|| format!("{name}: {value}"))?;
            anyhow::Ok(kib * 1024)
        };
        let spent = Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        Ok(Usage {
            spent,
            resident: bytes("VmRSS")?,
            program: bytes("RssFile")?,
        })
    }

    /// Returns the last non-empty line of the log.
    pub(crate) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("nothing")
            .to_owned()
    }

    /// True if the program has ended.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Resource usage of a process.
pub(crate) struct Usage {
    /// CPU time.
    pub(crate) spent: Duration,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
    /// Part of the resident memory that maps files, mostly the program's own, in bytes.
    pub(crate) program: u64,
}

fn spawn(
    folder: &Path,
    program: &Path,
    arguments: &[String],
    variables: &[(String, String)],
    log: &Path,
) -> anyhow::Result<Child> {
    let about = || format!("starting {}", program.display());
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(about)?;
    Command::new(program)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone().with_context(about)?)
        .stderr(file)
        .spawn()
        .with_context(about)
}

/// Processes that are restarted when they end, like those of a Deployment. They are killed on drop.
pub(crate) struct Supervisor {
    task: tokio::task::JoinSet<()>,
    ended: Arc<AtomicUsize>,
}

impl Supervisor {
    /// Supervises these processes from now on.
    pub(crate) fn of(mut processes: Vec<Process>) -> Self {
        let (mut task, ended) = (tokio::task::JoinSet::new(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&ended);
        task.spawn(async move {
            loop {
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                for process in &mut processes {
                    // A failed restart is retried; a permanent failure shows in the test's own conditions.
                    if process.ended() && process.restart().is_ok() {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        Self { task, ended }
    }

    /// Returns the number of restarts so far.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends the processes.
    pub(crate) async fn stop(mut self) {
        self.task.shutdown().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
