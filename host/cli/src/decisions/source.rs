//! Records of a command: those of journals, or those that the leader returns.

use std::io::Write as _;
use std::path::PathBuf;

use bulkhead_controllers::QueuedEviction;
use bulkhead_journal::Stored;
use bulkhead_server::help;
use bulkhead_server::queries::client::{LeaderArguments, Leaders, Query};
use bulkhead_simulator::recorded::select;
use clap::Args;
use serde::Serialize;

use super::{read_journals, warn};
use crate::block_on::block_on;
use crate::output::Format;

/// Source of records, and output format.
#[derive(Args)]
pub(super) struct SourceArguments {
    /// Directory of a journal that `bulkhead run` or `bulkhead simulate` writes, or of the journals of several
    /// processes, each in a directory of its own. Repeat it for more; all are read as one. Without it, the leader is
    /// asked; with --kubeconfig too, it is read if the leader does not answer.
    #[arg(long, value_name = "DIR", env = help::JOURNAL_VARIABLE, hide_env_values = true)]
    journal: Vec<PathBuf>,

    #[command(flatten)]
    leader: LeaderArguments,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Records that were found.
pub(super) struct Found<T> {
    /// Results of the selection, oldest first.
    pub(super) kept: Vec<T>,
    /// True if a part of the records cannot be read.
    pub(super) is_partial: bool,
    /// Evictions that the leader has queued; `None` if it was not asked, or does not answer that.
    pub(super) queued: Option<Vec<QueuedEviction>>,
}

impl SourceArguments {
    /// Finds the records that a query and a word select. The query bounds the answer of the leader, and `keep` decides.
    /// `with_queue` asks for queued evictions too.
    pub(super) fn find<T>(
        &self,
        query: &Query,
        with_queue: bool,
        keep: impl FnMut(Stored) -> Option<T>,
    ) -> anyhow::Result<Found<T>> {
        let word = query.about.as_deref();
        if !self.journal.is_empty() && !self.leader.names_control_plane() {
            return self.in_journals(word, keep);
        }
        match self.ask(query, with_queue) {
            Ok(answer) => Ok(Found {
                kept: select::among(answer.kept, word, keep)?,
                is_partial: answer.is_partial,
                queued: answer.queued,
            }),
            Err(error) if self.journal.is_empty() => {
                Err(error.context("asking the leader for its decisions; --journal DIR reads a journal instead"))
            }
            Err(error) => {
                let cause = crate::exit::error_text(&error);
                writeln!(
                    anstream::stderr(),
                    "note: the leader does not answer, so the journal is read: {cause}"
                )?;
                self.in_journals(word, keep)
            }
        }
    }

    fn in_journals<T>(&self, word: Option<&str>, keep: impl FnMut(Stored) -> Option<T>) -> anyhow::Result<Found<T>> {
        let (kept, problems) = select::find(&read_journals(&self.journal)?, word, keep)?;
        warn(&problems)?;
        Ok(Found {
            kept,
            is_partial: !problems.is_empty(),
            queued: None,
        })
    }

    /// Returns the records of each leader.
    fn ask(&self, query: &Query, with_queue: bool) -> anyhow::Result<Found<Vec<Stored>>> {
        block_on(async {
            let leaders = Leaders::find(&self.leader).await?;
            let (found, errors) = leaders.records(query).await?;
            let problems: Vec<_> = found.iter().flat_map(|records| &records.problems).collect();
            for error in &errors {
                writeln!(anstream::stderr(), "note: an earlier leader does not answer: {error}")?;
            }
            for problem in &problems {
                writeln!(anstream::stderr(), "warning: {problem}")?;
            }
            let is_partial = !problems.is_empty() || !errors.is_empty();
            let queued = if with_queue {
                match leaders.evictions().await {
                    Ok(queued) => Some(queued),
                    Err(error) => {
                        let cause = crate::exit::error_text(&error);
                        writeln!(anstream::stderr(), "note: the queue of evictions is unknown: {cause}")?;
                        None
                    }
                }
            } else {
                None
            };
            Ok(Found {
                kept: found.into_iter().map(|records| records.records).collect(),
                is_partial,
                queued,
            })
        })
    }

    pub(super) fn print(&self, text: impl FnOnce() -> String, data: &impl Serialize) -> anyhow::Result<()> {
        self.output.print(text, data)
    }
}
