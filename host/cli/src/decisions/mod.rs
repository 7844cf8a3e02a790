//! Commands that read decisions from journals, or from the leader.

mod diff;
mod explain;
mod history;
mod replay;
mod report;
mod source;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use bulkhead_core::journal::DecisionId;
use bulkhead_journal::{Contents, Problem, Stored, segment};
use bulkhead_server::help;
use bulkhead_simulator::recorded::journals::journals;
use bulkhead_simulator::recorded::select;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::exit;
use crate::output::Format;

/// Journals to read, and output format.
#[derive(Args)]
struct Common {
    /// Directory of a journal that `bulkhead run` or `bulkhead simulate` writes, or of the journals of several
    /// processes, each in a directory of its own. Repeat it for more; all are read as one.
    #[arg(long, required = true, value_name = "DIR", env = help::JOURNAL_VARIABLE, hide_env_values = true)]
    journal: Vec<PathBuf>,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Common {
    /// Reads the journals; reports damaged parts on standard error.
    fn load(&self) -> anyhow::Result<Contents> {
        let contents = bulkhead_simulator::recorded::load(&read_journals(&self.journal)?)?;
        warn(&contents.problems)?;
        Ok(contents)
    }

    /// Reads the records that a word names, or all, and collects the results of `keep`.
    fn find<T>(
        &self,
        word: Option<&str>,
        keep: impl FnMut(Stored) -> Option<T>,
    ) -> anyhow::Result<(Vec<T>, Vec<Problem>)> {
        let (found, problems) = select::find(&read_journals(&self.journal)?, word, keep)?;
        warn(&problems)?;
        Ok((found, problems))
    }

    /// Returns the error of a command that needs the id of a decision, with the ways to find one.
    fn without_id(&self) -> anyhow::Result<anyhow::Error> {
        let journals: Vec<_> = self
            .journal
            .iter()
            .map(|journal| format!("--journal {}", journal.display()))
            .collect();
        let journals = journals.join(" ");
        let (ids, _) = self.find(None, |stored| Some(stored.record.decision_id()))?;
        let extent = match (ids.first(), ids.last()) {
            (Some(first), Some(last)) => format!("the journal has {first} to {last}"),
            _ => "the journal is empty".to_owned(),
        };
        Ok(anyhow::anyhow!(
            "no decision is named, and {extent}; `bulkhead history {journals}` lists the ids, the annotation \
             bulkhead.dev/decision of an object has that of its last decision, and --all takes all decisions"
        ))
    }

    fn print(&self, text: impl FnOnce() -> String, data: &impl Serialize) -> anyhow::Result<()> {
        self.output.print(text, data)
    }
}

/// Returns the journals in directories, after a check of their files.
fn read_journals(directories: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let journals = journals(directories)?;
    journals.iter().try_for_each(|journal| check_sizes(journal))?;
    Ok(journals)
}

/// Refuses a journal with a file of 0 bytes. The last of several files may be empty after a crash, so it is only
/// reported.
fn check_sizes(journal: &Path) -> anyhow::Result<()> {
    // The reader reports a directory that cannot be read.
    let Ok(segments) = segment::list(journal) else {
        return Ok(());
    };
    let last = segments.last().map(|(number, _)| *number);
    for (number, path) in &segments {
        if !std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0) {
            continue;
        }
        let path = path.display();
        match (Some(*number) == last, segments.len()) {
            (true, 1) => bail!(
                "{path}: has no bytes, not even the header that each journal begins with; the file was cut, so restore \
                 it from a copy, or remove it for an empty journal"
            ),
            (true, _) => {
                writeln!(
                    anstream::stderr(),
                    "note: {path}: has no bytes: its writer stopped before the first record, or the file was cut"
                )?;
            }
            (false, _) => bail!(
                "{path}: ends at byte 0, before the header of a segment; the file was cut, so restore it from a copy"
            ),
        }
    }
    Ok(())
}

/// Returns the name of a binding or object with its namespace. Ids, and names that contain a namespace, are returned
/// unchanged.
fn qualified(about: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) if !about.contains('/') && about.parse::<DecisionId>().is_err() => {
            format!("{namespace}/{about}")
        }
        _ => about.to_owned(),
    }
}

fn warn(problems: &[Problem]) -> std::io::Result<()> {
    for problem in problems {
        let word = if problem.is_harmless() { "note" } else { "warning" };
        writeln!(anstream::stderr(), "{word}: {problem}")?;
    }
    Ok(())
}

/// Commands that read a journal.
#[derive(Subcommand)]
pub(crate) enum Command {
    History(history::Arguments),
    Explain(explain::Arguments),
    Replay(replay::Arguments),
    Diff(diff::Arguments),
    Report(Box<report::Arguments>),
}

/// Runs the command. Exit code: 1 for a replay, a plugin or a control plane that differs, 2 for a bad journal,
/// name or plugin.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::History(arguments) => history::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Report(arguments) => report::run(arguments),
    };
    exit::code(done)
}
