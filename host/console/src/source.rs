//! Sources of records: journals on disk, or processes that are asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::{EvictionsQueued, QueuedEviction};
use bulkhead_core::journal::DecisionId;
use bulkhead_journal::{DecisionOutline, Follower, News, Problem, Stored, segment, visit_segments};
use bulkhead_plugin::{PluginReport, Registry};
use bulkhead_simulator::recorded::journals::journals;

/// Location of a record on disk, by which it is read again without the rest of its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Journal, as a number of the source.
    pub journal: usize,
    /// Number of the segment.
    pub segment: u64,
}

/// Source of records. Its methods may block for seconds.
pub trait Source: Send + Sync + 'static {
    /// Describes the source in a few words, for the head of each page.
    fn name(&self) -> String;

    /// Returns the shortest time between two reads.
    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Passes the records that were added or changed since the last call, with the outlines of their decisions. The records of a process come in order of
    /// their ids; known records may come again. Returns the problems with the other records, one sentence each.
    ///
    /// # Errors
    ///
    /// Nothing can be read.
    fn read_new(&self, take: &mut dyn FnMut(Option<Place>, News<DecisionOutline>)) -> anyhow::Result<Vec<String>>;

    /// Returns records with their inputs, in any order. `about` is a word that names all of them, as for `bulkhead
    /// history`. Records that are gone are left out.
    ///
    /// # Errors
    ///
    /// Nothing can be read.
    fn find(&self, about: &str, wanted: &[(DecisionId, Option<Place>)]) -> anyhow::Result<Vec<Stored>>;

    /// Returns the evictions that the leader has queued; `None` if no process is asked, or if it does not answer.
    fn queued(&self) -> Option<Vec<QueuedEviction>>;

    /// Returns the policies of the process with the cost of their calls; `None` if no process is asked.
    fn costs(&self) -> Option<Vec<PluginReport>> {
        None
    }
}

/// Journals on disk, which other processes or this one may still write.
pub struct Journals {
    directories: Vec<PathBuf>,
    /// Paths by the numbers of the journals. It is locked for moments only, unlike the other one.
    paths: RwLock<Vec<PathBuf>>,
    known: Mutex<Vec<Known>>,
    /// State of the process that writes the journal, if it is this one.
    process: Option<Process>,
}

/// State of a process that no record has.
pub struct Process {
    /// Evictions that it has queued.
    pub queued: Arc<EvictionsQueued>,
    /// Policies in force.
    pub registry: Arc<Registry>,
}

/// Journal that was read before.
struct Known {
    path: PathBuf,
    follower: Follower<DecisionOutline>,
    /// Number of the last segment and its size in bytes, before it was read.
    end: Option<(u64, u64)>,
    /// Problems that were found.
    problems: Vec<Problem>,
}

impl Journals {
    /// Returns the journals in these directories and directly below them. They may not have a record yet.
    pub fn new(directories: Vec<PathBuf>) -> Self {
        Self {
            directories,
            paths: RwLock::default(),
            known: Mutex::default(),
            process: None,
        }
    }

    /// Adds the state of the process that writes the journal: this one.
    #[must_use]
    pub fn with_process(self, process: Process) -> Self {
        Self {
            process: Some(process),
            ..self
        }
    }

    fn path(&self, journal: usize) -> Option<PathBuf> {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths.get(journal).cloned()
    }
}

impl Source for Journals {
    fn name(&self) -> String {
        let names: Vec<_> = self.directories.iter().map(|path| path.display().to_string()).collect();
        format!("journal {}", names.join(", "))
    }

    fn read_new(&self, take: &mut dyn FnMut(Option<Place>, News<DecisionOutline>)) -> anyhow::Result<Vec<String>> {
        let found = journals(&self.directories)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for path in found {
            if !known.iter().any(|known| known.path == path) {
                self.paths
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(path.clone());
                known.push(Known {
                    follower: Follower::new(&path),
                    path,
                    end: None,
                    problems: Vec::new(),
                });
            }
        }
        for (journal, known) in known.iter_mut().enumerate() {
            known.read_new(|segment, news| take(Some(Place { journal, segment }), news))?;
        }
        let problems = known.iter().flat_map(|known| &known.problems);
        Ok(problems.map(ToString::to_string).collect())
    }

    fn find(&self, _about: &str, wanted: &[(DecisionId, Option<Place>)]) -> anyhow::Result<Vec<Stored>> {
        let mut places = BTreeMap::<Place, Vec<&DecisionId>>::new();
        for (id, place) in wanted {
            if let Some(place) = place {
                places.entry(*place).or_default().push(id);
            }
        }
        let mut found = Vec::new();
        for (place, ids) in places {
            let Some(path) = self.path(place.journal) else { continue };
            let keep = |_, stored: Stored| {
                let id = stored.record.decision_id();
                if ids.contains(&&id) {
                    found.push(stored);
                }
            };
            visit_segments(&path, |segment| segment == place.segment, keep).context("reading the journal")?;
        }
        Ok(found)
    }

    fn queued(&self) -> Option<Vec<QueuedEviction>> {
        self.process.as_ref()?.queued.list()
    }

    fn costs(&self) -> Option<Vec<PluginReport>> {
        self.process.as_ref().map(|process| process.registry.report())
    }
}

impl Known {
    /// Reads the records that were added.
    fn read_new(&mut self, take: impl FnMut(u64, News<DecisionOutline>)) -> anyhow::Result<()> {
        let end = end(&self.path)?;
        if end == self.end {
            return Ok(());
        }
        let problems = self.follower.read_new(take).context("reading the journal")?;
        // An unfinished write at the end is the next record of a running process.
        self.problems.retain(|problem| !problem.is_harmless());
        for problem in problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self.end = end;
        Ok(())
    }
}

/// Returns the number and the size in bytes of the last segment of a journal.
fn end(journal: &Path) -> anyhow::Result<Option<(u64, u64)>> {
    let segments = segment::list(journal).context("reading the journal")?;
    let Some((number, path)) = segments.last() else {
        return Ok(None);
    };
    // A file that is gone was removed to make room.
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    Ok(Some((*number, bytes)))
}
