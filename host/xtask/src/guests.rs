//! The example plugins as WebAssembly components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds every crate of `examples/plugins` and writes it as a component to `target/guests/<crate>.wasm`. Files
/// whose content would not change are left alone. Returns the components, in order of name.
pub(crate) fn build(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    ensure_target()?;
    let (workspace, out) = (root.join("examples/plugins"), root.join("target/guests"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--target", TARGET])
        .current_dir(&workspace)
        .env("CARGO_TARGET_DIR", &out)
        .status()
        .context("starting cargo build in examples/plugins")?;
    if !status.success() {
        bail!("building the example plugins failed ({status})");
    }
    let mut components = Vec::new();
    for name in guest_names(&workspace)? {
        let module = out.join(TARGET).join("release").join(format!("{}.wasm", name.replace('-', "_")));
        components.push(componentize(&module, &out.join(format!("{name}.wasm")))?);
    }
    Ok(components)
}

fn guest_names(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace).with_context(|| format!("reading {}", workspace.display()))? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn componentize(module: &Path, component: &Path) -> anyhow::Result<PathBuf> {
    let bytes = fs::read(module).with_context(|| format!("reading {}", module.display()))?;
    let encoded = ComponentEncoder::default().validate(true).module(&bytes).and_then(|encoder| encoder.encode());
    let encoded = encoded.with_context(|| format!("turning {} into a component", module.display()))?;
    if fs::read(component).ok().as_deref() != Some(&encoded) {
        fs::write(component, encoded).with_context(|| format!("writing {}", component.display()))?;
    }
    Ok(component.to_path_buf())
}

/// Asks rustup for the target unless it is there.
fn ensure_target() -> anyhow::Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc).args(["--print", "sysroot"]).output().context("asking rustc for its sysroot")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    if sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    if added.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!(
        "the example plugins need the Rust target {TARGET}, and rustup could not add it; install it with \
         `rustup target add {TARGET}`, or with your distribution's package for it"
    )
}
