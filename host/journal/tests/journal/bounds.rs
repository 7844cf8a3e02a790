//! Bounds of size and age.

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, read, segment};

use crate::records::{decision, record};
use crate::support::open_bounded;

fn ids(directory: &std::path::Path) -> Vec<u64> {
    let contents = read(directory).unwrap();
    assert!(contents.problems.is_empty(), "{:?}", contents.problems);
    contents.records.iter().map(|stored| stored.record.id).collect()
}

#[test]
fn the_oldest_segments_go_when_there_are_too_many_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        bytes_max: 20_000,
        segment_bytes: 4_000,
        ..Bounds::default()
    };
    let writer = open_bounded(directory.path(), bounds);
    for id in 1..=200 {
        writer.keep(
            &record(id, 5),
            Some(&decision("member1", if id % 2 == 0 { "True" } else { "False" })),
        );
        let sizes = segment::list(directory.path()).unwrap();
        let bytes: u64 = sizes
            .iter()
            .map(|(_, path)| std::fs::metadata(path).unwrap().len())
            .sum();
        // One segment may be open besides those that were counted when it was begun.
        assert!(bytes <= 20_000 + 4_000 + 4_000, "{bytes} bytes after record {id}");
    }
    let kept = ids(directory.path());
    assert_eq!(kept.last(), Some(&200));
    assert!(kept.len() > 10 && kept.len() < 100, "{} records are left", kept.len());
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{kept:?}");
    // Every segment has all that its records need.
    let contents = read(directory.path()).unwrap();
    assert!(contents.records.iter().all(|stored| stored.decision.is_some()));
}

#[test]
fn segments_go_when_their_newest_record_is_too_old() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        age_max_ms: 10_000,
        segment_bytes: 500,
        ..Bounds::default()
    };
    for id in 1..=40 {
        // Reopened for each record, so that the data about segments comes from the disk.
        let at_ms = i64::try_from(id).unwrap() * 1_000;
        open_bounded(directory.path(), bounds).keep(&record(id, at_ms), None);
    }
    let kept = ids(directory.path());
    assert_eq!(kept.last(), Some(&40));
    assert!(kept.first().is_some_and(|first| (25..=30).contains(first)), "{kept:?}");
}

#[test]
fn a_clock_that_jumps_deletes_one_segment_and_not_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        age_max_ms: 10_000,
        segment_bytes: 500,
        ..Bounds::default()
    };
    let writer = open_bounded(directory.path(), bounds);
    let segments = || segment::list(directory.path()).unwrap();
    let mut id = 0;
    let mut keep = |at_ms| {
        id += 1;
        writer.keep(&record(id, at_ms), None);
    };
    for at_ms in 0..20 {
        keep(at_ms);
    }
    let (before, first) = (segments().len(), segments()[0].0);
    // The clock is a year ahead until one more segment is begun.
    let last = segments()[before - 1].0;
    while segments().last().unwrap().0 == last {
        keep(365 * 24 * 3_600_000);
    }
    assert_eq!(
        segments()[0].0,
        first + 1,
        "one segment goes for the one that was begun"
    );
    for _ in 0..20 {
        keep(30);
    }
    assert_eq!(
        segments()[0].0,
        first + 1,
        "the clock is right again, and nothing is too old"
    );
    assert!(segments().len() > before);
}

#[test]
fn a_quiet_journal_loses_one_old_segment_at_each_call_of_expire() {
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds {
        age_max_ms: 10_000,
        segment_bytes: 500,
        ..Bounds::default()
    };
    let writer = open_bounded(directory.path(), bounds);
    for id in 1..=20 {
        writer.keep(&record(id, 5), None);
    }
    writer.keep(&record(21, 60_000), None);
    let count = || segment::list(directory.path()).unwrap().len();
    let before = count();
    writer.expire();
    assert_eq!(count(), before - 1);
    for _ in 0..before {
        writer.expire();
    }
    // The newest closed segment stays, as with the bound of size.
    assert_eq!((count(), ids(directory.path()).last()), (2, Some(&21)));
}
