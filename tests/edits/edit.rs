//! Edits of an input.

use proptest::prelude::*;

/// Pieces that readers of YAML, JSON, HTTP, Lua and binary formats treat specially.
const PIECES: &[&str] = &[
    "",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "\u{feff}",
    "\u{202e}",
    "\u{fffd}",
    "---\n",
    "...\n",
    "%YAML 9.9\n",
    "- ",
    "- - - - - ",
    ": ",
    "? ",
    "|\n",
    ">-\n",
    "<<: *a\n",
    "&a ",
    "*a",
    "!!binary ",
    "!!float ",
    "[*a, *a, *a, *a, *a, *a, *a, *a]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "~",
    "true",
    "-1",
    "1e999",
    "-9223372036854775809",
    "18446744073709551616",
    "0.1",
    ".nan",
    "0x7fffffff",
    "9999-12-31T23:59:59Z",
    "2026-02-30T00:00:00Z",
    "100000000h",
    "%s%n",
    "../../../../",
    "/",
    "~1",
    "end ",
    "]]",
    "while true do end ",
    "string.rep('a', 1e9) ",
    "goto a ::a:: ",
    "\x7f",
];

/// One edit. A place is a share of the input's length, in parts of 65,536.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// Removes up to a number of bytes.
    Remove(u16, usize),
    /// Repeats a number of bytes some times.
    Repeat(u16, usize, usize),
    /// Inserts a piece some times.
    Insert(u16, usize, usize),
    /// Replaces one byte.
    Replace(u16, u8),
    /// Copies a number of bytes to another place.
    Copy(u16, u16, usize),
    /// Cuts the input off.
    Cut(u16),
}

/// Returns a strategy for up to six edits.
pub(crate) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let length = prop_oneof![4 => 1..40_usize, 1 => 1..2_000_usize];
    let times = || prop_oneof![8 => Just(1_usize), 2 => 2..20_usize, 1 => 1_000..30_000_usize];
    let edit = prop_oneof![
        3 => (any::<u16>(), length.clone()).prop_map(|(at, length)| Edit::Remove(at, length)),
        2 => (any::<u16>(), length.clone(), times()).prop_map(|(at, length, times)| Edit::Repeat(at, length, times)),
        6 => (any::<u16>(), 0..PIECES.len(), times()).prop_map(|(at, piece, times)| Edit::Insert(at, piece, times)),
        3 => (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        2 => (any::<u16>(), any::<u16>(), length).prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
        1 => any::<u16>().prop_map(Edit::Cut),
    ];
    prop::collection::vec(edit, 1..6)
}

/// Returns an input with edits, cut off at `length_max` bytes.
pub(crate) fn with_edits(input: &[u8], edits: &[Edit], length_max: usize) -> Vec<u8> {
    let mut edited = input.to_vec();
    for edit in edits {
        let length = edited.len();
        let place = |share: &u16| length * usize::from(*share) / 65_536;
        let end = |start: usize, count: &usize| (start + count).min(length);
        match edit {
            Edit::Remove(at, count) => drop(edited.drain(place(at)..end(place(at), count))),
            Edit::Repeat(at, count, times) => {
                let range = place(at)..end(place(at), count);
                let times = (*times).min(length_max / range.len().max(1));
                let repeated = edited[range.clone()].repeat(times);
                drop(edited.splice(range.end..range.end, repeated));
            }
            Edit::Insert(at, piece, times) => {
                let piece = PIECES[*piece].as_bytes();
                let times = (*times).min(length_max / piece.len().max(1));
                drop(edited.splice(place(at)..place(at), piece.repeat(times)));
            }
            Edit::Replace(at, byte) => {
                let at = place(at);
                edited[at..end(at, &1)].fill(*byte);
            }
            Edit::Copy(from, to, count) => {
                let copied = edited[place(from)..end(place(from), count)].to_vec();
                drop(edited.splice(place(to)..place(to), copied));
            }
            Edit::Cut(at) => edited.truncate(place(at)),
        }
        edited.truncate(length_max);
    }
    edited
}
