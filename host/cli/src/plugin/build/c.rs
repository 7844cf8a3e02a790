//! Plugins in C, by the C compiler of Zig, which has a C library for WebAssembly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::toolchain::{Toolchain, Toolchains, run};
use super::{Source, WORK};

const TOOLCHAIN: Toolchain = Toolchain {
    name: "ziglang-0.17.1",
    files: &[],
    install: &[
        &["python3", "-m", "venv", "venv"],
        &[
            "venv/bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "ziglang==0.17.1",
        ],
    ],
};

/// Folder of the SDK.
const SDK: &str = "vendor/bulkhead";
/// Options of the compiler. The host clears the memory of a fresh instance before each call, so the stack is small.
const OPTIONS: [&str; 10] = [
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=c11",
    "-Os",
    "-Wall",
    "-Wextra",
    // The functions of the SDK for other kinds.
    "-Wno-unused-function",
    "-Wl,-z,stack-size=131072",
    "-Wl,--strip-all",
    "-Ivendor/bulkhead",
];

pub(super) fn build(source: &Source<'_>, toolchains: &Toolchains) -> anyhow::Result<()> {
    let toolchain = toolchains.get(&TOOLCHAIN)?;
    let wit = source.write_contract()?;
    let module = Path::new(WORK).join("plugin.module.wasm");
    let mut command = Command::new(toolchain.join("venv/bin/python"));
    command
        .current_dir(source.folder)
        .args(["-m", "ziglang", "cc"])
        .args(OPTIONS);
    for interface in source.settings.interfaces() {
        command.arg(format!("-DBULKHEAD_{}", interface.to_uppercase()));
    }
    command.arg("plugin.c").args(further_sources(source)?);
    for part in [
        "bulkhead.c",
        "bulkhead_json.c",
        "bulkhead_component.c",
        "bulkhead_export.c",
    ] {
        command.arg(format!("{SDK}/{part}"));
    }
    command.arg("-o").arg(&module);
    run(command)?;
    source.write_component(&module, &wit)
}

/// Returns the C files of the folder `src`, if there is one, in order of name.
fn further_sources(source: &Source<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let folder = source.folder.join("src");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let name = entry
            .with_context(|| format!("reading {}", folder.display()))?
            .file_name();
        let path = PathBuf::from("src").join(name);
        if path.extension().is_some_and(|extension| extension == "c") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
