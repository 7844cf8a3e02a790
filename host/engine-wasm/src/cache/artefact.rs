//! A file of compiled code: its name, and its conversion to a component.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::folder::Folder;

/// Version of the naming scheme and of the content. Files of other versions have other names.
const FORMAT: u32 = 1;
/// Suffix of file names.
const ENDING: &str = ".cwasm";
/// Number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Hash of a file's inputs, as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Returns the key of a component. It depends on the component, on our format and on everything that wasmtime's
    /// compiled code depends on: its version, the processor's features and the settings.
    pub(super) fn of(engine: &Engine, code: &[u8]) -> Self {
        let mut settings = Settings(Sha256::new_with_prefix("bulkhead compiled component"));
        FORMAT.hash(&mut settings);
        engine.precompile_compatibility_hash().hash(&mut settings);
        code.hash(&mut settings);
        Self(hexadecimal(settings.0))
    }
}

/// Hasher that does not depend on the default hasher of a Rust release.
struct Settings(Sha256);

impl Hasher for Settings {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

fn hexadecimal(hash: Sha256) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Name of a file: its key and the SHA-256 of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    key: Key,
    content: String,
}

impl Name {
    /// Returns the name of a file with this content.
    pub(super) fn of(key: Key, content: &[u8]) -> Self {
        Self {
            key,
            content: hexadecimal(Sha256::new_with_prefix(content)),
        }
    }

    /// Returns the hash of the inputs.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Parses a file's name; `None` for a file that is not ours.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let (key, content) = file.strip_suffix(ENDING)?.split_once('-')?;
        let digest = |text: &str| text.len() == DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let both = digest(key) && digest(content);
        both.then(|| Self {
            key: Key(key.to_owned()),
            content: content.to_owned(),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}{ENDING}", self.key.0, self.content)
    }
}

/// Error for a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// The file could not be read; it may have been removed.
    #[error("reading compiled code")]
    Read(#[from] io::Error),
    /// Another user may have written the file.
    #[error("{0}")]
    Foreign(String),
    /// The content does not match the digest in the name.
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
    if digest(file)? != name.content {
        return Err(Unusable::Damaged);
    }
    // SAFETY: the bytes must be the unchanged output of `Component::serialize` and stay unchanged while they are
    // mapped. `Cache::keep` is the only writer of such names, and the content matches the digest in the name, so a
    // truncated or corrupted file does not get here. A forged file with a matching digest can only come from a user
    // with write access to the folder or the file. `Folder::open` and `accept` ensure that only this user and root
    // have it; neither needs a forged file. Files are never written in place: they are renamed into existence, and
    // removing one leaves its mappings intact. wasmtime itself checks that the file was compiled by the same
    // wasmtime, for this processor and these settings.
    let component = unsafe { Component::deserialize_file(engine, &path) };
    component.map_err(Unusable::Refused)
}

/// Returns the SHA-256 of a file. It is read in pieces: the code is mapped afterwards and need not fit in memory
/// twice.
fn digest(mut file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        hash.update(bytes);
    }
    Ok(hexadecimal(hash))
}
