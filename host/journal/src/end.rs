//! End of a journal, where a writer continues.
//!
//! Only the last segment is read in full, one frame at a time; of the others only the headers are read. A process
//! therefore starts with little memory and time, however long the journal is. Readers check every frame of every
//! segment.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{JournalError, Problem};
use crate::frame::{Chain, FrameKind, Header};
use crate::private;
use crate::segment::{self, SegmentScan};
use crate::storage::Storage;

/// Closed segment.
pub(crate) struct Closed {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Time of the first record of the next segment.
    pub(crate) ended_at_ms: i64,
}

/// End of a journal.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) chain: Chain,
    /// Closed segments, oldest first.
    pub(crate) closed: Vec<Closed>,
    pub(crate) last_id: u64,
    pub(crate) last_at_ms: i64,
    pub(crate) records: u64,
    pub(crate) cut: Option<Problem>,
}

/// Last record of a segment, reduced to the fields that a writer needs.
#[derive(Clone, Copy, Deserialize)]
struct Newest {
    id: u64,
    #[serde(rename = "atMs")]
    at_ms: i64,
}

/// Segment that was read to its end.
struct Read {
    scanned: SegmentScan,
    newest: Newest,
}

impl End {
    /// Finds the end of the journal in a directory, and cuts off a torn end.
    ///
    /// # Errors
    ///
    /// The journal cannot be read, or is damaged in a place where nothing may be cut.
    pub(crate) fn of(directory: &Path, storage: &mut dyn Storage) -> Result<Self, JournalError> {
        let segments = segment::list(directory)?;
        let Some(((number, last), closed)) = segments.split_last() else {
            return Ok(Self {
                number: 1,
                ..Self::default()
            });
        };
        check_numbers(&segments)?;
        let headers: Vec<_> = closed
            .iter()
            .map(|(_, path)| segment::header(path))
            .collect::<Result<_, _>>()?;
        let (mut end, cut) = (
            Self {
                number: *number,
                ..Self::default()
            },
            read_last(last)?,
        );
        let newest = match &cut {
            LastSegment::Read(read) => {
                (end.bytes, end.chain, end.cut) = (
                    read.scanned.intact_bytes,
                    read.scanned.chain,
                    read.scanned.problem.clone(),
                );
                Some(read)
            }
            LastSegment::Empty(problem) => {
                end.cut.clone_from(problem);
                None
            }
        };
        // An empty segment continues the chain of the one before it.
        let before = match (newest, closed.last()) {
            (None, Some((_, path))) => Some(read_closed(path)?),
            _ => None,
        };
        if let Some(before) = &before {
            end.chain = before.scanned.chain;
        }
        let newest = newest.or(before.as_ref());
        (end.last_id, end.last_at_ms) = newest.map_or((0, i64::MIN), |read| (read.newest.id, read.newest.at_ms));
        let first_id = headers
            .first()
            .or(newest.map(|read| &read.scanned.header))
            .map(|header| header.first_id);
        end.records = first_id.map_or(0, |first| (end.last_id + 1).saturating_sub(first));
        // The last segment begins where the newest closed one ended; an empty one has no time of its own.
        let began_at_ms = match &before {
            Some(_) => end.last_at_ms,
            None => newest.map_or(end.last_at_ms, |read| read.scanned.header.first_at_ms),
        };
        end.closed = ends(closed, &headers, began_at_ms)?;
        if end.cut.is_some() {
            cut_off(last, end.bytes, storage)?;
        }
        Ok(end)
    }
}

/// Checks that segments are numbered without gaps, which finds a missing one without reading any.
fn check_numbers(segments: &[(u64, PathBuf)]) -> Result<(), JournalError> {
    for pair in segments.windows(2) {
        if pair[1].0 != pair[0].0 + 1 {
            let (path, before) = (pair[1].1.clone(), pair[0].1.clone());
            return Err(JournalError::Damaged(Problem::Gap { path, before }));
        }
    }
    Ok(())
}

