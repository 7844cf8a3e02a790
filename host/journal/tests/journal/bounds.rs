//! How much is kept.

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, read, segment};

use crate::records::{case, record};
use crate::support::open_bounded;

fn ids(directory: &std::path::Path) -> Vec<u64> {
    let contents = read(directory).unwrap();
    assert!(contents.problems.is_empty(), "{:?}", contents.problems);
    contents.records.iter().map(|stored| stored.record.id).collect()
}

#[test]
fn the_oldest_segments_go_when_there_are_too_many_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds { bytes_max: 20_000, segment_bytes: 4_000, ..Bounds::default() };
    let writer = open_bounded(directory.path(), bounds);
    for id in 1..=200 {
        writer.keep(&record(id, 5), Some(&case("member1", if id % 2 == 0 { "True" } else { "False" })));
        let sizes = segment::list(directory.path()).unwrap();
        let bytes: u64 = sizes.iter().map(|(_, path)| std::fs::metadata(path).unwrap().len()).sum();
        // One segment may be open besides those that are counted when it was begun.
        assert!(bytes <= 20_000 + 4_000 + 4_000, "{bytes} bytes after record {id}");
    }
    let kept = ids(directory.path());
    assert_eq!(kept.last(), Some(&200));
    assert!(kept.len() > 10 && kept.len() < 100, "{} records are left", kept.len());
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{kept:?}");
    // Every segment has all that its records need.
    let contents = read(directory.path()).unwrap();
    assert!(contents.records.iter().all(|stored| stored.case.is_some()));
}

#[test]
fn segments_go_when_their_newest_record_is_too_old() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds { age_max_ms: 10_000, segment_bytes: 500, ..Bounds::default() };
    for id in 1..=40 {
        // Opened anew each time: what is known of the segments comes from the disk.
        let at_ms = i64::try_from(id).unwrap() * 1_000;
        open_bounded(directory.path(), bounds).keep(&record(id, at_ms), None);
    }
    let kept = ids(directory.path());
    assert_eq!(kept.last(), Some(&40));
    assert!(kept.first().is_some_and(|first| (25..=30).contains(first)), "{kept:?}");
}
