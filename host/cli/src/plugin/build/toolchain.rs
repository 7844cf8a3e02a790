//! Toolchains that `bulkhead plugin build` installs, each at a fixed version into a folder of its own.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use bulkhead_server::user_folder::{Kind, default_folder};

/// File that is written last into the folder of a toolchain.
const COMPLETE: &str = ".complete";

/// A toolchain.
pub(super) struct Toolchain {
    /// Name of the folder, with the version.
    pub(super) name: &'static str,
    /// Text of files that the installation needs, by name.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Commands that install it, run in its folder.
    pub(super) install: &'static [&'static [&'static str]],
}

/// Folder of toolchains.
pub(super) struct Toolchains {
    folder: PathBuf,
    installs: bool,
}

impl Toolchains {
    /// Uses a folder, or the default one.
    pub(super) fn new(folder: Option<&Path>, installs: bool) -> anyhow::Result<Self> {
        let default = || default_folder(Kind::Cache).map(|cache| cache.join("toolchains"));
        let folder = folder.map(Path::to_path_buf).or_else(default);
        let folder = folder.context("there is no folder for toolchains: set --toolchains, $XDG_CACHE_HOME or $HOME")?;
        let folder = std::path::absolute(&folder).with_context(|| format!("finding {}", folder.display()))?;
        Ok(Self { folder, installs })
    }

    /// Returns the folder of a toolchain, and installs it first if it is missing.
    pub(super) fn get(&self, toolchain: &Toolchain) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(toolchain.name);
        if !folder.join(COMPLETE).is_file() {
            if !self.installs {
                bail!("{}", missing(&folder, toolchain));
            }
            self.install(&folder, toolchain)?;
        }
        // The scripts are those of this program, also in a folder of an older one.
        for (name, text) in toolchain.files {
            let path = folder.join(name);
            if fs::read_to_string(&path).is_ok_and(|found| found == *text) {
                continue;
            }
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(folder)
    }

    fn install(&self, folder: &Path, toolchain: &Toolchain) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder).with_context(|| format!("making {}", self.folder.display()))?;
        let lock = self.folder.join(format!("{}.lock", toolchain.name));
        let lock = File::create(&lock).with_context(|| format!("writing {}", lock.display()))?;
        lock.lock()
            .context("waiting for another build that installs the toolchain")?;
        if folder.join(COMPLETE).is_file() {
            return Ok(());
        }
        writeln!(
            anstream::stderr(),
            "installing {} into {} (once)",
            toolchain.name,
            folder.display()
        )?;
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing an incomplete {}", folder.display()));
            }
            _ => (),
        }
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        for (name, text) in toolchain.files {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        for line in toolchain.install {
            let [program, arguments @ ..] = line else { continue };
            let program = if program.contains('/') {
                folder.join(program)
            } else {
                PathBuf::from(program)
            };
            let mut command = Command::new(&program);
            command.args(arguments).current_dir(folder);
            run(command)?;
        }
        fs::write(folder.join(COMPLETE), "").with_context(|| format!("writing {COMPLETE} in {}", folder.display()))
    }
}

fn missing(folder: &Path, toolchain: &Toolchain) -> String {
    let lines = toolchain.install.iter().map(|line| format!("\n  {}", line.join(" ")));
    format!(
        "the toolchain {} is not installed in {}; `bulkhead plugin build` without --no-install runs there:{}",
        toolchain.name,
        folder.display(),
        lines.collect::<String>()
    )
}

/// Returns advice on how to get a program.
fn advice(program: &str) -> &'static str {
    match Path::new(program).file_name().and_then(|name| name.to_str()) {
        Some("python3") => {
            "install Python 3.10 or newer with venv, on Debian with: apt-get install python3 python3-venv"
        }
        Some("npm" | "node") => "install Node.js 20 or newer with npm, on Debian with: apt-get install nodejs npm",
        Some("go") => "install Go 1.24 or newer, on Debian with: apt-get install golang",
        _ => {
            "it is a part of the toolchain; remove the folder of the toolchain, so that the next build installs it again"
        }
    }
}

/// Runs a program, whose messages go to standard error, and fails if it fails.
pub(super) fn run(mut command: Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let shown = format!("{program} {}", arguments.join(" "));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn();
    let mut child = child.with_context(|| format!("starting {program}: {}", advice(&program)))?;
    // Standard output has the result of the build only.
    if let Some(mut lines) = child.stdout.take() {
        std::io::copy(&mut lines, &mut anstream::stderr())
            .with_context(|| format!("reading the output of {program}"))?;
    }
    let status = child.wait().with_context(|| format!("waiting for {program}"))?;
    if !status.success() {
        bail!("{shown} failed ({status}); its messages are above");
    }
    Ok(())
}
