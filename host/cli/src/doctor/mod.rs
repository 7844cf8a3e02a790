//! `bulkhead doctor`: checks of an installation.
//!
//! [`gather`] queries the control plane and the members, and writes nothing. [`checks`] turns the facts into
//! findings, without I/O. [`report`] prints them.

mod checks;
mod facts;
mod finding;
mod gather;
mod report;

use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_server::RunArguments;
use bulkhead_server::hub::RequestTimeout;
use clap::Args;

use self::facts::Facts;
use crate::output::Format;

/// Check an installation: find problems that `bulkhead run` would have with the same arguments, and print remedies.
///
/// Writes nothing. Exit code: 0 if nothing is broken, 1 if something is, 2 if the arguments are wrong or the control
/// plane does not answer.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead doctor --config bulkhead.yaml
  bulkhead doctor --mode report --as system:serviceaccount:karmada-system:bulkhead -o json")]
pub(crate) struct DoctorArguments {
    /// User whose permissions are checked instead of those of the kubeconfig, for example
    /// system:serviceaccount:karmada-system:bulkhead. Requires the right to impersonate.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    timeout: RequestTimeout,

    #[command(flatten)]
    run: RunArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments) -> ExitCode {
    let looked = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| {
            let limit = arguments.timeout.limit();
            runtime.block_on(gather::facts(&arguments.run, arguments.user.as_deref(), limit))
        });
    let printed = looked.and_then(|facts| {
        let is_sound = print(&facts, arguments.output)?;
        Ok((is_sound, facts.control_plane.error.is_some_and(|error| error.is_silent)))
    });
    match printed {
        Ok((_, true)) => crate::exit::without_answer(),
        printed => crate::exit::code(printed.map(|(is_sound, _)| is_sound)),
    }
}

/// Prints the results. Returns true if the installation is sound.
fn print(facts: &Facts, output: Format) -> anyhow::Result<bool> {
    let (about, sections) = (about(facts), checks::all(facts));
    output.print(|| report::text(&about, &sections), &report::data(&about, &sections))?;
    Ok(report::is_sound(&sections))
}

/// Describes the installation in one line.
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
