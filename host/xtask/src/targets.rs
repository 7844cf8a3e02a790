//! Rust targets, installed with rustup when they are missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Target of plugins in Rust. `bulkhead plugin build` names it when it is missing, but installs nothing for Rust.
pub(crate) const PLUGIN: &str = "wasm32-unknown-unknown";

/// Installs the standard library of a Rust target if it is missing. `user` names the part that needs it, for the error.
pub(crate) fn ensure(target: &str, user: &str) -> anyhow::Result<()> {
    if sysroot()?.join("lib/rustlib").join(target).join("lib").is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", target]).status();
    if added.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!(
        "{user} needs the Rust target {target}, and rustup could not add it; install it with `rustup target add \
         {target}`, or with your distribution's package for it"
    )
}

/// Returns the folder of the Rust toolchain.
pub(crate) fn sysroot() -> anyhow::Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .context("asking rustc for its sysroot")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim()))
}
