//! Access of other users.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bulkhead_core::journal::Sink;
use bulkhead_journal::{Bounds, segment};

use crate::records::record;
use crate::support::open_bounded;

const BOUNDS: Bounds = Bounds {
    bytes_max: 256 << 20,
    age_max_ms: i64::MAX,
    segment_bytes: 1,
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn modes(directory: &Path) -> Vec<u32> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| mode(&entry.unwrap().path()))
        .collect()
}

#[test]
fn a_journal_belongs_to_its_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new/journal");
    let writer = open_bounded(&directory, BOUNDS);
    (1..=3).for_each(|id| writer.keep(&record(id, 5), None));
    assert_eq!(mode(&directory), 0o700);
    // Three segments and the lock.
    assert_eq!(modes(&directory), [0o600; 4]);
}

#[test]
fn a_journal_that_was_open_to_others_is_closed_to_them() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("journal");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    let writer = open_bounded(&directory, BOUNDS);
    (1..=2).for_each(|id| writer.keep(&record(id, 5), None));
    drop(writer);
    fs::write(segment::path(&directory, 1).with_extension("torn"), "half a record").unwrap();
    for entry in fs::read_dir(&directory).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    open_bounded(&directory, BOUNDS).keep(&record(3, 5), None);
    assert_eq!(mode(&directory), 0o700);
    // Three segments, the torn end, and the lock.
    assert_eq!(modes(&directory), [0o600; 5]);
}
