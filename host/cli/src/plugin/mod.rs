//! `bulkhead plugin`: tools for plugin authors. None of them needs a cluster.

mod bench;
mod build;
mod inspect;
mod kind;
mod language;
mod new;
mod object;
mod run;
mod target;
mod test;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit;
pub(crate) use target::load;

/// Write, build, try out and test policy plugins.
#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  bulkhead plugin new hold --kind eviction-check --lang lua
  bulkhead plugin test hold")]
pub(crate) enum Command {
    New(new::Arguments),
    Build(build::Arguments),
    Inspect(inspect::Arguments),
    Object(object::Arguments),
    Run(run::Arguments),
    Test(test::Arguments),
    Bench(bench::Arguments),
}

/// Runs the command. Exits with 1 if a call, test or case fails, and with 2 if the plugin or an argument cannot be
/// used.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::New(arguments) => new::run(arguments).map(|()| true),
        Command::Build(arguments) => build::run(arguments).map(|()| true),
        Command::Inspect(arguments) => inspect::run(arguments).map(|()| true),
        Command::Object(arguments) => object::run(arguments).map(|()| true),
        Command::Run(arguments) => run::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Bench(arguments) => bench::run(arguments).map(|()| true),
    };
    exit::code(done)
}
