//! Checksum of compiled code and of memories.

use std::fmt;

use twox_hash::XxHash3_128;

/// XXH3 with 128 bits.
///
/// It detects damage, many times faster than a cryptographic hash, which would take most of the time of a load from the
/// cache. It is no protection against forgery; neither is a cryptographic hash in a name that a forger can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum(u128);

impl Checksum {
    /// Number of hexadecimal digits.
    pub(crate) const DIGITS: usize = 32;

    /// Returns the checksum of a content.
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(content))
    }
}

/// Formats the checksum as hexadecimal digits.
impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$x}", self.0, width = Self::DIGITS)
    }
}

/// Checksum of a content that comes in pieces.
pub(crate) struct PartialChecksum(XxHash3_128);

impl PartialChecksum {
    /// Returns the checksum of no content.
    pub(crate) fn new() -> Self {
        Self(XxHash3_128::new())
    }

    /// Adds a piece.
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.0.write(piece);
    }

    /// Returns the checksum of all pieces.
    pub(crate) fn finish(&self) -> Checksum {
        Checksum(self.0.finish_128())
    }
}
