//! A plugin that ended the process during its load is not loaded again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bulkhead_plugin::{CrashMarker, LoadLimits, LoadStage};

use super::{Host, files, host, next, patient};

/// Opens the record of a directory as the next process does.
fn marker(folder: &tempfile::TempDir) -> CrashMarker {
    CrashMarker::open(folder.path()).unwrap()
}

/// Returns a copy of the directory as it is now, which is what a crash would leave to the next process.
fn crashed(folder: &tempfile::TempDir) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn stages(host: &Host) -> Vec<LoadStage> {
    host.plugins.status().iter().map(|status| status.stage).collect()
}

#[test]
fn a_plugin_that_ended_the_process_during_its_load_is_not_loaded_again_and_holds_evictions() {
    let folder = tempfile::tempdir().unwrap();
    let list = [
        ("{name: freeze, lua: freeze.lua}", "gate EvictionCheck"),
        ("{name: other, lua: other.lua}", "release"),
    ];
    let ended = marker(&folder);
    let before = host(&list[..1], patient(), Some(&ended));
    let begun = before.engine.report_to();
    before.plugins.look();
    assert_eq!(next(&begun), "freeze");
    let folder = crashed(&folder);

    let retry = LoadLimits {
        retry_base: Duration::ZERO,
        ..patient()
    };
    let present = marker(&folder);
    let after = host(&list, retry, Some(&present));
    after.engine.open();
    after.plugins.refresh();
    assert_eq!(stages(&after), [LoadStage::Quarantined, LoadStage::Active]);
    assert_eq!(
        after.engine.loads.load(Ordering::Relaxed),
        1,
        "the code of the first plugin does not run"
    );
    let (released, why) = after.eviction();
    assert!(
        !released && why.starts_with("PluginNotLoaded: freeze is not loaded: test freeze.lua failed to "),
        "{why}"
    );
    assert!(
        after.summary()[0].contains("plugins-quarantined is deleted"),
        "{:?}",
        after.summary()
    );

    // The operator deletes the line, and the next attempt loads it.
    std::fs::write(folder.path().join("plugins-quarantined"), "").unwrap();
    after.plugins.refresh();
    assert!(after.eviction().0, "{:?}", after.summary());
    before.engine.open();
}

#[test]
fn another_version_of_a_quarantined_plugin_loads_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let ended = marker(&folder);
    let before = host(&[("{name: freeze, lua: freeze.lua}", "gate")], patient(), Some(&ended));
    let begun = before.engine.report_to();
    before.plugins.look();
    assert_eq!(next(&begun), "freeze");
    let folder = crashed(&folder);

    let present = marker(&folder);
    let after = host(
        &[("{name: freeze, lua: freeze.lua}", "gate")],
        LoadLimits::default(),
        Some(&present),
    );
    after.plugins.refresh();
    assert_eq!(after.plugins.status()[0].stage, LoadStage::Quarantined);
    after.data.set(files(&[("{name: freeze, lua: freeze.lua}", "release")]));
    after.plugins.refresh();
    assert_eq!(after.plugins.status()[0].stage, LoadStage::Active);
    before.engine.open();
}

#[test]
fn of_plugins_that_were_loaded_at_the_same_end_only_the_one_that_ends_the_process_alone_is_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let list = [
        ("{name: a, lua: a.lua}", "gate a"),
        ("{name: b, lua: b.lua}", "gate b"),
        ("{name: c, lua: c.lua}", "release"),
    ];
    let ended = marker(&folder);
    let first = host(&list[..2], patient(), Some(&ended));
    let begun = first.engine.report_to();
    first.plugins.look();
    let mut names = [next(&begun), next(&begun)];
    names.sort();
    assert_eq!(names, ["a", "b"]);
    let (folder, unharmed) = (crashed(&folder), crashed(&folder));

    // Suspects are loaded one at a time, after the other plugins.
    let ended = marker(&folder);
    let second = host(&list, patient(), Some(&ended));
    let begun = second.engine.report_to();
    second.plugins.look();
    assert_eq!([next(&begun), next(&begun)], ["c", "a"]);
    assert!(
        begun.recv_timeout(Duration::from_millis(200)).is_err(),
        "both suspects are being loaded"
    );
    let folder = crashed(&folder);

    let present = marker(&folder);
    let third = host(&list, patient(), Some(&present));
    third.engine.open();
    third.plugins.refresh();
    assert_eq!(
        stages(&third),
        [LoadStage::Quarantined, LoadStage::Active, LoadStage::Active]
    );

    // If no process ends again, every suspect is loaded.
    let present = marker(&unharmed);
    let other = host(&list, patient(), Some(&present));
    other.engine.open();
    other.plugins.refresh();
    assert_eq!(stages(&other), [LoadStage::Active; 3]);
    first.engine.open();
    second.engine.open();
}
