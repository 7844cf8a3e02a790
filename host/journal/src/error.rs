//! Errors of journals.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or the directory cannot be read or written.
    #[error("{operation} {}", path.display())]
    Io {
        /// Operation that failed.
        operation: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The disk is full, and no older segment is left to remove.
    #[error(
        "writing {}: the disk is full, and the journal has no older segment to drop; free disk space or lower the size \
         limit of the journal",
        path.display()
    )]
    Full {
        /// Path of the segment.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another process writes the journal.
    #[error("{}: another process writes this journal; give each process its own directory", .0.display())]
    InUse(PathBuf),
    /// The directory has no segments.
    #[error(
        "{}: there is no journal in this directory; `bulkhead run` and `bulkhead simulate` write one with --journal",
        .0.display()
    )]
    Empty(PathBuf),
    /// The journal is damaged in a place where nothing may be cut, so nothing is appended to it.
    #[error(
        "{0}; move the directory away to start a new journal, `bulkhead history` can still read the rest of this one"
    )]
    Damaged(Problem),
}

impl JournalError {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            operation,
            path,
            source,
        }
    }
}

/// Problem with a part of a journal; other parts can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The last frame is incomplete: the process or the machine died while writing it, or the file was cut.
    #[error(
        "{}: the last {bytes} bytes are an incomplete record: its process ended while it wrote, or the file was cut and \
         later records are missing",
        path.display()
    )]
    Torn {
        /// Path of the segment.
        path: PathBuf,
        /// Number of torn bytes.
        bytes: u64,
    },
    /// The file is not a segment of a journal.
    #[error("{}: not a journal segment", .0.display())]
    Foreign(PathBuf),
    /// A newer program wrote the segment.
    #[error(
        "{}: format version {version} is newer than {known}, the version of this program; use a newer program",
        path.display()
    )]
    Newer {
        /// Path of the segment.
        path: PathBuf,
        /// Format version of the segment.
        version: u16,
        /// Newest format version that this program knows.
        known: u16,
    },
    /// The checksum does not match: bytes were changed.
    #[error("{}: damaged or changed at byte {at}; the rest of this segment is skipped", path.display())]
    Changed {
        /// Path of the segment.
        path: PathBuf,
        /// Offset from the start of the file, in bytes.
        at: u64,
    },
    /// A segment does not follow the one before it: one was removed or replaced.
    #[error(
        "{}: does not follow {}: a segment between them was removed, or one was replaced",
        path.display(),
        before.display()
    )]
    Gap {
        /// Path of the segment.
        path: PathBuf,
        /// Path of the segment before it.
        before: PathBuf,
    },
    /// A frame is intact, but this program does not know its content.
    #[error("{}: cannot decode the frame at byte {at}: {why}", path.display())]
    Unreadable {
        /// Path of the segment.
        path: PathBuf,
        /// Offset from the start of the file, in bytes.
        at: u64,
        /// Cause.
        why: String,
    },
}

impl Problem {
    /// Returns true if a crash explains the problem, so that the rest can be trusted.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Torn { .. })
    }
}
