//! Format on disk.
//!
//! ```text
//! segment  header frame*
//! header   magic(8) version(2) first_id(8) first_at_ms(8) before(32) checksum(16)
//! frame    length(4) !length(4) kind(1) payload(length) checksum(16)
//! ```
//!
//! Numbers are little-endian. `before` is the chain at the end of the previous segment, and zero for the first. The
//! checksum of a frame is the first half of the chain after it: SHA-256 over the chain before it, its kind and its
//! payload.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// First bytes of every segment.
pub const MAGIC: [u8; 8] = *b"BULKHJNL";
/// Version of the format that this program writes.
pub const VERSION: u16 = 1;
/// Size of a header, in bytes.
pub const HEADER_BYTES: usize = 8 + 2 + 8 + 8 + 32 + CHECKSUM_BYTES;
/// Size of a frame without its payload, in bytes.
pub const FRAME_BYTES: usize = 4 + 4 + 1 + CHECKSUM_BYTES;
/// Maximum size of a payload, in bytes. A record of 5,000 clusters is far below it.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;
const CHECKSUM_BYTES: usize = 16;
/// Size of a frame before its payload, in bytes.
const START_BYTES: usize = FRAME_BYTES - CHECKSUM_BYTES;
/// Smallest unit that a disk writes, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Hash of everything before a point of a journal, in 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain([u8; 32]);

impl Chain {
    fn after(self, kind: u8, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([kind]);
        hash.update(payload);
        Self(hash.finalize().into())
    }

    fn checksum(&self) -> &[u8] {
        &self.0[..CHECKSUM_BYTES]
    }
}

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Version of a cluster, as canonical JSON.
    Cluster,
    /// Keys of the versions of all clusters that a decision read, as a JSON array of strings.
    Fleet,
    /// Record with its decision record, as canonical JSON.
    Record,
    /// Id of a record whose effects could not be applied, as a JSON number.
    Abandoned,
    /// Object of an embedded control plane, as JSON with the version of its state. Does not occur in journals.
    Object,
    /// Identity of a removed object of an embedded control plane. Does not occur in journals.
    Removed,
}

impl FrameKind {
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
        let all = [
            Self::Cluster,
            Self::Fleet,
            Self::Record,
            Self::Abandoned,
            Self::Object,
            Self::Removed,
        ];
        all.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Id of the first record that was to be written to the segment.
    pub first_id: u64,
    /// Time of that record, in milliseconds since the Unix epoch; 0 in the first segment, whose header is older than
    /// its first record.
    pub first_at_ms: i64,
    /// Chain at the end of the previous segment.
    pub before: Chain,
}

impl Header {
    /// Encodes the header. Returns its bytes, and the chain that the first frame follows.
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

    /// Decodes a header. Returns it with the chain that the first frame follows.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Chain), BadHeader> {
        if !bytes.starts_with(&MAGIC) {
            let torn = bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes);
            return Err(if torn { BadHeader::Torn } else { BadHeader::Foreign });
        }
        let version = u16::from_le_bytes(array(bytes, 8).ok_or(BadHeader::Torn)?);
        if version > VERSION {
            return Err(BadHeader::Newer(version));
        }
        // There is no older version.
        if version != VERSION {
            return Err(BadHeader::Changed);
        }
        let first_id = u64::from_le_bytes(array(bytes, 10).ok_or(BadHeader::Torn)?);
        let first_at_ms = i64::from_le_bytes(array(bytes, 18).ok_or(BadHeader::Torn)?);
        let before = Chain(array(bytes, 26).ok_or(BadHeader::Torn)?);
        let checksum: [u8; CHECKSUM_BYTES] = array(bytes, 58).ok_or(BadHeader::Torn)?;
        let header = Self {
            first_id,
            first_at_ms,
            before,
        };
        let (_, chain) = header.encode();
        if chain.checksum() == checksum {
            Ok((header, chain))
        } else {
            Err(BadHeader::Changed)
        }
    }
}

/// Reason why a header cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// The header is incomplete.
    Torn,
    /// The file has another format.
    Foreign,
    /// The header has a version that this program does not know.
    Newer(u16),
    /// The checksum is wrong.
    Changed,
}

/// Adds a frame to `out`. Returns the chain after it.
pub fn append(out: &mut Vec<u8>, chain: Chain, kind: FrameKind, payload: &[u8]) -> Chain {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.push(kind.byte());
    out.extend(payload);
    let after = chain.after(kind.byte(), payload);
    out.extend(after.checksum());
    after
}

/// Content at the position of a frame reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// Complete frame.
    Frame {
        /// Kind of the frame; `None` if this program does not know it.
        kind: Option<FrameKind>,
        /// Content of the frame.
        payload: &'a [u8],
    },
    /// End of the segment.
    End,
    /// Beginning of a frame whose rest never reached the disk.
    Torn {
        /// Bytes from the beginning of the frame to the end of the segment.
        bytes: u64,
    },
    /// Content that no writer wrote.
    Changed,
}

/// Frame reader, which holds one frame at a time.
pub struct Frames<R> {
    source: R,
    at: u64,
    chain: Chain,
    payload: Vec<u8>,
}

impl<R: Read> Frames<R> {
    /// Creates a reader of `source`, which is at byte `at` of its segment; `chain` is the chain before that byte.
    pub fn new(source: R, at: u64, chain: Chain) -> Self {
        Self {
            source,
            at,
            chain,
            payload: Vec::new(),
        }
    }

