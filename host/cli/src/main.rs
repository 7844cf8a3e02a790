//! The `bulkhead` program.

mod account;
mod block_on;
mod config;
mod conflict;
mod console;
mod crds;
mod decisions;
mod doctor;
mod drain;
mod exit;
mod guest_lines;
#[cfg(test)]
mod help;
mod interpret;
mod join;
mod json_schema;
mod kubeconfig;
mod kubectl;
mod log;
mod output;
mod pause;
mod plugin;
mod profiles;
#[cfg(test)]
mod reference;
mod schema;
mod shell;
mod simulate;
mod top;
mod uninstall;
mod version;
mod what_if;

use std::ffi::OsString;
use std::process::ExitCode;

use bulkhead_server::traces::Traces;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// With the allocator of the C library, simulations take a quarter more processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Failover runtime for Karmada-style multi-cluster Kubernetes, and a host for policy plugins.
#[derive(Parser)]
#[command(version = version::short(), propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  bulkhead simulate examples/nginx-duplicated/scenario.yaml
  bulkhead run --embedded
  bulkhead doctor --config bulkhead.yaml")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Simulate(simulate::Arguments),
    Profiles(profiles::Arguments),
    Schema(schema::Arguments),
    Run(Box<bulkhead_server::RunArguments>),
    Agent(Box<bulkhead_server::agent::AgentArguments>),
    Top(top::Arguments),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Doctor(Box<doctor::DoctorArguments>),
    Crds(crds::Arguments),
    Account(Box<account::AccountArguments>),
    Uninstall(Box<uninstall::UninstallArguments>),
    Join(join::JoinArguments),
    Unjoin(join::UnjoinArguments),
    Drain(drain::DrainArguments),
    Undrain(drain::UndrainArguments),
    Pause(pause::PauseArguments),
    Resume(pause::ResumeArguments),
    Interpret(Box<interpret::Arguments>),
    #[command(flatten)]
    Decisions(decisions::Command),
    Console(Box<console::ConsoleArguments>),
    WhatIf(Box<what_if::Arguments>),
    #[command(subcommand)]
    Plugin(plugin::Command),
    Version(version::Arguments),
    Completion(shell::CompletionArguments),
    Man(shell::ManArguments),
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let mut command = kubectl::named(Arguments::command(), words.first().map(OsString::as_os_str));
    let given = config::parse(&command, &words).unwrap_or_else(|error| error.exit());
    let arguments = Arguments::from_arg_matches(&given.matches);
    match arguments
        .unwrap_or_else(|error| error.format(&mut command).exit())
        .command
    {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Run(arguments) => {
            let traces = log::install(arguments.log());
            let build = version::build_info();
            let ended = bulkhead_server::run(&arguments, build, console::pages, traces.as_ref());
            traces.iter().for_each(Traces::end);
            exit::of_server(ended)
        }
        Command::Agent(arguments) => {
            let traces = log::install(arguments.log());
            let ended = bulkhead_server::agent::run(&arguments, version::build_info(), traces.as_ref());
            traces.iter().for_each(Traces::end);
            exit::of_server(ended)
        }
        Command::Top(arguments) => top::run(&arguments),
        Command::Config(command) => config::run(&command, &given),
        Command::Doctor(arguments) => doctor::run(*arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Account(arguments) => account::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Join(arguments) => join::join(&arguments),
        Command::Unjoin(arguments) => join::unjoin(&arguments),
        Command::Drain(arguments) => drain::drain(&arguments),
        Command::Undrain(arguments) => drain::undrain(&arguments),
        Command::Pause(arguments) => pause::pause(&arguments),
        Command::Resume(arguments) => pause::resume(&arguments),
        Command::Interpret(arguments) => interpret::run(&arguments),
        Command::Decisions(command) => decisions::run(&command),
        Command::Console(arguments) => console::run(*arguments),
        Command::WhatIf(arguments) => what_if::run(&arguments),
        Command::Plugin(command) => plugin::run(&command),
        Command::Version(arguments) => version::run(&arguments),
        Command::Completion(arguments) => shell::completion(&arguments, command),
        Command::Man(arguments) => shell::man(&arguments, command),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_has_arguments_that_go_together() {
        Arguments::command().debug_assert();
    }
}
