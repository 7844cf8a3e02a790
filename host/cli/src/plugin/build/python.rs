//! Plugins in Python, by componentize-py.

use std::path::Path;
use std::process::Command;

use super::toolchain::{Toolchain, Toolchains, run};
use super::{Source, WORK};

const TOOLCHAIN: Toolchain = Toolchain {
    name: "componentize-py-0.25.1",
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
            "componentize-py==0.25.1",
        ],
    ],
};

/// Module that the component starts with.
const ENTRY: &str = "\
import plugin  # noqa: F401 (its decorators declare the plugin)
from bulkhead.component import *  # noqa: F403
";

pub(super) fn build(source: &Source<'_>, toolchains: &Toolchains) -> anyhow::Result<()> {
    let toolchain = toolchains.get(&TOOLCHAIN)?;
    let wit = source.write_contract()?;
    source.write("app/bulkhead_entry.py", ENTRY)?;
    let mut command = Command::new(toolchain.join("venv/bin/componentize-py"));
    command
        .current_dir(source.folder)
        // componentize-py adds the packages of an active environment.
        .env_remove("VIRTUAL_ENV")
        .arg("--quiet")
        .arg("--wit-path")
        .arg(wit)
        .args(["--world", Source::WORLD, "componentize"])
        .args(["--python-path", ".", "--python-path", "vendor", "--python-path"])
        .arg(Path::new(WORK).join("app"))
        .arg("bulkhead_entry")
        .arg("--output")
        .arg(&source.component);
    run(command)
}
