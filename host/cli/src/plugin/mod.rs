//! `bulkhead plugin`: tools for plugin authors, and for the distribution of plugins. None of them needs a cluster.

mod bench;
mod build;
mod images;
mod inspect;
mod kind;
mod language;
mod layout;
mod list;
mod new;
mod object;
mod pull;
mod push;
mod run;
mod sign;
mod target;
mod test;
mod verify;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::exit;
pub(crate) use target::load;

/// Write, build, test and distribute policy plugins.
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
    Push(push::Arguments),
    Pull(pull::Arguments),
    Save(layout::SaveArguments),
    Load(layout::LoadArguments),
    List(list::Arguments),
    Sign(sign::Arguments),
    Verify(verify::Arguments),
}

/// Runs the command. Exits with 1 if a call, test, case or signature fails, and with 2 if the plugin or an argument cannot be
/// used.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::New(arguments) => new::run(arguments).map(|()| true),
        Command::Build(arguments) => build::run(arguments).map(|()| true),
        Command::Inspect(arguments) => inspect::run(arguments).map(|()| true),
        Command::Object(arguments) => object::run(arguments).map(|()| true),
        Command::Run(arguments) => run::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Push(arguments) => push::run(arguments).map(|()| true),
        Command::Pull(arguments) => pull::run(arguments).map(|()| true),
        Command::Save(arguments) => layout::save(arguments).map(|()| true),
        Command::Load(arguments) => layout::load(arguments).map(|()| true),
        Command::List(arguments) => list::run(arguments).map(|()| true),
        Command::Sign(arguments) => sign::run(arguments).map(|()| true),
        Command::Verify(arguments) => verify::run(arguments),
    };
    exit::code(done)
}
