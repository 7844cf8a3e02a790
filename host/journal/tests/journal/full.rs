//! Full disks.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, Opened, Problem, Storage, Writer, read, segment};

use crate::records::record;

/// Disk of that many bytes, which holds only the journal.
struct SmallDisk {
    directory: PathBuf,
    bytes: Arc<AtomicU64>,
}

impl SmallDisk {
    fn free(&self) -> usize {
        let files = fs::read_dir(&self.directory).unwrap();
        let used: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        usize::try_from(self.bytes.load(Ordering::Relaxed).saturating_sub(used)).unwrap()
    }
}

impl Storage for SmallDisk {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let free = self.free();
        file.write_all(&bytes[..free.min(bytes.len())])?;
        if free < bytes.len() {
            Err(ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

type Failures = Arc<Mutex<Vec<String>>>;

fn open(directory: &Path, disk_bytes: &Arc<AtomicU64>) -> (Opened, Failures) {
    let failures = Failures::default();
    let failed = Arc::clone(&failures);
    let disk = SmallDisk {
        directory: directory.to_path_buf(),
        bytes: Arc::clone(disk_bytes),
    };
    let bounds = Bounds {
        segment_bytes: 4_000,
        ..Bounds::default()
    };
    let opened = Writer::open_on(directory, bounds, disk, move |error| {
        failed.lock().unwrap().push(error.to_string());
    });
    (opened.unwrap(), failures)
}

fn ids(directory: &Path) -> Vec<u64> {
    let contents = read(directory).unwrap();
    assert!(contents.problems.is_empty(), "{:?}", contents.problems);
    contents.records.iter().map(|stored| stored.record.id).collect()
}

#[test]
fn a_full_disk_costs_the_oldest_segments_and_no_new_record() {
    let directory = tempfile::tempdir().unwrap();
    let disk_bytes = Arc::new(AtomicU64::new(20_000));
    let (opened, failures) = open(directory.path(), &disk_bytes);
    for id in 1..=300 {
        opened.writer.keep(&record(id, 5), None);
        assert_eq!(*failures.lock().unwrap(), Vec::<String>::new(), "record {id}");
    }
    let kept = ids(directory.path());
    assert_eq!(kept.last(), Some(&300));
    assert!(
        kept.len() > 20 && kept.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{kept:?}"
    );
}

#[test]
fn a_disk_that_stays_full_stops_the_writer_with_an_error_and_a_journal_that_is_intact() {
    let directory = tempfile::tempdir().unwrap();
    let disk_bytes = Arc::new(AtomicU64::new(20_000));
    let (opened, failures) = open(directory.path(), &disk_bytes);
    let mut id = 0;
    let mut keep = |count: u64| {
        for _ in 0..count {
            id += 1;
            opened.writer.keep(&record(id, 5), None);
        }
    };
    keep(30);
    // Another program uses up the space.
    disk_bytes.store(0, Ordering::Relaxed);
    keep(3);
    let actual = failures.lock().unwrap().clone();
    assert_eq!(actual.len(), 1, "{actual:?}");
    assert!(
        actual[0].contains("the disk is full") && actual[0].contains("no older segment"),
        "{actual:?}"
    );
    assert_eq!(ids(directory.path()).last(), Some(&30));
}

#[test]
fn a_process_starts_on_a_full_disk_with_a_torn_journal() {
    let directory = tempfile::tempdir().unwrap();
    let disk_bytes = Arc::new(AtomicU64::new(u64::MAX));
    let (opened, _) = open(directory.path(), &disk_bytes);
    for id in 1..=30 {
        opened.writer.keep(&record(id, 5), None);
    }
    drop(opened);
    let (_, last) = segment::list(directory.path()).unwrap().pop().unwrap();
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() - 7]).unwrap();
    disk_bytes.store(0, Ordering::Relaxed);
    let (opened, failures) = open(directory.path(), &disk_bytes);
    assert!(matches!(opened.cut, Some(Problem::Torn { .. })), "{:?}", opened.cut);
    assert!(
        !last.with_extension("torn").exists(),
        "a part of a copy takes room and is of no use"
    );
    assert_eq!((opened.last_id, ids(directory.path()).last()), (29, Some(&29)));
    // The space of one old segment is enough to continue.
    let used: u64 = fs::read_dir(directory.path())
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    disk_bytes.store(used, Ordering::Relaxed);
    opened.writer.keep(&record(30, 6), None);
    assert!(failures.lock().unwrap().is_empty());
    assert_eq!(ids(directory.path()).last(), Some(&30));
}
