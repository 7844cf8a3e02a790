//! The `bulkhead` program.

mod crds;
mod engines;
mod interpret;
mod join;
mod plugin;
mod profiles;
mod run;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Failover runtime for Karmada-style multi-cluster Kubernetes, and a host for policy plugins.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Arguments),
    Profiles(profiles::Arguments),
    Run(Box<run::Arguments>),
    Crds(crds::Arguments),
    Join(join::JoinArguments),
    Unjoin(join::UnjoinArguments),
    Interpret(Box<interpret::Arguments>),
    #[command(subcommand)]
    Plugin(plugin::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Join(arguments) => join::join(&arguments),
        Command::Unjoin(arguments) => join::unjoin(&arguments),
        Command::Interpret(arguments) => interpret::run(&arguments),
        Command::Plugin(command) => plugin::run(&command),
    }
}
