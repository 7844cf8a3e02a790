//! Commands that end, with their output.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Runs a command and returns its exit code and output.
pub(crate) fn said(command: &mut Command) -> anyhow::Result<(Option<i32>, String)> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}

/// Runs a command with standard input and returns its standard output; fails if it fails.
pub(crate) fn output(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let shown = format!("{command:?}");
    let about = || format!("running {shown}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(about)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).with_context(about)?;
    }
    let output = child.wait_with_output().with_context(about)?;
    if !output.status.success() {
        bail!("{shown} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
