//! Plugins in Go, by the standard compiler.

use std::path::Path;
use std::process::Command;

use super::toolchain::run;
use super::{Source, WORK};

pub(super) fn build(source: &Source<'_>) -> anyhow::Result<()> {
    let wit = source.write_contract()?;
    let module = Path::new(WORK).join("plugin.module.wasm");
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
    source.write_component(&module, &wit)
}
