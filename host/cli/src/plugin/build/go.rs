//! Plugins in Go, by the standard compiler.

use std::fs;
use std::process::Command;

use anyhow::Context as _;

use super::Source;
use super::module::{Adapter, component};
use super::toolchain::run;

/// WASI preview 1 for the runtime of Go.
const WASI: Adapter = Adapter {
    name: "wasi_snapshot_preview1",
    text: include_str!("wasi.wat"),
};

pub(super) fn build(source: &Source<'_>) -> anyhow::Result<()> {
    let wit = source.write_contract()?;
    let module = source.work().join("plugin.module.wasm");
    // The exports of each kind are behind a build tag.
    let interfaces = source.settings.interfaces();
    let tags: Vec<_> = interfaces
        .iter()
        .map(|interface| format!("bulkhead_{interface}"))
        .collect();
    let mut command = Command::new("go");
    command
        .current_dir(source.folder)
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env_remove("GOFLAGS")
        .args(["build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-tags"])
        .arg(tags.join(","))
        .arg("-o")
        .args([module.as_os_str(), ".".as_ref()]);
    run(command)?;
    let path = source.folder.join(&module);
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let encoded = component(bytes, &source.folder.join(wit), Source::WORLD, &WASI)?;
    let path = source.folder.join(&source.component);
    fs::write(&path, encoded).with_context(|| format!("writing {}", path.display()))
}
