//! Disk operations of a journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::private;

/// Disk operations of a writer that use or free space. Tests substitute a disk of their own.
pub trait Storage: Send {
    /// Creates a new file for appending.
    ///
    /// # Errors
    ///
    /// The file exists or cannot be created.
    fn create(&mut self, path: &Path) -> io::Result<File> {
        private::open(OpenOptions::new().append(true).create_new(true), path)
    }

    /// Appends bytes to a file. After an error, any part of them may be in the file.
    ///
    /// # Errors
    ///
    /// The disk is full or broken.
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Removes a file if it exists.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    fn remove(&mut self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {}

/// Returns true if more space on the disk would help.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
