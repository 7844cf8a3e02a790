//! Peak resident memory of operations whose input comes from outside, above the memory at their start.
//!
//! `cargo build --workspace --bins --examples`, then `target/debug/examples/memory SUBJECT`
//! prints one figure. Other processes prepare the journal and the components, so that their memory does not count.
//! `BENCHMARKS.md` holds the figures. Reads `/proc`, so it runs only on Linux.
#![allow(clippy::print_stdout, reason = "it prints its figure")]
#![allow(clippy::unwrap_used, reason = "files of tests, which panic, make its input")]

#[allow(dead_code, reason = "the tests of the engine make further components")]
#[path = "../../../engine-wasm/tests/bounds/component.rs"]
mod component;
#[allow(dead_code, reason = "the tests of the engine ask for more")]
#[path = "../../../engine-wasm/tests/bounds/functions.rs"]
mod functions;
mod guests;
#[path = "../../../engine-wasm/tests/bounds/input.rs"]
mod input;
mod journal;
#[path = "../../../controllers/tests/member_memory/large_member.rs"]
mod large_member;
#[allow(dead_code, reason = "the example soak uses the rest")]
#[path = "../outside/mod.rs"]
mod outside;
mod peak;
mod pods;
#[path = "../../../journal/tests/journal/records.rs"]
mod records;
mod reviews;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};

/// Measure the peak resident memory of one operation.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Open a journal of 256 MiB for writing.
    Journal,
    /// List eight members with 20,000 pods each, and sum them up.
    Pods,
    /// Receive the first half of 100 webhook reviews of the largest size.
    Reviews {
        /// Program to measure; by default the one that was built beside this example.
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Run a script that copies its input until its memory limit ends it.
    Lua,
    /// Run components that call a function of the host until a limit ends them, for each function.
    Wasm,
    /// Fill the journal of the subject `journal`.
    #[command(hide = true)]
    FillJournal {
        /// Directory of the journal.
        directory: PathBuf,
    },
    /// Compile the components of the subject `wasm`.
    #[command(hide = true)]
    Compile {
        /// Directory of the cache.
        directory: PathBuf,
    },
}

/// Runs a hidden subject in a process of its own, so that its memory is not that of this process.
fn prepare(subject: &str, directory: &Path) -> anyhow::Result<()> {
    let this = std::env::current_exe().context("finding this example")?;
    let status = Command::new(this)
        .arg(subject)
        .arg(directory)
        .status()
        .with_context(|| format!("running {subject}"))?;
    if !status.success() {
        bail!("{subject} ended with {status}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (subject, peak_kib) = match Arguments::parse().subject {
        Subject::FillJournal { directory } => return journal::fill(&directory),
        Subject::Compile { directory } => return guests::compile(&directory),
        Subject::Journal => journal::open()?,
        Subject::Pods => pods::sum().await?,
        Subject::Reviews { program } => reviews::receive(program).await?,
        Subject::Lua => guests::lua()?,
        Subject::Wasm => guests::wasm()?,
    };
    println!("| {subject} | {:.1} MiB |", peak_kib as f64 / 1024.0);
    Ok(())
}
