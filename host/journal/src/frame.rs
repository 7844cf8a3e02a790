//! The form on disk.
//!
//! ```text
//! segment  header frame*
//! header   magic(8) version(2) first_id(8) first_at_ms(8) before(32) checksum(16)
//! frame    length(4) !length(4) sort(1) payload(length) checksum(16)
//! ```
//!
//! Numbers are little-endian. `before` is the end of the chain of the segment before this one, zero for the first. The
//! checksum of a frame is the first half of the chain after it: SHA-256 over the chain before it, its sort and its
//! payload.

use sha2::{Digest, Sha256};

/// What every segment begins with.
pub const MAGIC: [u8; 8] = *b"BULKHJNL";
/// The version of the form that this program writes.
pub const VERSION: u16 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 8 + 2 + 8 + 8 + 32 + CHECKSUM_BYTES;
/// Bytes of a frame without its payload.
pub const FRAME_BYTES: usize = 4 + 4 + 1 + CHECKSUM_BYTES;
/// Longest payload. A record of 5,000 clusters is far below it.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
const CHECKSUM_BYTES: usize = 16;

/// Everything before some point of a journal, in 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain([u8; 32]);

impl Chain {
    fn after(self, sort: u8, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([sort]);
        hash.update(payload);
        Self(hash.finalize().into())
    }

    fn checksum(&self) -> &[u8] {
        &self.0[..CHECKSUM_BYTES]
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A version of a cluster, as canonical JSON.
    Cluster,
    /// Keys of the versions of all clusters that a decision looked at, as a JSON array of texts.
    Fleet,
    /// A record with its case, as canonical JSON.
    Record,
    /// The id of a record whose effects could not be applied, as a JSON number.
    Abandoned,
    /// An object of an embedded control plane, as JSON with the version of its state. No journal has it.
    Object,
    /// What names an object of an embedded control plane that is gone, likewise.
    Removed,
}

impl Sort {
    fn byte(self) -> u8 {
        match self {
            Self::Cluster => 1,
            Self::Fleet => 2,
            Self::Record => 3,
            Self::Abandoned => 4,
            Self::Object => 5,
            Self::Removed => 6,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        let all = [Self::Cluster, Self::Fleet, Self::Record, Self::Abandoned, Self::Object, Self::Removed];
        all.into_iter().find(|sort| sort.byte() == byte)
    }
}

/// What a segment begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Id of the first record that was to be written to it.
    pub first_id: u64,
    /// Time of that record, in milliseconds since the Unix epoch.
    pub first_at_ms: i64,
    /// The end of the chain of the segment before.
    pub before: Chain,
}

impl Header {
    /// The header on disk, and the chain that the first frame follows.
    pub fn encode(&self) -> (Vec<u8>, Chain) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.first_id.to_le_bytes());
        bytes.extend(self.first_at_ms.to_le_bytes());
        bytes.extend(self.before.0);
        let chain = self.before.after(0, &bytes);
        bytes.extend(chain.checksum());
        (bytes, chain)
    }

    /// Reads a header.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Chain), BadHeader> {
        if !bytes.starts_with(&MAGIC) {
            let torn = bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes);
            return Err(if torn { BadHeader::Torn } else { BadHeader::Foreign });
        }
        let version = u16::from_le_bytes(array(bytes, 8).ok_or(BadHeader::Torn)?);
        if version > VERSION {
            return Err(BadHeader::Newer(version));
        }
        // There is no older form.
        if version != VERSION {
            return Err(BadHeader::Changed);
        }
        let first_id = u64::from_le_bytes(array(bytes, 10).ok_or(BadHeader::Torn)?);
        let first_at_ms = i64::from_le_bytes(array(bytes, 18).ok_or(BadHeader::Torn)?);
        let before = Chain(array(bytes, 26).ok_or(BadHeader::Torn)?);
        let checksum: [u8; CHECKSUM_BYTES] = array(bytes, 58).ok_or(BadHeader::Torn)?;
        let header = Self { first_id, first_at_ms, before };
        let (_, chain) = header.encode();
        if chain.checksum() == checksum { Ok((header, chain)) } else { Err(BadHeader::Changed) }
    }
}

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// It is not complete.
    Torn,
    /// It is another sort of file.
    Foreign,
    /// It has a version that this program does not know.
    Newer(u16),
    /// Its checksum is wrong.
    Changed,
}

/// Adds a frame to `out`. Returns the chain after it.
pub fn append(out: &mut Vec<u8>, chain: Chain, sort: Sort, payload: &[u8]) -> Chain {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.push(sort.byte());
    out.extend(payload);
    let after = chain.after(sort.byte(), payload);
    out.extend(after.checksum());
    after
}

/// What stands at some place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A frame.
    Frame {
        /// What it holds; absent for a sort that this program does not know.
        sort: Option<Sort>,
        /// Its content.
        payload: &'a [u8],
        /// The chain after it.
        chain: Chain,
        /// Its length with everything.
        bytes: usize,
    },
    /// The end.
    End,
    /// The beginning of a frame, and no more.
    Torn,
    /// Something that was never written.
    Changed,
}

