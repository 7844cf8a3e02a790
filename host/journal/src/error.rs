//! What can be wrong with a journal.

use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or the directory cannot be read or written.
    #[error("{operation} {}", path.display())]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The disk is full, and no older segment is left to drop.
    #[error("writing {}: the disk is full, and the journal has no older segment to drop; make room, or lower the bound of the journal", path.display())]
    Full {
        /// The segment.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another process writes it.
    #[error("{}: another process writes this journal; give each process a directory of its own", .0.display())]
    InUse(PathBuf),
    /// There are no segments.
    #[error("{}: there is no journal in this directory; --journal writes one", .0.display())]
    Empty(PathBuf),
    /// It is damaged where nothing may be cut, so nothing is appended to it.
    #[error("{0}; move the directory away to start a new journal, `bulkhead history` reads what is left of this one")]
    Damaged(Problem),
}

impl JournalError {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { operation, path, source }
    }
}

/// Something that is wrong with a journal, though other parts of it can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The last frame is not complete: the process or the machine died while writing it.
    #[error("{}: the last {bytes} bytes are torn; the record that they began was never acted upon", path.display())]
    Torn {
        /// The segment.
        path: PathBuf,
        /// How many bytes.
        bytes: u64,
    },
    /// The file is no segment of a journal.
    #[error("{}: this is no segment of a journal", .0.display())]
    Foreign(PathBuf),
    /// A newer program wrote it.
    #[error("{}: it has version {version} of the form, and this program knows {known}; use a newer program", path.display())]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Its version.
        version: u16,
        /// The newest that this program knows.
        known: u16,
    },
    /// The checksum is not that of what is there: bytes were changed.
    #[error("{}: damaged or changed at byte {at}; what follows in this segment is left out", path.display())]
    Changed {
        /// The segment.
        path: PathBuf,
        /// Where, from the start of the file.
        at: u64,
    },
    /// A segment does not follow the one before it: one was taken out or replaced.
    #[error("{}: it does not follow {}: a segment between them was taken out, or one was replaced", path.display(), before.display())]
    Gap {
        /// The segment.
        path: PathBuf,
        /// The one before it.
        before: PathBuf,
    },
    /// A frame is intact and its content is not what this program knows.
    #[error("{}: the frame at byte {at} cannot be understood: {why}", path.display())]
    Unreadable {
        /// The segment.
        path: PathBuf,
        /// Where, from the start of the file.
        at: u64,
        /// Why.
        why: String,
    },
}

impl Problem {
    /// Whether it is what a crash leaves behind, and no reason to doubt the rest.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Torn { .. })
    }
}
