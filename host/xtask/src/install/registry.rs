//! Registry of the CNCF project distribution on a loopback address.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::tools::GoTool;

const REGISTRY: GoTool = GoTool {
    name: "registry",
    folder: "host/xtask/go/registry",
    package: "github.com/distribution/distribution/v3/cmd/registry",
};
/// Time limit for its start.
const START_MAX: Duration = Duration::from_secs(30);

/// A running registry without TLS. It ends when it is dropped.
pub(super) struct Registry {
    address: String,
    child: Child,
}

impl Registry {
    /// Builds the registry if it is missing, and starts it. `folder` gets its data and its log.
    ///
    /// # Errors
    ///
    /// It cannot be built, or does not accept connections in time.
    pub(super) fn start(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let program = REGISTRY.ensure(root)?;
        let address = {
            let free = TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
            free.local_addr()?.to_string()
        };
        let configuration = folder.join("configuration.yaml");
        let text = format!(
            "version: 0.1\nlog: {{level: warn}}\nhttp: {{addr: \"{address}\"}}\nstorage:\n  filesystem: {{rootdirectory: \
             \"{}\"}}\n",
            folder.join("data").display()
        );
        fs::write(&configuration, text).with_context(|| format!("writing {}", configuration.display()))?;
        let log = folder.join("registry.log");
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let child = Command::new(program)
            .arg("serve")
            .arg(&configuration)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("starting the registry")?;
        let mut registry = Self { address, child };
        let start = Instant::now();
        while TcpStream::connect(&registry.address).is_err() {
            let has_ended = registry.child.try_wait()?.is_some();
            if has_ended || start.elapsed() > START_MAX {
                bail!("the registry does not accept connections; see {}", log.display());
            }
            #[allow(clippy::disallowed_methods, reason = "there is no async runtime here")]
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(registry)
    }

    /// Returns host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
