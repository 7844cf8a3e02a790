//! Registry of the CNCF project distribution, which xtask and the end-to-end tests run on a loopback address.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// Time limit for its start.
const START_MAX: Duration = Duration::from_secs(30);

/// Files of a registry that requires TLS and passwords.
#[derive(Clone, Debug)]
pub(crate) struct Protection {
    /// Certificate in PEM.
    pub(crate) certificate: PathBuf,
    /// Key of the certificate in PEM.
    pub(crate) key: PathBuf,
    /// Users with the bcrypt digests of their passwords. A change counts at once.
    pub(crate) htpasswd: PathBuf,
}

/// A registry. It ends when it is dropped.
pub(crate) struct Distribution {
    program: PathBuf,
    folder: PathBuf,
    address: String,
    child: Child,
}

impl Distribution {
    /// Starts the program at an address. `folder` gets its configuration, its data and its log. Without protection, the
    /// registry has neither TLS nor users.
    ///
    /// # Errors
    ///
    /// It does not accept connections in time.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        address: &str,
        protection: Option<&Protection>,
    ) -> anyhow::Result<Self> {
        let path = configuration_path(folder);
        let text = configuration(folder, address, protection).to_string();
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        let mut registry = Self {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            address: address.to_owned(),
            child: spawn(program, folder)?,
        };
        registry.wait()?;
        Ok(registry)
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends the program. Its data stay.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts the program again after [`Self::stop`], with its data.
    ///
    /// # Errors
    ///
    /// See [`Self::start`].
    pub(crate) fn start_again(&mut self) -> anyhow::Result<()> {
        self.child = spawn(&self.program, &self.folder)?;
        self.wait()
    }

    /// Returns the log, which has a line in the combined format for each request that has ended.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        let path = log_path(&self.folder);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// Waits until the program accepts connections.
    fn wait(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            let has_ended = self.child.try_wait()?.is_some();
            if has_ended || start.elapsed() > START_MAX {
                bail!(
                    "the registry does not accept connections; see {}",
                    log_path(&self.folder).display()
                );
            }
            #[allow(clippy::disallowed_methods, reason = "xtask has no async runtime")]
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

impl Drop for Distribution {
    fn drop(&mut self) {
        self.stop();
    }
}

fn configuration_path(folder: &Path) -> PathBuf {
    folder.join("configuration.yaml")
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("registry.log")
}

/// Returns the configuration as JSON, which is YAML.
fn configuration(folder: &Path, address: &str, protection: Option<&Protection>) -> Value {
    let mut all = json!({
        "version": "0.1",
        "log": {"level": "warn"},
        "http": {"addr": address},
        "storage": {"filesystem": {"rootdirectory": folder.join("data")}},
    });
    if let Some(Protection {
        certificate,
        key,
        htpasswd,
    }) = protection
    {
        all["http"]["tls"] = json!({"certificate": certificate, "key": key});
        all["auth"] = json!({"htpasswd": {"realm": "bulkhead", "path": htpasswd}});
    }
    all
}

fn spawn(program: &Path, folder: &Path) -> anyhow::Result<Child> {
    let log = log_path(folder);
    let file = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("opening {}", log.display()))?;
    Command::new(program)
        .arg("serve")
        .arg(configuration_path(folder))
        .env("OTEL_TRACES_EXPORTER", "none")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("starting the registry")
}
