//! Journals are written, bounded, damaged in every known way, and read again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod damage;
mod follow;
mod full;
mod modes;
mod records;
mod secrets;
mod support;

use std::sync::Arc;

use bulkhead_core::journal::{Outcome, Sink, canonical};
use bulkhead_journal::{Background, Bounds, JournalError, Writer, read, segment, visit_segments};

use records::{decision, record};
use support::{open, open_segmented};

#[test]
fn what_is_kept_is_read_again_whole() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let (first, second) = (decision("member1", "True"), decision("member1", "False"));
    writer.keep(&record(1, 1_700_000_000_123), Some(&first));
    writer.keep(&record(2, 1_700_000_000_123), Some(&first));
    writer.keep(&record(3, 1_700_000_001_000), None);
    writer.keep(&record(4, 1_700_000_002_000), Some(&second));
    writer.abandon(2);
    let contents = read(directory.path()).unwrap();
    assert!(contents.problems.is_empty(), "{:?}", contents.problems);
    let ids: Vec<_> = contents.records.iter().map(|stored| stored.record.id).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(contents.records[0].record.entry.at.as_millis(), 1_700_000_000_123);
    let abandoned: Vec<_> = contents
        .records
        .iter()
        .map(|stored| stored.record.outcome == Outcome::Abandoned)
        .collect();
    assert_eq!(abandoned, [false, true, false, false]);
    let decisions: Vec<_> = contents
        .records
        .iter()
        .map(|stored| stored.decision.as_ref().map(|kept| &kept.decision))
        .collect();
    assert_eq!(decisions, [Some(&*first), Some(&*first), None, Some(&*second)]);
    let kept = |at: usize| contents.records[at].decision.clone().unwrap();
    assert!(Arc::ptr_eq(&kept(0), &kept(1)), "a decision record is kept once");
    assert_eq!(kept(0).snapshot.len(), 32);
    assert_ne!(kept(0).snapshot, kept(3).snapshot);
}

#[test]
fn some_segments_are_read_without_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_segmented(directory.path(), 1);
    for id in 1..=5 {
        writer.keep(&record(id, 5), None);
    }
    let segments: Vec<_> = segment::list(directory.path()).unwrap();
    let of = |wanted: &[usize]| {
        let wanted: Vec<_> = wanted.iter().map(|at| segments[*at].0).collect();
        let mut found = Vec::new();
        let wants = |number| wanted.contains(&number);
        let problems = visit_segments(directory.path(), wants, |segment, stored| {
            found.push((segment, stored.record.id));
        });
        assert_eq!(problems.unwrap(), []);
        assert!(found.iter().map(|(segment, _)| *segment).eq(wanted));
        found.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(of(&[0, 1, 2, 3, 4]), [1, 2, 3, 4, 5]);
    assert_eq!(of(&[1, 3]), [2, 4]);
    assert_eq!(of(&[3, 4]), [4, 5]);
    assert_eq!(of(&[]), [0; 0]);
}

#[test]
fn submitted_records_are_kept_in_order_and_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, kept) = std::sync::mpsc::channel();
    // More than the queue holds.
    let count = 4_500;
    let background = Background::start(open(directory.path()), move || sender.send(()).unwrap()).unwrap();
    for id in 1..=count {
        background.keep(&record(id, 5), None);
    }
    background.abandon(count);
    drop(background);
    assert_eq!(u64::try_from(kept.into_iter().count()).unwrap(), count + 1);
    let contents = read(directory.path()).unwrap();
    assert!(contents.records.iter().map(|stored| stored.record.id).eq(1..=count));
    assert_eq!(contents.records.last().unwrap().record.outcome, Outcome::Abandoned);
}

#[test]
fn a_journal_goes_on_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    for id in 1..=5 {
        let opened = Writer::open(directory.path(), Bounds::default(), |error| panic!("{error}")).unwrap();
        assert_eq!((opened.last_id, opened.records), (id - 1, id - 1));
        assert_eq!(opened.cut, None);
        opened.writer.keep(
            &record(id, 1_000 * i64::try_from(id).unwrap()),
            Some(&decision("member1", "True")),
        );
    }
    let contents = read(directory.path()).unwrap();
    assert!(
        contents.problems.is_empty() && contents.records.len() == 5,
        "{:?}",
        contents.problems
    );
}

#[test]
fn the_same_records_make_the_same_bytes() {
    let bytes = || {
        let directory = tempfile::tempdir().unwrap();
        let writer = open(directory.path());
        writer.keep(&record(1, 5), Some(&decision("member1", "True")));
        std::fs::read(bulkhead_journal::segment::path(directory.path(), 1)).unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn one_process_writes_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let second = Writer::open(directory.path(), Bounds::default(), |_| {});
    assert!(matches!(second.err(), Some(JournalError::InUse(path)) if path == directory.path()));
    drop(writer);
    drop(open(directory.path()));
}

#[test]
fn secrets_do_not_reach_the_disk_and_what_is_missing_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let secret = support::health_decision(serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "aHVudGVyMg=="},
    }));
    writer.keep(&record(1, 5), Some(&secret));
    let bytes = std::fs::read(bulkhead_journal::segment::path(directory.path(), 1)).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("aHVudGVyMg"));
    let contents = read(directory.path()).unwrap();
    let kept = contents.records[0].decision.clone().unwrap();
    assert_eq!(kept.redacted, 1);
    assert!(canonical(&kept.decision.input).to_string().contains("(redacted)"));
}

#[test]
fn a_write_error_of_the_disk_is_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let actual = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = Arc::clone(&actual);
    // One record per segment; the path of the third segment is a directory, so that it cannot be created.
    let bounds = Bounds {
        segment_bytes: 1,
        ..Bounds::default()
    };
    let opened = Writer::open(directory.path(), bounds, move |error| {
        tell.lock().unwrap().push(error.to_string());
    });
    let writer = opened.unwrap().writer;
    std::fs::create_dir(bulkhead_journal::segment::path(directory.path(), 3)).unwrap();
    for id in 1..=4 {
        writer.keep(&record(id, 5), None);
    }
    let actual = actual.lock().unwrap().clone();
    assert_eq!(actual.len(), 1, "{actual:?}");
    assert!(
        actual[0].starts_with("making ") && actual[0].ends_with("segment-0000000003.journal"),
        "{actual:?}"
    );
}
