//! Digest of a plugin's code.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Algorithm of the digests of registries. They may support others, which no tool uses by default.
const PREFIX: &str = "sha256:";
/// Number of hexadecimal digits.
const DIGITS: usize = 64;

/// SHA-256 of a plugin's code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of several pieces, each prefixed with its length, so that moving a boundary changes it. The
    /// digest of a single piece is the plain SHA-256, as computed by other tools.
    pub fn of<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let pieces: Vec<_> = pieces.collect();
        let mut hash = Sha256::new();
        for piece in &pieces {
            if pieces.len() > 1 {
                hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
            }
            hash.update(piece);
        }
        Self(hash.finalize().into())
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first 12 hexadecimal digits, to distinguish builds of a plugin.
    pub fn short(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(12);
        digits
    }
}

/// Checks a digest as registries write it: `sha256:` and 64 lower-case hexadecimal digits.
///
/// # Errors
///
/// It is another text.
pub fn check_digest(text: &str) -> Result<(), String> {
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    match text.strip_prefix(PREFIX) {
        Some(hex) if hex.len() == DIGITS && hex.bytes().all(is_digit) => Ok(()),
        _ => Err(format!(
            "{text:?} is not a digest; a digest is {PREFIX} and {DIGITS} lower-case hexadecimal digits"
        )),
    }
}

/// Formats the digest as 64 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn one_piece_has_the_digest_that_other_tools_tell() {
        let digest = Digest::of([b"abc".as_slice()].into_iter());
        assert_eq!(
            digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.short(), "ba7816bf8f01");
    }

    #[test]
    fn the_border_between_pieces_counts() {
        let of = |pieces: [&'static str; 2]| Digest::of(pieces.into_iter().map(str::as_bytes));
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
