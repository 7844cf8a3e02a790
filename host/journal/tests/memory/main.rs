//! Memory that is needed to open a long journal, and to find one decision in it.
//!
//! A separate test binary with one test, because the measured memory is that of the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../journal/records.rs"]
mod records;

use std::path::Path;

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, Writer, segment, visit};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SEGMENT_BYTES: u64 = 1 << 20;
const JOURNAL_BYTES: u64 = 24 << 20;
const BOUNDS: Bounds = Bounds {
    bytes_max: JOURNAL_BYTES,
    age_max_ms: i64::MAX,
    segment_bytes: SEGMENT_BYTES,
};
/// Maximum memory for opening, in bytes: far below one segment, since only one frame is held.
const OPENING_BYTES_MAX: usize = 1 << 20;
/// Maximum memory for a visit, in bytes: the decoded records of two segments.
const VISITING_BYTES_MAX: usize = 24 << 20;

/// Fills a journal up to its bound. Returns the id of the last record.
fn fill(directory: &Path) -> u64 {
    let writer = Writer::open(directory, BOUNDS, |error| panic!("{error}"))
        .unwrap()
        .writer;
    let number = JOURNAL_BYTES / SEGMENT_BYTES + 2;
    let mut id = 0;
    while segment::list(directory)
        .unwrap()
        .last()
        .is_none_or(|(last, _)| *last < number)
    {
        for _ in 0..200 {
            id += 1;
            let decision = records::decision(&format!("member{id}"), if id % 2 == 0 { "True" } else { "False" });
            writer.keep(&records::record(id, i64::try_from(id).unwrap()), Some(&decision));
        }
    }
    id
}

fn peak_of<T>(act: impl FnOnce() -> T) -> (usize, T) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let done = act();
    (MEMORY.peak_usage().saturating_sub(before), done)
}

#[test]
fn a_full_journal_is_opened_in_the_memory_of_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let last_id = fill(directory.path());
    let sizes: Vec<_> = segment::list(directory.path()).unwrap();
    let bytes: u64 = sizes
        .iter()
        .map(|(_, path)| std::fs::metadata(path).unwrap().len())
        .sum();
    assert!(bytes > JOURNAL_BYTES / 2, "the journal has only {bytes} bytes");

    let (peak, opened) = peak_of(|| Writer::open(directory.path(), BOUNDS, |error| panic!("{error}")).unwrap());
    assert_eq!(opened.last_id, last_id);
    assert!(opened.records > 1_000 && opened.cut.is_none());
    assert!(
        peak < OPENING_BYTES_MAX,
        "opening {bytes} bytes took {peak} bytes of memory"
    );
    drop(opened);

    let (peak, found) = peak_of(|| {
        let mut found = 0;
        let problems = visit(directory.path(), |stored| found += u64::from(stored.record.id > 0)).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        found
    });
    assert!(found > 1_000);
    assert!(
        peak < VISITING_BYTES_MAX,
        "visiting {bytes} bytes took {peak} bytes of memory"
    );
}
