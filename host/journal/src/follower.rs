//! Reading of a journal that grows.

use std::io;
use std::path::{Path, PathBuf};

use crate::decode::DecisionForm;
use crate::error::{JournalError, Problem};
use crate::news::News;
use crate::open::Open;
use crate::segment;
use crate::stored::StoredDecision;

/// Reader that goes on where it ended, so that each record is read and decoded once. Holds the clusters of the last
/// segment, and the ids of the records of the last two.
///
/// `D` is the form in which the inputs of decisions are read.
#[derive(Debug)]
pub struct Follower<D: DecisionForm = StoredDecision> {
    directory: PathBuf,
    /// True if there is another read after this one.
    follows: bool,
    /// Last segment.
    open: Option<Open<D>>,
    /// Segment before it.
    before: Option<Open<D>>,
}

impl<D: DecisionForm> Follower<D> {
    /// Starts at the beginning of the journal in a directory.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            follows: true,
            open: None,
            before: None,
        }
    }

    /// Like [`Follower::new`], for a single read.
    pub(crate) fn once(directory: &Path) -> Self {
        Self {
            follows: false,
            ..Self::new(directory)
        }
    }

    /// Passes the additions since the last call to `take`, each with the number of its segment; records are in order of
    /// id. If the last segment was replaced, its records come again. Returns the problems with the other parts.
    ///
    /// # Errors
    ///
    /// The directory cannot be read, or has no journal.
    pub fn read_new(&mut self, mut take: impl FnMut(u64, News<D>)) -> Result<Vec<Problem>, JournalError> {
        self.read(&|_| true, &mut take)
    }

    /// Like [`Follower::read_new`], for the segments whose numbers `wants` returns true for.
    pub(crate) fn read(
        &mut self,
        wants: &dyn Fn(u64) -> bool,
        take: &mut dyn FnMut(u64, News<D>),
    ) -> Result<Vec<Problem>, JournalError> {
        let segments = segment::list(&self.directory)?;
        let Some(last) = segments.last().map(|(number, _)| *number) else {
            return Err(JournalError::Empty(self.directory.clone()));
        };
        // The writer removes the oldest segments to make room.
        let is_gone = |open: &Open<D>| segments.iter().all(|(number, _)| *number != open.number);
        if self.open.as_ref().is_some_and(is_gone) {
            self.leave(take);
        }
        let first = self.open.as_ref().map_or(0, |open| open.number);
        let mut problems = Vec::new();
        for (number, path) in segments.into_iter().filter(|(number, _)| *number >= first) {
            if wants(number) {
                match self.read_segment(number, path, number == last, &mut problems, take) {
                    // The writer removed the segment to make room.
                    Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                        self.leave(take);
                    }
                    result => result?,
                }
                // Without another read, records wait for the next segment, which may abandon them.
                let last = self.open.as_mut().filter(|_| self.follows);
                for open in self.before.iter_mut().chain(last) {
                    open.pass(self.follows, take);
                }
            } else {
                // The chain cannot be checked across a segment that is not read.
                self.leave(take);
            }
        }
        for open in self.before.iter_mut().chain(&mut self.open) {
            open.pass(self.follows, take);
        }
        Ok(problems)
    }

    /// Forgets the last segments.
    fn leave(&mut self, take: &mut dyn FnMut(u64, News<D>)) {
        for mut open in self.before.take().into_iter().chain(self.open.take()) {
            open.pass(false, take);
        }
    }

    /// Reads a segment, which then is the last one, or the part of the last one that was added.
    fn read_segment(
        &mut self,
        number: u64,
        path: PathBuf,
        is_last: bool,
        problems: &mut Vec<Problem>,
        take: &mut dyn FnMut(u64, News<D>),
    ) -> Result<(), JournalError> {
        let known = self.open.take_if(|open| open.number == number);
        let is_new = known.is_none();
        let mut open = known.unwrap_or_else(|| Open::new(number, path));
        if is_new && self.open.is_some() {
            self.before = self.open.take();
        }
        match open.read_on(self.before.as_mut(), self.follows, take) {
            Ok(found) => problems.extend(found),
            // The writer created the segment and has recorded nothing yet.
            Err(JournalError::Damaged(Problem::Torn { bytes: 0, .. })) if is_last => {
                self.open = self.before.take();
                return Ok(());
            }
            Err(JournalError::Damaged(problem)) => problems.push(problem),
            Err(error) => return Err(error),
        }
        if let Some(read) = &mut open.read {
            // Only the last segment may end in an unfinished write.
            if !is_last && let Some(Problem::Torn { .. }) = read.problem {
                let at = read.intact_bytes;
                let path = open.path.clone();
                read.problem = Some(Problem::Changed { path, at });
            }
            problems.extend(read.problem.clone());
        }
        if is_new {
            problems.extend(self.before.as_ref().and_then(|before| gap(before, &open)));
        }
        self.open = Some(open);
        Ok(())
    }
}

/// Returns the problem that a segment does not follow the one before it, if both were read to the end.
fn gap<D: DecisionForm>(before: &Open<D>, open: &Open<D>) -> Option<Problem> {
    let (end, start) = (before.read.as_ref()?, open.read.as_ref()?);
    (end.problem.is_none() && end.chain != start.header.before).then(|| Problem::Gap {
        path: open.path.clone(),
        before: before.path.clone(),
    })
}
