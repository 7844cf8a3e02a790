//! Bytes of a module with their digest.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bulkhead_core::manifest::Digest;

/// Code of a module. Clones share the bytes and their digest, which is computed at most once: a component has up to
/// tens of megabytes, and the digest is part of its version, its records and the keys of caches.
#[derive(Clone)]
pub struct ModuleCode(Arc<Shared>);

struct Shared {
    bytes: Vec<u8>,
    digest: OnceLock<Digest>,
}

impl ModuleCode {
    /// Returns the SHA-256 of the bytes.
    pub fn digest(&self) -> Digest {
        let bytes = self.0.bytes.as_slice();
        *self.0.digest.get_or_init(|| Digest::of(std::iter::once(bytes)))
    }
}

impl From<Vec<u8>> for ModuleCode {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Shared {
            bytes,
            digest: OnceLock::new(),
        }))
    }
}

impl From<&[u8]> for ModuleCode {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&str> for ModuleCode {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for ModuleCode {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl Deref for ModuleCode {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for ModuleCode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.bytes == other.0.bytes
    }
}

impl Eq for ModuleCode {}

/// Formats the bytes as a vector is formatted.
impl fmt::Debug for ModuleCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_bytes_and_the_digest_is_that_of_the_bytes() {
        let code = ModuleCode::from("function Score() end");
        let clone = code.clone();
        assert_eq!(code.as_ptr(), clone.as_ptr());
        assert_eq!(
            clone.digest(),
            Digest::of(std::iter::once(b"function Score() end".as_slice()))
        );
        assert_eq!(code, ModuleCode::from(b"function Score() end".to_vec()));
        assert_ne!(code, ModuleCode::from("function Score() "));
    }
}
