//! One file of compiled code: how it is named, and how it becomes a component again.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::folder::Folder;

/// Version of the naming and of what a file holds; another one never meets these files.
const FORMAT: u32 = 1;
/// What the names of files end with.
const ENDING: &str = ".cwasm";
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// What a file was made from, as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Depends on the component, on our format and on all that wasmtime says compiled code depends on: its version, the
    /// processor's features and the settings.
    pub(super) fn of(engine: &Engine, code: &[u8]) -> Self {
        let mut settings = Settings(Sha256::new_with_prefix("bulkhead compiled component"));
        FORMAT.hash(&mut settings);
        engine.precompile_compatibility_hash().hash(&mut settings);
        code.hash(&mut settings);
        Self(hexadecimal(settings.0))
    }
}

/// Collects what is hashed, so that the hash does not depend on which hasher a Rust release comes with.
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
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The name of a file: its key and the SHA-256 of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    key: Key,
    content: String,
}

impl Name {
    /// The name of a file with that content.
    pub(super) fn of(key: Key, content: &[u8]) -> Self {
        Self { key, content: hexadecimal(Sha256::new_with_prefix(content)) }
    }

    /// What it was made from.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Reads a file's name; absent for a file that is not ours.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let (key, content) = file.strip_suffix(ENDING)?.split_once('-')?;
        let digest = |text: &str| text.len() == DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let both = digest(key) && digest(content);
        both.then(|| Self { key: Key(key.to_owned()), content: content.to_owned() })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}{ENDING}", self.key.0, self.content)
    }
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// It could not be read; it may be gone.
    #[error("reading compiled code")]
    Read(#[from] io::Error),
    /// Somebody else may have written it.
    #[error("{0}")]
    Foreign(String),
    /// Its content is not what its name says.
    #[error("the content does not match the name")]
    Damaged,
    /// wasmtime does not take it.
    #[error("loading compiled code")]
    Refused(#[source] wasmtime::Error),
}

impl Unusable {
    /// Whether the file was there and not what it should be, as opposed to gone.
    pub(super) fn is_bad(&self) -> bool {
        !matches!(self, Self::Read(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Maps a file into memory as a component, after checking that it is one of ours.
#[expect(unsafe_code, reason = "wasmtime has no safe way to load compiled code")]
pub(super) fn load(folder: &Folder, name: &Name, engine: &Engine) -> Result<Component, Unusable> {
    let path = folder.path(name);
    let file = File::open(&path)?;
    folder.accept(&file.metadata()?).map_err(Unusable::Foreign)?;
    if digest(file)? != name.content {
        return Err(Unusable::Damaged);
    }
    // SAFETY: the bytes have to be the unchanged output of `Component::serialize`, and to stay unchanged while mapped.
    // `Cache::keep` is the only writer of such names, and the content matches the digest in the name, so a file that
    // was torn or damaged does not get here. A file that somebody made up to match can only come from those who can
    // write in the folder, or to the file; `Folder::open` and `accept` admit none but this user and root, who need no
    // such detour. Files are never written in place: they are renamed into existence, and removing one leaves mappings
    // of it intact. That the file was compiled by this very wasmtime, for this processor and these settings, is checked
    // by wasmtime itself.
    let component = unsafe { Component::deserialize_file(engine, &path) };
    component.map_err(Unusable::Refused)
}

/// The SHA-256 of a file, read in pieces: the code itself is mapped afterwards and need not fit in memory twice.
fn digest(mut file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hash.update(bytes);
    }
    Ok(hexadecimal(hash))
}
