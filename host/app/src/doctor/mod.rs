//! `bulkhead doctor`: is this installation sound?
//!
//! [`gather`] asks control plane and members, and writes nothing; [`checks`] makes findings of what came back, and does
//! nothing else; [`report`] prints them.

mod checks;
mod facts;
mod finding;
mod gather;
mod report;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use self::facts::Facts;
use crate::run;

/// Look whether an installation is sound: what `bulkhead run` with the same arguments would find, and what to do about
/// it.
///
/// Writes nothing. Ends with 0 if nothing is broken, with 1 if something is, with 2 if the arguments are wrong.
#[derive(Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    run: run::Arguments,

    /// Whose permissions are looked at, if not those of the kubeconfig, for example
    /// system:serviceaccount:karmada-system:bulkhead. Takes the right to impersonate.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// The same as data.
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments) -> ExitCode {
    let looked = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| runtime.block_on(gather::facts(&arguments.run, arguments.user.as_deref())));
    crate::exit::code(looked.map(|facts| print(&facts, arguments.output)))
}

/// Prints the outcome. Returns whether the installation is sound.
fn print(facts: &Facts, output: Output) -> bool {
    let (about, sections) = (about(facts), checks::all(facts));
    let text = match output {
        Output::Text => report::text(&about, &sections),
        Output::Json => format!("{:#}\n", report::data(&about, &sections)),
    };
    // A reader that went away is no failure of ours.
    let _ = write!(anstream::stdout(), "{text}");
    report::is_sound(&sections)
}

/// What was looked at, in one line.
fn about(facts: &Facts) -> String {
    format!(
        "bulkhead {} in mode {} on {}",
        env!("CARGO_PKG_VERSION"),
        facts.installation.modes.join(","),
        facts.control_plane.address
    )
}

#[cfg(test)]
mod tests;
