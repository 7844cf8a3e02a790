//! Plugins in a folder of their own, by the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Folder of the toolchains.
const TOOLCHAINS: &str = "target/tools/toolchains";

/// The program, and the folder of the plugins.
pub(super) struct Plugins<'a> {
    root: &'a Path,
    program: &'a Path,
    folder: PathBuf,
}

impl<'a> Plugins<'a> {
    /// Uses an empty folder, relative to the workspace.
    pub(super) fn new(root: &'a Path, program: &'a Path, folder: &str) -> anyhow::Result<Self> {
        let folder = root.join(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self { root, program, folder })
    }

    /// Creates a plugin. The last part of its path is its name. Returns its folder.
    pub(super) fn create(&self, path: &str, language: &str, kind: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(path);
        let path = folder.display().to_string();
        self.run(&self.folder, &["new", &path, "--lang", language, "--kind", kind])?;
        Ok(folder)
    }

    /// Runs `bulkhead plugin` in a folder. Returns standard output; an error has all output.
    pub(super) fn run(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        succeed(self.command(folder, arguments))
    }

    /// Runs `bulkhead plugin` in a folder. Returns both streams, the lines of the plugin first.
    pub(super) fn lines(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(folder, arguments);
        let output = command.output().with_context(|| format!("starting {command:?}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(text(&output.stderr) + &text(&output.stdout))
    }

    fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .arg("plugin")
            .args(arguments)
            .current_dir(folder)
            .env("BULKHEAD_TOOLCHAINS", self.root.join(TOOLCHAINS))
            // Empty at the start of a run, so that the first load of a component compiles it.
            .env("BULKHEAD_PLUGIN_CACHE", self.folder.join("cache"))
            // One target folder for all crates, so that the SDK is compiled once.
            .env("CARGO_TARGET_DIR", self.root.join("target/languages-cargo"));
        command
    }
}

/// Runs a command. Returns standard output; an error has all output.
pub(super) fn succeed(mut command: Command) -> anyhow::Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("starting {shown}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let (out, lines) = (text(&output.stdout), text(&output.stderr));
        bail!(
            "{shown} failed ({})\n{}\n{}",
            output.status,
            out.trim_end(),
            lines.trim_end()
        );
    }
    Ok(text(&output.stdout))
}
