//! Programs that a task runs, with errors that name the command.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

/// Returns the folder of cargo's downloads and settings, if the environment names it.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let of_user = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(of_user)
}

/// Runs cargo in the workspace, and fails if it fails.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    cargo_with(root, arguments, &[])
}

/// Runs cargo in the workspace with environment variables, and fails if it fails.
pub(crate) fn cargo_with(root: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let shown = format!("cargo {}", arguments.join(" "));
    let mut command = Command::new(program);
    // The tasks find what they build in the target folder of the workspace.
    command
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR");
    // Variables of the package xtask: build scripts such as ring's run again when they change, so that the next cargo
    // without them would rebuild all that depends on those.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_package) {
            command.env_remove(name);
        }
    }
    let status = command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root)
        .status();
    let status = status.with_context(|| format!("starting {shown}"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Runs a program, and fails if it fails.
pub(crate) fn run(root: &Path, program: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let shown = format!(
        "{} {}",
        program.file_name().unwrap_or_default().display(),
        arguments.join(" ")
    );
    let status = Command::new(program).args(arguments).current_dir(root).status();
    let status = status.with_context(|| format!("starting {}", program.display()))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Runs a program, and returns its exit code.
pub(crate) fn exit_code(root: &Path, program: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let status = Command::new(program).args(arguments).current_dir(root).status();
    let status = status.with_context(|| format!("starting {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs git in a folder, and returns its output without the last line break. Fails if it fails.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let shown = format!("git {}", arguments.join(" "));
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} failed: {}", message.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
