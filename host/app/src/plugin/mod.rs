//! `bulkhead plugin`: everything that a person who writes a plugin needs, without a cluster.

mod bench;
mod build;
mod inspect;
mod new;
mod run;
mod target;
mod test;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;

/// Exit code when something about the plugin is not as it should be.
const CHECK_FAILED: u8 = 1;
/// Exit code when a file, a flag or the plugin cannot be used at all.
const BAD_INPUT: u8 = 2;

/// Write, build, try out and test policy plugins.
#[derive(Subcommand)]
pub(crate) enum Command {
    New(new::Arguments),
    Build(build::Arguments),
    Inspect(inspect::Arguments),
    Run(run::Arguments),
    Test(test::Arguments),
    Bench(bench::Arguments),
}

/// Runs the command.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::New(arguments) => new::run(arguments).map(|()| true),
        Command::Build(arguments) => build::run(arguments).map(|()| true),
        Command::Inspect(arguments) => inspect::run(arguments).map(|()| true),
        Command::Run(arguments) => run::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Bench(arguments) => bench::run(arguments).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(CHECK_FAILED),
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}