    /// Returns the position in the segment, after all frames so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the chain after all frames so far.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// Reads the next frame. A result other than a frame ends the segment.
    ///
    /// # Errors
    ///
    /// The source cannot be read.
    pub fn advance(&mut self) -> io::Result<Found<'_>> {
        let mut start = Vec::with_capacity(START_BYTES);
        self.source
            .by_ref()
            .take(bytes_of(START_BYTES))
            .read_to_end(&mut start)?;
        if start.is_empty() {
            return Ok(Found::End);
        }
        let (Some(length), Some(inverse)) = (array(&start, 0), array(&start, 4)) else {
            return Ok(torn(&start));
        };
        let (length, inverse) = (u32::from_le_bytes(length), u32::from_le_bytes(inverse));
        let payload_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if length != !inverse || payload_bytes > PAYLOAD_BYTES_MAX {
            return self.damaged(&[&start]);
        }
        let Some(&kind) = start.get(START_BYTES - 1) else {
            return Ok(torn(&start));
        };
        self.payload.clear();
        let rest = payload_bytes + CHECKSUM_BYTES;
        // The buffer grows with the data, so that a corrupted length allocates nothing.
        self.source
            .by_ref()
            .take(bytes_of(rest))
            .read_to_end(&mut self.payload)?;
        if self.payload.len() < rest {
            return Ok(Found::Torn {
                bytes: bytes_of(start.len() + self.payload.len()),
            });
        }
        let (payload, checksum) = self.payload.split_at(payload_bytes);
        let after = self.chain.after(kind, payload);
        if after.checksum() != checksum {
            let frame = std::mem::take(&mut self.payload);
            return self.damaged(&[&start, &frame]);
        }
        (self.at, self.chain) = (self.at + bytes_of(START_BYTES + rest), after);
        Ok(Found::Frame {
            kind: FrameKind::of(kind),
            payload: &self.payload[..payload_bytes],
        })
    }

    /// Distinguishes truncation by a power loss from corruption. `read` is everything that was read of the frame.
    fn damaged(&mut self, read: &[&[u8]]) -> io::Result<Found<'static>> {
        let mut tail = Tail::new(self.at);
        for bytes in read {
            tail.add(bytes);
        }
        tail.add_all(&mut self.source)?;
        Ok(if tail.is_unwritten() {
            Found::Torn { bytes: tail.bytes }
        } else {
            Found::Changed
        })
    }
}

fn torn(start: &[u8]) -> Found<'static> {
    Found::Torn {
        bytes: bytes_of(start.len()),
    }
}

/// Detector of bytes that never reached the disk: some file systems leave zeros in their place.
///
/// A segment holds JSON and checksums, so it has neither a sector of zeros nor many zeros at its end.
#[derive(Debug, Default)]
pub struct Tail {
    at: u64,
    bytes: u64,
    zeros: u64,
    has_empty_sector: bool,
}

impl Tail {
    /// Creates a detector for the tail of a segment from byte `at` on.
    pub fn new(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// Adds bytes of the tail, in order.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.zeros = if *byte == 0 { self.zeros + 1 } else { 0 };
            self.bytes += 1;
            let ends_sector = (self.at + self.bytes).is_multiple_of(SECTOR_BYTES);
            self.has_empty_sector |= ends_sector && self.zeros >= SECTOR_BYTES;
        }
    }

    /// Adds the rest of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn add_all(&mut self, mut rest: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match rest.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => self.add(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the number of bytes of the tail.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if all bytes are zero.
    pub fn is_empty(&self) -> bool {
        self.zeros == self.bytes
    }

    /// Returns true if a part of the tail never reached the disk.
    pub fn is_unwritten(&self) -> bool {
        let last_sector = (self.at + self.bytes) % SECTOR_BYTES;
        let ends_empty = last_sector > 0 && self.zeros >= last_sector;
        self.is_empty() || self.has_empty_sector || ends_empty || self.zeros >= bytes_of(CHECKSUM_BYTES)
    }
}

fn bytes_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(payloads: &[&[u8]]) -> (Vec<u8>, Chain) {
        let (mut bytes, mut chain) = Header {
            first_id: 1,
            first_at_ms: 5,
            before: Chain::default(),
        }
        .encode();
        let start = chain;
        for payload in payloads {
            chain = append(&mut bytes, chain, FrameKind::Record, payload);
        }
        (bytes, start)
    }

    /// Returns the number of frames before the end, and whether the end is torn or changed.
    fn read(bytes: &[u8], chain: Chain) -> (usize, bool, bool) {
        let mut frames = Frames::new(&bytes[HEADER_BYTES..], HEADER_BYTES as u64, chain);
        let mut count = 0;
        loop {
            match frames.advance().unwrap() {
                Found::Frame { .. } => count += 1,
                Found::End => return (count, false, false),
                Found::Torn { .. } => return (count, true, false),
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
    fn a_hole_of_zeros_that_a_power_loss_leaves_is_torn_wherever_it_is() {
        let sector = usize::try_from(SECTOR_BYTES).unwrap();
        for length in 1_500..1_500 + sector {
            let payload = vec![b'x'; length];
            let (bytes, chain) = segment(&[b"one", &payload, &payload]);
            for hole in (sector..bytes.len()).step_by(sector) {
                let mut holed = bytes.clone();
                holed[hole..(hole + sector).min(bytes.len())].fill(0);
                let (count, torn, _) = read(&holed, chain);
                assert!(
                    torn && (1..=2).contains(&count),
                    "one sector at {hole} of {}",
                    bytes.len()
                );
                holed[hole..].fill(0);
                let (count, torn, _) = read(&holed, chain);
                assert!(torn && (1..=2).contains(&count), "all from {hole} of {}", bytes.len());
            }
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
