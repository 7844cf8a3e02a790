//! Files of a journal.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{JournalError, Problem};
use crate::frame::{BadHeader, Chain, Found, FrameKind, Frames, HEADER_BYTES, Header, MAGIC, Tail, VERSION};

const PREFIX: &str = "segment-";
const SUFFIX: &str = ".journal";
/// Size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Returns the path of the segment with that number.
pub fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:010}{SUFFIX}"))
}

/// Returns the segments of a directory with their numbers, in order. Ignores other files.
///
/// # Errors
///
/// The directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let entries = fs::read_dir(directory).map_err(JournalError::io("reading the directory", directory))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(JournalError::io("reading the directory", directory))?
            .path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Result of reading a segment.
#[derive(Debug)]
pub struct SegmentScan {
    /// Header of the segment.
    pub header: Header,
    /// Chain after the last intact frame.
    pub chain: Chain,
    /// Size of the intact part, in bytes.
    pub intact_bytes: u64,
    /// Problem that ends the segment early, if any.
    pub problem: Option<Problem>,
}

/// Reads the header of a segment.
///
/// # Errors
///
/// The file cannot be read, or has no valid header; then nothing of the segment can be read.
pub fn header(path: &Path) -> Result<Header, JournalError> {
    let mut file = File::open(path).map_err(JournalError::io("reading", path))?;
    decode(path, &mut file).map(|(header, _)| header)
}

/// Reads a segment, and passes every frame with its position to `frame`. Holds one frame at a time.
///
/// # Errors
///
/// The file cannot be read, or has no valid header; then nothing of the segment can be read.
pub fn scan(path: &Path, mut frame: impl FnMut(u64, Option<FrameKind>, &[u8])) -> Result<SegmentScan, JournalError> {
    let mut file = open(path)?;
    let (header, chain) = decode(path, &mut file)?;
    rest(path, file, (HEADER_BYTES as u64, chain), header, &mut frame)
}

/// Reads the part of a segment that was added after an earlier read, as [`scan`] does. A segment that was replaced is read
/// from its start.
///
/// # Errors
///
/// Those of [`scan`].
pub fn scan_rest(
    path: &Path,
    earlier: &SegmentScan,
    mut frame: impl FnMut(u64, Option<FrameKind>, &[u8]),
) -> Result<SegmentScan, JournalError> {
    let mut file = open(path)?;
    let failed = JournalError::io("reading", path);
    let bytes = file.get_ref().metadata().map_err(failed)?.len();
    let (header, chain) = decode(path, &mut file)?;
    if header != earlier.header || bytes < earlier.intact_bytes {
        return rest(path, file, (HEADER_BYTES as u64, chain), header, &mut frame);
    }
    let failed = JournalError::io("reading", path);
    file.seek(SeekFrom::Start(earlier.intact_bytes)).map_err(failed)?;
    let read = rest(path, file, (earlier.intact_bytes, earlier.chain), header, &mut frame)?;
    match read.problem {
        // Another journal with the same header, or one that was damaged meanwhile.
        Some(Problem::Changed { at, .. }) if at == earlier.intact_bytes => scan(path, frame),
        _ => Ok(read),
    }
}

fn open(path: &Path) -> Result<BufReader<File>, JournalError> {
    let file = File::open(path).map_err(JournalError::io("reading", path))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Reads the frames from a place on, which is a position and the chain before it.
fn rest(
    path: &Path,
    file: impl Read,
    (at, chain): (u64, Chain),
    header: Header,
    frame: &mut impl FnMut(u64, Option<FrameKind>, &[u8]),
) -> Result<SegmentScan, JournalError> {
    let mut frames = Frames::new(file, at, chain);
    let problem = loop {
        let position = frames.position();
        match frames.advance().map_err(JournalError::io("reading", path))? {
            Found::Frame { kind, payload } => frame(position, kind, payload),
            Found::End => break None,
            Found::Torn { bytes } => {
                break Some(Problem::Torn {
                    path: path.to_path_buf(),
                    bytes,
                });
            }
            Found::Changed => {
                break Some(Problem::Changed {
                    path: path.to_path_buf(),
                    at: position,
                });
            }
        }
    };
    Ok(SegmentScan {
        header,
        chain: frames.chain(),
        intact_bytes: frames.position(),
        problem,
    })
}

fn decode(path: &Path, file: &mut impl Read) -> Result<(Header, Chain), JournalError> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    file.by_ref()
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(JournalError::io("reading", path))?;
    let bad = match Header::decode(&bytes) {
        Ok(decoded) => return Ok(decoded),
        Err(bad) => bad,
    };
    let mut tail = Tail::new(0);
    tail.add(&bytes);
    tail.add_all(file).map_err(JournalError::io("reading", path))?;
    // A file of another program may have zeros anywhere. Without the magic bytes it counts as torn only if all bytes
    // are zero.
    let torn = tail.is_empty() || (bytes.starts_with(&MAGIC) && tail.is_unwritten());
    let bad = if torn && matches!(bad, BadHeader::Foreign | BadHeader::Changed) {
        BadHeader::Torn
    } else {
        bad
    };
    Err(JournalError::Damaged(bad_header(path, tail.bytes(), bad)))
}

fn bad_header(path: &Path, bytes: u64, bad: BadHeader) -> Problem {
    let path = path.to_path_buf();
    match bad {
        BadHeader::Torn => Problem::Torn { path, bytes },
        BadHeader::Foreign => Problem::Foreign(path),
        BadHeader::Newer(version) => Problem::Newer {
            path,
            version,
            known: VERSION,
        },
        BadHeader::Changed => Problem::Changed { path, at: 0 },
    }
}

/// Returns the reason why a frame does not belong to a journal.
pub(crate) fn not_of_a_journal(kind: Option<FrameKind>) -> String {
    match kind {
        Some(_) => "it is an object of an embedded control plane, not a journal record".to_owned(),
        None => "its type is unknown to this program; a newer program wrote it".to_owned(),
    }
}
