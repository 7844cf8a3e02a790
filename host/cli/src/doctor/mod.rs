//! `bulkhead doctor`: checks of an installation.
//!
//! [`gather`] queries the control plane and the members, and writes nothing. With `--for`, the controllers of a mode
//! run on a copy of the objects. [`checks`] turns the facts into findings, without I/O. [`report`] prints them.

mod checks;
mod facts;
mod finding;
mod gather;
mod report;

use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_controllers::permissions::Mode;
use bulkhead_server::hub::RequestTimeout;
use bulkhead_server::{RunArguments, mode};
use bulkhead_simulator::takeover::{self, Take};
use clap::Args;

use self::facts::{Facts, Unread};
use self::gather::Gathered;
use crate::output::Format;

/// Check an installation: find problems that `bulkhead run` would have with the same arguments, and print remedies.
///
/// With --for, it also rehearses a take-over: the controllers of a mode run for 60 s of virtual time on a copy of the
/// objects, and each change is reported with a diff.
///
/// Writes nothing. Exit code: 0 if nothing is broken, 1 if something is, 2 if the arguments are wrong or the control
/// plane does not answer.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead doctor --config bulkhead.yaml
  bulkhead doctor --for evict --kubeconfig karmada.kubeconfig
  bulkhead doctor --mode report --as system:serviceaccount:karmada-system:bulkhead -o json")]
pub(crate) struct DoctorArguments {
    /// Modes to rehearse, in place of those of --mode: changes that a take-over would make. Not report, which changes
    /// nothing.
    #[arg(long = "for", value_name = "MODES", value_delimiter = ',', value_parser = rehearsed)]
    rehearsed: Vec<Mode>,

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

/// Parses the name of a mode that can be rehearsed.
fn rehearsed(text: &str) -> Result<Mode, String> {
    match mode::parse(text)? {
        Mode::Report => Err("mode report changes nothing; choose interpret, finish, evict or all".to_owned()),
        mode => Ok(mode),
    }
}

/// Runs the command.
pub(crate) fn run(mut arguments: DoctorArguments) -> ExitCode {
    let rehearses = !arguments.rehearsed.is_empty();
    if rehearses {
        arguments.run.set_modes(&arguments.rehearsed);
    }
    let looked = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| {
            let limit = arguments.timeout.limit();
            let user = arguments.user.as_deref();
            let gathered = runtime.block_on(gather::facts(&arguments.run, user, limit, rehearses))?;
            Ok(rehearse(gathered))
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

/// Runs the controllers of the modes on the copy of the objects, if there is one.
fn rehearse(gathered: Gathered) -> Facts {
    let Gathered { mut facts, copy } = gathered;
    let Some((copy, registry)) = copy else { return facts };
    let controllers: Vec<_> = facts.installation.controllers.iter().map(String::as_str).collect();
    let take = Take {
        controllers: &controllers,
        flags: &facts.installation.flags,
        now: facts.now,
    };
    match takeover::rehearse(copy, registry, take) {
        Ok(outcome) => facts.rehearsal = Some(outcome),
        Err(error) => facts.unread.push(Unread {
            check: checks::REHEARSAL.to_owned(),
            what: "copy of the control plane".to_owned(),
            why: format!("{error:#}"),
            answered: true,
        }),
    }
    facts
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
