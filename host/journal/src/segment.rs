//! The files of a journal.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{JournalError, Problem};
use crate::frame::{BadHeader, Chain, Found, HEADER_BYTES, Header, Sort, VERSION, next};

const PREFIX: &str = "segment-";
const SUFFIX: &str = ".journal";

/// The path of the segment with that number.
pub fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:010}{SUFFIX}"))
}

/// The segments of a directory with their numbers, in order. Other files are none of ours.
///
/// # Errors
///
/// The directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let entries = fs::read_dir(directory).map_err(JournalError::io("reading the directory", directory))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(JournalError::io("reading the directory", directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// A segment as it was read.
#[derive(Debug)]
pub struct Scanned {
    /// Its header.
    pub header: Header,
    /// The end of its chain.
    pub chain: Chain,
    /// Up to where it is intact, in bytes.
    pub intact_bytes: u64,
    /// What ends it early, if something does.
    pub problem: Option<Problem>,
}

/// Reads a segment from its bytes and shows every frame with its position to `frame`.
///
/// # Errors
///
/// The header cannot be read, so nothing of the segment can.
pub fn scan(path: &Path, bytes: &[u8], mut frame: impl FnMut(u64, Option<Sort>, &[u8])) -> Result<Scanned, Problem> {
    let (header, mut chain) = Header::decode(bytes).map_err(|bad| bad_header(path, bytes.len(), bad))?;
    let mut at = HEADER_BYTES;
    let mut problem = None;
    loop {
        let position = u64::try_from(at).unwrap_or(u64::MAX);
        match next(bytes.get(at..).unwrap_or_default(), chain) {
            Found::Frame { sort, payload, chain: after, bytes } => {
                frame(position, sort, payload);
                (at, chain) = (at + bytes, after);
                continue;
            }
            Found::End => {}
            Found::Torn => {
                let left = u64::try_from(bytes.len() - at).unwrap_or(u64::MAX);
                problem = Some(Problem::Torn { path: path.to_path_buf(), bytes: left });
            }
            Found::Changed => problem = Some(Problem::Changed { path: path.to_path_buf(), at: position }),
        }
        return Ok(Scanned { header, chain, intact_bytes: position, problem });
    }
}

fn bad_header(path: &Path, bytes: usize, bad: BadHeader) -> Problem {
    let path = path.to_path_buf();
    match bad {
        BadHeader::Torn => Problem::Torn { path, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) },
        BadHeader::Foreign => Problem::Foreign(path),
        BadHeader::Newer(version) => Problem::Newer { path, version, known: VERSION },
        BadHeader::Changed => Problem::Changed { path, at: 0 },
    }
}
