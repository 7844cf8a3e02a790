//! Plugins in Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the crate in a folder and converts it to a component NAME.wasm beside its Cargo.toml.
pub(super) fn run(folder: &Path) -> anyhow::Result<()> {
    let module = compile(folder)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|encoder| encoder.encode());
    let encoded = encoded.context("turning the module into a component; the crate must call bulkhead_sdk::export!")?;
    let name = module
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('_', "-");
    let component = folder.join(format!("{name}.wasm"));
    fs::write(&component, &encoded).with_context(|| format!("writing {}", component.display()))?;
    super::report(&component)
}

/// Builds the crate. Returns the path of the module.
fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--lib",
            "--target",
            TARGET,
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo; a Rust toolchain is needed to build a plugin")?;
    if !output.status.success() {
        bail!(
            "cargo build in {} failed ({}); if the target is missing: rustup target add {TARGET}",
            folder.display(),
            output.status
        );
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut modules = messages.filter_map(|message| {
        let files = message
            .get("filenames")?
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .map(PathBuf::from);
        files
            .into_iter()
            .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
    });
    // Cargo reports dependencies first and the crate itself last.
    modules
        .next_back()
        .context("cargo produced no module; the crate's [lib] needs crate-type = [\"cdylib\"]")
}
