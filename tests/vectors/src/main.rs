//! `cargo xtask vectors`: runs a file of cases, prints every case that comes out differently and a line of counts.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_vectors::{interpreter, scheduler};
use clap::{Parser, ValueEnum};

/// Run a file of cases that were made by executing Karmada's own code; fails when one comes out differently.
#[derive(Parser)]
#[command(name = "cargo xtask vectors")]
struct Arguments {
    /// What the cases are about.
    subject: Subject,
    /// The file.
    file: PathBuf,
    /// Folder with the customizations that third-party cases were made with; without it our library answers.
    #[arg(long, value_name = "DIR")]
    customizations: Option<PathBuf>,
    /// The program whose command `interpret` answers the cases of karmadactl's.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder with our library.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/lua/kinds"))]
    library: PathBuf,
}

/// What a file of cases is about.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subject {
    /// Where bindings run.
    Scheduler,
    /// What an object needs, how it is, and what comes back of it.
    Interpreter,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { subject, file, customizations, program, library } = Arguments::parse();
    // The command is run in another folder.
    let program = program.map(std::path::absolute).transpose().context("--program")?;
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let report = match subject {
        Subject::Scheduler => scheduler::run(&text),
        Subject::Interpreter => {
            interpreter::run(&text, &interpreter::Options { customizations, program, library: Some(library) })
        }
    };
    let report = report.with_context(|| format!("running {}", file.display()))?;
    println!("{report}");
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
