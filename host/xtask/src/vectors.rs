//! Cases that were made by executing Karmada's own code.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_vectors::interpreter;
use clap::ValueEnum;

/// What a file of cases is about.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Subject {
    /// Where bindings run.
    Scheduler,
    /// What an object needs, how it is, and what comes back of it.
    Interpreter,
}

/// Runs a file, prints every case that comes out differently and a line of counts.
pub(crate) fn run(subject: Subject, file: &Path, scripts: interpreter::Options) -> anyhow::Result<ExitCode> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let report = match subject {
        Subject::Scheduler => bulkhead_vectors::scheduler::run(&text),
        Subject::Interpreter => interpreter::run(&text, &scripts),
    };
    let report = report.with_context(|| format!("running {}", file.display()))?;
    println!("{report}");
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
