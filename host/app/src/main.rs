//! The `bulkhead` program.

mod interpret;
mod plugin;
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
    Interpret(Box<interpret::Arguments>),
    #[command(subcommand)]
    Plugin(plugin::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Interpret(arguments) => interpret::run(&arguments),
        Command::Plugin(command) => plugin::run(&command),
    }
}