/// Reads the frame that `bytes` begin with; `chain` is that before it.
pub fn next(bytes: &[u8], chain: Chain) -> Found<'_> {
    if bytes.is_empty() {
        return Found::End;
    }
    // Some file systems leave zeros where a write was under way.
    let incomplete = if bytes.iter().all(|byte| *byte == 0) { Found::Torn } else { Found::Changed };
    let (Some(length), Some(inverse)) = (array(bytes, 0), array(bytes, 4)) else { return Found::Torn };
    let (length, inverse) = (u32::from_le_bytes(length), u32::from_le_bytes(inverse));
    let payload_bytes = usize::try_from(length).unwrap_or(usize::MAX);
    if length != !inverse || payload_bytes > PAYLOAD_BYTES_MAX {
        return incomplete;
    }
    let frame_bytes = payload_bytes + FRAME_BYTES;
    let Some(frame) = bytes.get(..frame_bytes) else { return Found::Torn };
    let (head, checksum) = frame.split_at(frame_bytes - CHECKSUM_BYTES);
    let (sort, payload) = (head[8], &head[9..]);
    let after = chain.after(sort, payload);
    if after.checksum() != checksum {
        // The end of what was written last may not have reached the disk.
        let unwritten = bytes[frame_bytes - CHECKSUM_BYTES..].iter().all(|byte| *byte == 0);
        return if unwritten { Found::Torn } else { Found::Changed };
    }
    Found::Frame { sort: Sort::of(sort), payload, chain: after, bytes: frame_bytes }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(payloads: &[&[u8]]) -> (Vec<u8>, Chain) {
        let (mut bytes, mut chain) = Header { first_id: 1, first_at_ms: 5, before: Chain::default() }.encode();
        let start = chain;
        for payload in payloads {
            chain = append(&mut bytes, chain, Sort::Record, payload);
        }
        (bytes, start)
    }

    /// How many frames are read, and what ends them.
    fn read(bytes: &[u8], mut chain: Chain) -> (usize, bool, bool) {
        let (mut at, mut count) = (HEADER_BYTES, 0);
        loop {
            match next(&bytes[at..], chain) {
                Found::Frame { chain: after, bytes, .. } => (at, chain, count) = (at + bytes, after, count + 1),
                Found::End => return (count, false, false),
                Found::Torn => return (count, true, false),
                Found::Changed => return (count, false, true),
            }
        }
    }

    #[test]
    fn a_segment_that_is_cut_anywhere_is_torn_and_loses_the_last_frame_only() {
        let (bytes, chain) = segment(&[b"one", b"two", b""]);
        assert_eq!(read(&bytes, chain), (3, false, false));
        let last = bytes.len() - FRAME_BYTES;
        for end in last + 1..bytes.len() {
            assert_eq!(read(&bytes[..end], chain), (2, true, false), "cut at {end}");
        }
        assert_eq!(read(&bytes[..last], chain), (2, false, false));
    }

    #[test]
    fn any_bit_that_changes_is_noticed() {
        let (bytes, chain) = segment(&[b"one", b"two", b"three"]);
        for at in HEADER_BYTES..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let (_, torn, noticed) = read(&changed, chain);
                assert!(noticed && !torn, "bit {bit} of byte {at}");
            }
        }
        for at in 0..HEADER_BYTES {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Header::decode(&changed).is_err(), "byte {at} of the header");
        }
    }

    #[test]
    fn a_frame_that_is_left_out_or_put_twice_breaks_the_chain() {
        let (bytes, chain) = segment(&[b"one", b"two", b"end"]);
        let frame = FRAME_BYTES + 3;
        let without = [&bytes[..HEADER_BYTES], &bytes[HEADER_BYTES + frame..]].concat();
        assert_eq!(read(&without, chain), (0, false, true));
        let twice = [&bytes[..HEADER_BYTES + frame], &bytes[HEADER_BYTES..]].concat();
        assert_eq!(read(&twice, chain), (1, false, true));
    }

    #[test]
    fn headers_tell_foreign_newer_and_torn_files_apart() {
        let (bytes, _) = segment(&[]);
        assert_eq!(Header::decode(b"#!/bin/sh\nexit 0"), Err(BadHeader::Foreign));
        assert_eq!(Header::decode(&bytes[..3]), Err(BadHeader::Torn));
        assert_eq!(Header::decode(&bytes[..HEADER_BYTES - 1]), Err(BadHeader::Torn));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(Header::decode(&newer), Err(BadHeader::Newer(9)));
        let zeros = [&bytes[..], &[0; 100]].concat();
        let (_, chain) = Header::decode(&zeros).unwrap();
        assert_eq!(read(&zeros, chain), (0, true, false));
    }
}
