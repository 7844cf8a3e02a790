//! Reading of a journal, even while another process writes it.

use std::path::Path;

use crate::error::{JournalError, Problem};
use crate::follower::Follower;
use crate::news::News;
use crate::stored::{Stored, StoredDecision};

/// Contents of a journal.
#[derive(Debug, Default)]
pub struct Contents {
    /// Records that can be read, in order of id.
    pub records: Vec<Stored>,
    /// Problems with the other parts.
    pub problems: Vec<Problem>,
}

/// Reads a journal.
///
/// Damaged parts are left out and reported in [`Contents::problems`]; the rest is read.
///
/// # Errors
///
/// The directory cannot be read, or has no journal.
pub fn read(directory: &Path) -> Result<Contents, JournalError> {
    let mut records = Vec::new();
    let problems = visit(directory, |stored| records.push(stored))?;
    Ok(Contents { records, problems })
}

/// Passes every record of a journal to `record`, in order of id. Returns the problems with the other parts. Holds the
/// records of two segments at a time.
///
/// # Errors
///
/// The directory cannot be read, or has no journal.
pub fn visit(directory: &Path, mut record: impl FnMut(Stored)) -> Result<Vec<Problem>, JournalError> {
    visit_segments(directory, |_| true, |_, stored| record(stored))
}

/// Passes the records of some segments of a journal to `record`, each with the number of its segment, in order of id.
/// `wants` returns true for the numbers of these segments. The abandonment of a record may be in the next segment.
/// Returns the problems with the other parts of these segments.
///
/// # Errors
///
/// Those of [`visit`].
pub fn visit_segments(
    directory: &Path,
    wants: impl Fn(u64) -> bool,
    mut record: impl FnMut(u64, Stored),
) -> Result<Vec<Problem>, JournalError> {
    let mut take = |segment, news| {
        // A record that is read once is passed when its outcome is known.
        if let News::Record(stored) = news {
            record(segment, stored);
        }
    };
    Follower::<StoredDecision>::once(directory).read(&wants, &mut take)
}
