//! Operations on recorded decisions: replay, comparison and explanation.
//!
//! [`Recording`] writes a journal, [`load`] reads several as one. [`replay`] repeats decisions, [`diff`] repeats them with
//! another plugin, [`explain`] shows the reasons for a decision, [`comparison`] compares decisions of mode `report` with
//! those of Karmada.

pub mod comparison;
pub mod diff;
pub mod explain;
pub mod finding;
mod findings;
pub mod journals;
pub mod queued;
pub mod replay;
pub mod select;
pub mod waiting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, Contents, Opened, Stored, Writer};

/// Journal that a command writes from start to end.
pub struct Recording {
    writer: Arc<Writer>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Recording {
    /// Starts a journal in a directory that has none.
    ///
    /// # Errors
    ///
    /// The directory is not writable, or contains a journal already.
    pub fn start(directory: &Path) -> anyhow::Result<Self> {
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        let opened = Writer::open(directory, Bounds::default(), move |error| {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        });
        let Opened { writer, records, .. } = opened.context("--journal")?;
        if records > 0 {
            bail!(
                "--journal {}: there is a journal with {records} decisions already; name another directory or remove it",
                directory.display()
            );
        }
        Ok(Self {
            writer: Arc::new(writer),
            failure,
        })
    }

    /// Returns the sink that writes decisions to the journal.
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(Arc::clone(&self.writer))
    }

    /// Closes the journal.
    ///
    /// # Errors
    ///
    /// A record could not be written.
    pub fn end(self) -> anyhow::Result<()> {
        if let Some(failure) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bail!("--journal: {failure}");
        }
        self.writer.sync().context("--journal")
    }
}

/// Reads journals, as [`journals::journals`] returns them. Their records are merged by time. Damaged parts are listed
/// in [`Contents::problems`].
///
/// # Errors
///
/// There is no journal, or no record can be read.
pub fn load(journals: &[PathBuf]) -> anyhow::Result<Contents> {
    let (mut lists, mut problems) = (Vec::new(), Vec::new());
    for journal in journals {
        let contents = bulkhead_journal::read(journal).context("--journal")?;
        let at = |stored: Stored| (stored.record.entry.at.as_millis(), stored);
        lists.push(contents.records.into_iter().map(at).collect());
        problems.extend(contents.problems);
    }
    let records = journals::merged(lists);
    if records.is_empty()
        && let Some(problem) = problems.first()
    {
        bail!("--journal: {problem}");
    }
    Ok(Contents { records, problems })
}
