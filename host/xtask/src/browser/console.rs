//! Processes with a web console.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::sh;

/// Arguments of a federation that fails over soon after the loss of a member.
const EMBEDDED: [&str; 9] = [
    "run",
    "--embedded",
    "--members=3",
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--cluster-failure-threshold=5s",
    "--health-probe-bind-address=127.0.0.1:0",
    "--console-bind-address=127.0.0.1:0",
];
/// Text before the address in the log.
const ADDRESS: &str = "console at ";
/// Time limit for the start of a process on a busy machine.
const START_MAX: Duration = Duration::from_mins(1);

/// Process that serves a console, and is killed when it is dropped.
pub(super) struct Console {
    child: Child,
    /// Address of the first page.
    pub(super) address: String,
    /// Credentials for the control plane of an embedded federation.
    pub(super) kubeconfig: PathBuf,
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Console {
    /// Simulates a scenario, and serves its journal. The folder is relative to the root, and replaced.
    ///
    /// # Errors
    ///
    /// The scenario fails, or the console does not start.
    pub(super) fn of_scenario(root: &Path, program: &Path, scenario: &str, folder: &str) -> anyhow::Result<Self> {
        let journal = format!("{}/journal", emptied(root, folder)?);
        sh::run(root, program, &["simulate", scenario, "--journal", &journal])?;
        let arguments = ["console", "--journal", &journal, "--bind-address", "127.0.0.1:0"];
        Self::start(root, program, folder, &arguments)
    }

    /// Starts an embedded federation that serves a console. The folder is relative to the root, and replaced.
    ///
    /// # Errors
    ///
    /// The process does not start.
    pub(super) fn of_federation(root: &Path, program: &Path, folder: &str) -> anyhow::Result<Self> {
        let folder = emptied(root, folder)?;
        let (journal, kubeconfig) = (format!("{folder}/journal"), format!("{folder}/kubeconfig"));
        let files = ["--journal", &journal, "--write-kubeconfig", &kubeconfig];
        Self::start(root, program, folder, &[&EMBEDDED[..], &files].concat())
    }

    #[expect(clippy::disallowed_methods, reason = "it waits for another process")]
    fn start(root: &Path, program: &Path, folder: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let path = root.join(folder).join("log");
        let about = || format!("writing {}", path.display());
        let log = File::create(&path).with_context(about)?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(log.try_clone().with_context(about)?)
            .stderr(log)
            .spawn();
        let mut console = Self {
            child: child.with_context(|| format!("starting {}", program.display()))?,
            address: String::new(),
            kubeconfig: root.join(folder).join("kubeconfig"),
        };
        let started = Instant::now();
        while console.address.is_empty() {
            if console.child.try_wait()?.is_some() || started.elapsed() > START_MAX {
                bail!("the console does not start; see {}", path.display());
            }
            std::thread::sleep(Duration::from_millis(100));
            console.address = address(&path)?.unwrap_or_default();
        }
        Ok(console)
    }

    /// Returns the number of the process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }
}

/// Returns the address in a log, with a slash at its end.
fn address(log: &Path) -> anyhow::Result<Option<String>> {
    for line in BufReader::new(File::open(log)?).lines() {
        if let Some((_, address)) = line?.split_once(ADDRESS) {
            return Ok(Some(format!("{}/", address.trim().trim_end_matches('/'))));
        }
    }
    Ok(None)
}

fn emptied<'f>(root: &Path, folder: &'f str) -> anyhow::Result<&'f str> {
    let path = root.join(folder);
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    Ok(folder)
}
