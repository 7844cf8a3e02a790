//! Conversion of a file of compiled code to a component.

use std::fs::File;
use std::io::{self, Read};

use wasmtime::Engine;
use wasmtime::component::Component;

use super::folder::Folder;
use super::name::Name;
use crate::checksum::{Checksum, PartialChecksum};

/// Error for a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// The file could not be read; it may have been removed.
    #[error("reading compiled code")]
    Read(#[from] io::Error),
    /// Another user may have written the file.
    #[error("{0}")]
    Foreign(String),
    /// The content does not match the checksum in the name.
    #[error("the content does not match the name")]
    Damaged,
    /// wasmtime rejected the file.
    #[error("loading compiled code")]
    Refused(#[source] wasmtime::Error),
}

impl Unusable {
    /// Returns true if the file exists but is invalid.
    pub(super) fn is_bad(&self) -> bool {
        !matches!(self, Self::Read(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Maps a file into memory as a component, after verifying that it is one of ours.
#[expect(unsafe_code, reason = "wasmtime has no safe way to load compiled code")]
pub(super) fn load(folder: &Folder, name: &Name, engine: &Engine) -> Result<Component, Unusable> {
    let path = folder.path(name);
    let file = File::open(&path)?;
    folder.accept(&file.metadata()?).map_err(Unusable::Foreign)?;
    if checksum(file)?.to_string() != name.content() {
        return Err(Unusable::Damaged);
    }
    // SAFETY: the bytes must be the unchanged output of `Component::serialize` and stay unchanged while they are
    // mapped. `Cache::keep` is the only writer of such names, and the content matches the checksum in the name, so a
    // truncated or corrupted file does not get here. A forged file with a matching checksum can only come from a user
    // with write access to the folder or the file. `Folder::open` and `accept` ensure that only this user and root
    // have it; neither needs a forged file. Files are never written in place: they are renamed into existence, and
    // removing one leaves its mappings intact. wasmtime itself checks that the file was compiled by the same
    // wasmtime, for this processor and these settings.
    let component = unsafe { Component::deserialize_file(engine, &path) };
    component.map_err(Unusable::Refused)
}

/// Returns the checksum of a file. It is read in pieces: the code is mapped afterwards and need not fit in memory
/// twice.
fn checksum(mut file: File) -> io::Result<Checksum> {
    let mut checksum = PartialChecksum::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        checksum.update(bytes);
    }
    Ok(checksum.finish())
}