fn ends(closed: &[(u64, PathBuf)], headers: &[Header], began_at_ms: i64) -> Result<Vec<Closed>, JournalError> {
    let next = |index: usize| match headers.get(index + 1) {
        Some(header) => header.first_at_ms,
        None => began_at_ms,
    };
    closed
        .iter()
        .enumerate()
        .map(|(index, (_, path))| {
            let bytes = fs::metadata(path).map_err(JournalError::io("reading", path))?.len();
            Ok(Closed {
                path: path.clone(),
                bytes,
                ended_at_ms: next(index),
            })
        })
        .collect()
}

enum LastSegment {
    Read(Read),
    /// Segment without a complete header; the problem reports the torn part of it.
    Empty(Option<Problem>),
}

fn read_last(path: &Path) -> Result<LastSegment, JournalError> {
    match read(path) {
        Ok(read) => match &read.scanned.problem {
            Some(problem) if !problem.is_harmless() => Err(JournalError::Damaged(problem.clone())),
            _ => Ok(LastSegment::Read(read)),
        },
        Err(JournalError::Damaged(Problem::Torn { bytes: 0, .. })) => Ok(LastSegment::Empty(None)),
        Err(JournalError::Damaged(problem @ Problem::Torn { .. })) => Ok(LastSegment::Empty(Some(problem))),
        Err(error) => Err(error),
    }
}

fn read_closed(path: &Path) -> Result<Read, JournalError> {
    let read = read(path)?;
    match &read.scanned.problem {
        None => Ok(read),
        Some(Problem::Torn { .. }) => {
            let at = read.scanned.intact_bytes;
            Err(JournalError::Damaged(Problem::Changed {
                path: path.to_path_buf(),
                at,
            }))
        }
        Some(problem) => Err(JournalError::Damaged(problem.clone())),
    }
}

/// Reads a segment to its end, and decodes only id and time of each record.
fn read(path: &Path) -> Result<Read, JournalError> {
    let (mut newest, mut unreadable): (Option<Newest>, _) = (None, None);
    let scanned = segment::scan(path, |at, kind, payload| {
        let understood = match kind {
            Some(FrameKind::Record) => serde_json::from_slice(payload)
                .map(|record| newest = Some(record))
                .map_err(|error| error.to_string()),
            Some(FrameKind::Cluster | FrameKind::Fleet | FrameKind::Abandoned) => Ok(()),
            Some(FrameKind::Object | FrameKind::Removed) | None => Err(segment::not_of_a_journal(kind)),
        };
        if let Err(why) = understood {
            unreadable.get_or_insert(Problem::Unreadable {
                path: path.to_path_buf(),
                at,
                why,
            });
        }
    })?;
    if let Some(problem) = unreadable {
        return Err(JournalError::Damaged(problem));
    }
    let Header {
        first_id, first_at_ms, ..
    } = scanned.header;
    let begun = Newest {
        id: first_id.saturating_sub(1),
        at_ms: first_at_ms,
    };
    Ok(Read {
        scanned,
        newest: newest.unwrap_or(begun),
    })
}

/// Cuts off the torn end of a segment. A copy stays beside the segment if the disk has room for it, in case the end
/// was not torn.
fn cut_off(path: &Path, intact_bytes: u64, storage: &mut dyn Storage) -> Result<(), JournalError> {
    let about = JournalError::io("cutting", path);
    let mut file = match private::open(OpenOptions::new().read(true).write(true), path) {
        Ok(file) => file,
        Err(error) => return Err(about(error)),
    };
    let aside = path.with_extension("torn");
    if keep_aside(&mut file, intact_bytes, &aside, storage).is_err() {
        // A process that cannot start is worse than a missing copy.
        let _ = storage.remove(&aside);
    }
    file.set_len(intact_bytes)
        .and_then(|()| file.sync_data())
        .map_err(about)
}

fn keep_aside(file: &mut File, from: u64, aside: &Path, storage: &mut dyn Storage) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    file.seek(SeekFrom::Start(from))?;
    storage.remove(aside)?;
    let mut copy = storage.create(aside)?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => storage.append(&mut copy, &buffer[..read])?,
        }
    }
}
