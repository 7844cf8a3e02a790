//! Guest programs as WebAssembly components: example plugins, and guests for the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use wit_component::ComponentEncoder;

use crate::targets;

/// Workspaces of guest programs, with the Rust target of each.
const WORKSPACES: [(&str, &str); 2] = [
    ("examples/plugins", targets::PLUGIN),
    ("tests/guests/wasip2", "wasm32-wasip2"),
];

/// Builds every crate of the workspaces, and writes it as a component to `target/guests/<crate>.wasm`. Files with
/// unchanged content are not rewritten. Returns the components, in order of workspace and name.
pub(crate) fn build(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let out = root.join("target/guests");
    let mut components = Vec::new();
    for (workspace, target) in WORKSPACES {
        targets::ensure(target, "a guest")?;
        compile(root, workspace, target, &out)?;
        for name in guest_names(&root.join(workspace))? {
            let built = out
                .join(target)
                .join("release")
                .join(format!("{}.wasm", name.replace('-', "_")));
            components.push(componentize(&built, &out.join(format!("{name}.wasm")))?);
        }
    }
    Ok(components)
}

fn compile(root: &Path, workspace: &str, target: &str, out: &Path) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--target", target])
        .current_dir(root.join(workspace))
        .env("CARGO_TARGET_DIR", out)
        .status()
        .with_context(|| format!("starting cargo build in {workspace}"))?;
    if !status.success() {
        bail!("building the guests in {workspace} failed ({status})");
    }
    Ok(())
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

/// Converts a build to a component, unless the linker of its target has done so already.
fn componentize(built: &Path, component: &Path) -> anyhow::Result<PathBuf> {
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    let bytes = fs::read(built).with_context(|| format!("reading {}", built.display()))?;
    let encoded = if bytes.starts_with(COMPONENT) {
        bytes
    } else {
        let encoded = ComponentEncoder::default()
            .validate(true)
            .module(&bytes)
            .and_then(|encoder| encoder.encode());
        encoded.with_context(|| format!("turning {} into a component", built.display()))?
    };
    if fs::read(component).ok().as_deref() != Some(&encoded) {
        fs::write(component, encoded).with_context(|| format!("writing {}", component.display()))?;
    }
    Ok(component.to_path_buf())
}
