//! Damage to a journal by crashes, people and other programs.

use std::fs;
use std::path::{Path, PathBuf};

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, JournalError, Problem, Writer, read, segment};

use crate::records::{decision, record};
use crate::support::{open, open_segmented};

/// Writes a journal with that many records, each with a decision record. Returns its first segment.
fn journal(directory: &Path, records: u64) -> PathBuf {
    let writer = open(directory);
    for id in 1..=records {
        writer.keep(
            &record(id, 5),
            Some(&decision("member1", if id % 2 == 0 { "True" } else { "False" })),
        );
    }
    segment::path(directory, 1)
}

fn read_ids(directory: &Path) -> (Vec<u64>, Vec<Problem>) {
    let contents = read(directory).unwrap();
    (
        contents.records.iter().map(|stored| stored.record.id).collect(),
        contents.problems,
    )
}

#[test]
fn a_torn_end_is_reported_truncated_and_overwritten() {
    let whole = tempfile::tempdir().unwrap();
    let bytes = fs::read(journal(whole.path(), 3)).unwrap();
    for end in (0..bytes.len()).step_by(7) {
        let directory = tempfile::tempdir().unwrap();
        let path = segment::path(directory.path(), 1);
        fs::write(&path, &bytes[..end]).unwrap();
        let (before, problems) = read_ids(directory.path());
        assert!(problems.iter().all(Problem::is_harmless), "cut at {end}: {problems:?}");
        let opened = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}")).unwrap();
        assert_eq!(opened.cut.is_some(), !problems.is_empty(), "cut at {end}");
        assert_eq!(opened.last_id, u64::try_from(before.len()).unwrap(), "cut at {end}");
        opened
            .writer
            .keep(&record(opened.last_id + 1, 6), Some(&decision("member2", "True")));
        drop(opened);
        let (after, problems) = read_ids(directory.path());
        assert_eq!((after.len(), problems), (before.len() + 1, Vec::new()), "cut at {end}");
    }
}

#[test]
fn a_journal_with_a_tail_that_never_reached_the_disk_goes_on() {
    let whole = tempfile::tempdir().unwrap();
    let path = journal(whole.path(), 12);
    let bytes = fs::read(&path).unwrap();
    // A part was not written before a power loss: the header, the middle, the end, or everything.
    for hole in [0..512, 1_024..1_536, bytes.len() - 20..bytes.len(), 0..bytes.len()] {
        let directory = tempfile::tempdir().unwrap();
        let path = segment::path(directory.path(), 1);
        let mut holed = bytes.clone();
        holed[hole.clone()].fill(0);
        fs::write(&path, &holed).unwrap();
        // A header of zeros before records cannot be distinguished from a file of another program.
        if hole == (0..512) {
            assert!(Writer::open(directory.path(), Bounds::default(), |_| {}).is_err());
            continue;
        }
        let (_, problems) = read_ids(directory.path());
        assert!(
            matches!(&problems[..], [Problem::Torn { .. }]),
            "{hole:?}: {problems:?}"
        );
        let opened = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}")).unwrap();
        assert!(
            opened.cut.is_some() && opened.last_id < 12,
            "{hole:?}: {}",
            opened.last_id
        );
        opened.writer.keep(&record(opened.last_id + 1, 6), None);
        assert_eq!(read_ids(directory.path()).1, Vec::new(), "{hole:?}");
    }
}

#[test]
fn a_journal_that_nothing_was_recorded_in_is_empty_and_sound() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    assert_eq!(read_ids(directory.path()), (Vec::new(), Vec::new()));
    let opened = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}")).unwrap();
    assert!(opened.cut.is_none() && opened.records == 0);
}

#[test]
fn what_is_cut_off_is_kept_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = journal(directory.path(), 2);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    drop(open(directory.path()));
    let kept = fs::read(&path).unwrap();
    assert_eq!(
        [kept, fs::read(path.with_extension("torn")).unwrap()].concat(),
        bytes[..bytes.len() - 1]
    );
}

#[test]
fn a_byte_that_was_changed_is_found_and_nothing_is_appended() {
    let directory = tempfile::tempdir().unwrap();
    let path = journal(directory.path(), 4);
    let mut bytes = fs::read(&path).unwrap();
    let at = String::from_utf8_lossy(&bytes).rfind("because").unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x20;
    assert!(middle < at);
    fs::write(&path, &bytes).unwrap();
    let (ids, problems) = read_ids(directory.path());
    assert!(!ids.is_empty() && ids.len() < 4, "{ids:?}");
    assert!(
        matches!(&problems[..], [Problem::Changed { path: actual, .. }] if *actual == path),
        "{problems:?}"
    );
    let refused = Writer::open(directory.path(), Bounds::default(), |_| {}).err().unwrap();
    assert!(
        matches!(refused, JournalError::Damaged(Problem::Changed { .. })),
        "{refused}"
    );
}

#[test]
fn foreign_and_newer_files_are_named() {
    let check = |bytes: &[u8], expected: &str| {
        let directory = tempfile::tempdir().unwrap();
        let path = segment::path(directory.path(), 1);
        fs::write(&path, bytes).unwrap();
        let (ids, problems) = read_ids(directory.path());
        let actual = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(
            ids.is_empty() && actual.contains(expected) && actual.contains("segment-0000000001"),
            "{actual}"
        );
        assert!(Writer::open(directory.path(), Bounds::default(), |_| {}).is_err());
    };
    check(b"{\"kind\": \"List\"}", "not a journal segment");
    let whole = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(journal(whole.path(), 1)).unwrap();
    bytes[8] = 7;
    check(&bytes, "format version 7 is newer than 1, the version of this program");
}

#[test]
fn a_segment_that_was_taken_out_or_replaced_leaves_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_segmented(directory.path(), 1);
    for id in 1..=4 {
        writer.keep(&record(id, 5), None);
    }
    drop(writer);
    fs::remove_file(segment::path(directory.path(), 2)).unwrap();
    let (ids, problems) = read_ids(directory.path());
    assert_eq!(ids, [1, 3, 4]);
    assert!(matches!(&problems[..], [Problem::Gap { .. }]), "{problems:?}");
    // Without its first segment, it is a journal that made room.
    fs::remove_file(segment::path(directory.path(), 1)).unwrap();
    assert_eq!(read_ids(directory.path()), (vec![3, 4], Vec::new()));
}

#[test]
fn a_directory_without_a_journal_is_an_error_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(read(directory.path()).err(), Some(JournalError::Empty(_))));
    let missing = directory.path().join("missing");
    assert!(matches!(read(&missing).err(), Some(JournalError::Io { .. })));
}
