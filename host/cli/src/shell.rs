//! `bulkhead completion` and `bulkhead man`: files for shells and for `man`, generated from the arguments.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, ValueEnum};

use crate::{exit, output};

/// Print the completion script of a shell.
///
/// The shell reads it at its start: from the directory of its completions, or from its startup file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead completion bash > ~/.local/share/bash-completion/completions/bulkhead
  bulkhead completion fish > ~/.config/fish/completions/bulkhead.fish")]
pub(crate) struct CompletionArguments {
    /// Name of the shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Write man pages: one for the program and one for each command.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead man ~/.local/share/man/man1
  bulkhead man target/man")]
pub(crate) struct ManArguments {
    /// Directory to write to; created if it does not exist.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Runs `completion` for the program's arguments.
pub(crate) fn completion(arguments: &CompletionArguments, command: Command) -> ExitCode {
    let script = script(arguments.shell, command);
    exit::code(script.and_then(|script| output::print(&script)).map(|()| true))
}

fn script(shell: Shell, mut command: Command) -> anyhow::Result<String> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let name = command.get_name().to_owned();
    // In memory first, because the generator panics if the reader closes the pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8(script).context("generating the script")
}

/// Runs `man` for the program's arguments.
pub(crate) fn man(arguments: &ManArguments, command: Command) -> ExitCode {
    exit::code(write(arguments, command).map(|()| true))
}

fn write(arguments: &ManArguments, command: Command) -> anyhow::Result<()> {
    let directory = &arguments.directory;
    let about = || format!("writing man pages to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(about)?;
    clap_mangen::generate_to(command, directory).with_context(about)
}
