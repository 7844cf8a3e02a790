//! Names of files of compiled code.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;

use crate::checksum::Checksum;

/// Version of the naming scheme and of the content. Files of other versions have other names.
const FORMAT: u32 = 2;
/// Suffix of file names.
const ENDING: &str = ".cwasm";
/// Number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Hash of a file's inputs, as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// Returns the key of a component. It depends on its inputs, on our format and on everything that wasmtime's
    /// compiled code depends on: its version, the processor's features and the settings. A component itself is an
    /// input by its digest, which is known already.
    pub(crate) fn of(engine: &Engine, inputs: &[&[u8]]) -> Self {
        let mut settings = Settings(Sha256::new_with_prefix("bulkhead compiled component"));
        FORMAT.hash(&mut settings);
        engine.precompile_compatibility_hash().hash(&mut settings);
        for input in inputs {
            input.hash(&mut settings);
        }
        Self(hexadecimal(settings.0))
    }

    /// Returns the digits.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
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

/// Returns the digits of a hash.
fn hexadecimal(hash: Sha256) -> String {
    let mut digits = String::with_capacity(DIGITS);
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Name of a file: its key and the checksum of its content.
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
            content: Checksum::of(content).to_string(),
        }
    }

    /// Returns the hash of the inputs.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the checksum of the content, as hexadecimal digits.
    pub(super) fn content(&self) -> &str {
        &self.content
    }

    /// Parses a file's name; `None` for a file that is not ours. Files of format 1, which has a SHA-256 in place of the
    /// checksum, are ours: they are not loaded, but removed when they are the least recently used.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let (key, content) = file.strip_suffix(ENDING)?.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let both = key.len() == DIGITS && digits(key);
        let both = both && [Checksum::DIGITS, DIGITS].contains(&content.len()) && digits(content);
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
