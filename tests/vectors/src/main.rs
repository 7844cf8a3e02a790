//! `cargo xtask vectors`: runs a case file and prints every failed case and a line of counts.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_vectors::{interpreter, scheduler};
use clap::{Parser, ValueEnum};

/// Run a case file that was recorded by executing Karmada's own code; fail if an outcome differs.
#[derive(Parser)]
#[command(name = "cargo xtask vectors")]
struct Arguments {
    /// Subject of the cases.
    subject: Subject,
    /// Case file.
    file: PathBuf,
    /// Folder with the customizations that third-party cases were recorded with; without it, Bulkhead's library
    /// answers.
    #[arg(long, value_name = "DIR")]
    customizations: Option<PathBuf>,
    /// Program whose command `interpret` runs the cases of `karmadactl interpret`.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder with Bulkhead's library.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/lua/kinds"))]
    library: PathBuf,
}

/// Subject of a case file.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subject {
    /// Scheduling of bindings.
    Scheduler,
    /// Interpretation of objects: requirements, health, status.
    Interpreter,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments {
        subject,
        file,
        customizations,
        program,
        library,
    } = Arguments::parse();
    // The command runs in another folder, so the path must be absolute.
    let program = program.map(std::path::absolute).transpose().context("--program")?;
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let report = match subject {
        Subject::Scheduler => scheduler::run(&text),
        Subject::Interpreter => interpreter::run(
            &text,
            &interpreter::Options {
                customizations,
                program,
                library: Some(library),
            },
        ),
    };
    let report = report.with_context(|| format!("running {}", file.display()))?;
    println!("{report}");
    Ok(if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
