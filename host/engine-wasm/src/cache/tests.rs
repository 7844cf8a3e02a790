//! The component is returned regardless of the state of the files, and the report has the details.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use wasmtime::{Config, Engine};

use super::name::{Key, Name};
use super::{Cache, CacheOptions, CacheReport};
use crate::bound;

/// Returns a component that differs from others by a number.
fn component(number: u32) -> Vec<u8> {
    let text = format!("(component (core module (func (export \"f\") (result i32) (i32.const {number}))))");
    wat::parse_str(text).unwrap()
}

/// Requests a component from a cache.
fn request(cache: &Cache, engine: &Engine, code: &[u8]) {
    cache
        .component(engine, &[code], || bound::compile(engine, code))
        .expect("it compiles whatever the cache holds");
}

fn open(folder: &Path) -> Cache {
    Cache::open(CacheOptions::in_folder(folder))
}

/// Requests a component from a new cache, and returns the report.
fn load(folder: &Path, engine: &Engine, code: &[u8]) -> CacheReport {
    let cache = open(folder);
    request(&cache, engine, code);
    cache.report()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn hit() -> CacheReport {
    CacheReport {
        hits: 1,
        ..CacheReport::default()
    }
}

fn miss() -> CacheReport {
    CacheReport {
        misses: 1,
        ..CacheReport::default()
    }
}

/// Stores a component, damages its file, and checks that it is compiled and stored again.
fn check_bad_file(harm: impl FnOnce(&Path)) {
    let (folder, engine, code) = (TempDir::new().unwrap(), Engine::default(), component(1));
    assert_eq!(load(folder.path(), &engine, &code), miss());
    let [file] = files(folder.path()).try_into().unwrap();
    harm(&file);
    assert_eq!(
        load(folder.path(), &engine, &code),
        CacheReport { discarded: 1, ..miss() }
    );
    assert_eq!(files(folder.path()), [file], "it is kept again");
    assert_eq!(load(folder.path(), &engine, &code), hit());
}

#[test]
fn what_was_compiled_once_is_not_compiled_again() {
    let (folder, engine) = (TempDir::new().unwrap(), Engine::default());
    assert_eq!(load(folder.path(), &engine, &component(1)), miss());
    assert_eq!(load(folder.path(), &engine, &component(1)), hit());
    assert_eq!(load(folder.path(), &engine, &component(2)), miss());
}

#[test]
fn other_settings_need_other_code() {
    let folder = TempDir::new().unwrap();
    let metered = Engine::new(Config::new().consume_fuel(true)).unwrap();
    assert_eq!(load(folder.path(), &metered, &component(1)), miss());
    assert_eq!(load(folder.path(), &Engine::default(), &component(1)), miss());
    assert_eq!(files(folder.path()).len(), 2);
}

#[test]
fn a_torn_file_is_compiled_again() {
    check_bad_file(|file| {
        let torn = fs::metadata(file).unwrap().len() / 2;
        File::options().write(true).open(file).unwrap().set_len(torn).unwrap();
    });
    check_bad_file(|file| File::options().write(true).open(file).unwrap().set_len(0).unwrap());
}

#[test]
fn a_file_with_one_wrong_byte_is_compiled_again() {
    check_bad_file(|file| {
        let mut content = fs::read(file).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        fs::write(file, content).unwrap();
    });
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_compiled_again() {
    use std::os::unix::fs::PermissionsExt as _;
    check_bad_file(|file| fs::set_permissions(file, fs::Permissions::from_mode(0o622)).unwrap());
}

#[test]
fn code_of_another_wasmtime_is_compiled_again_even_under_the_right_name() {
    let (folder, engine, code) = (TempDir::new().unwrap(), Engine::default(), component(1));
    let metered = Engine::new(Config::new().consume_fuel(true)).unwrap();
    let foreign = metered.precompile_component(&code).unwrap();
    let name = Name::of(Key::of(&engine, &[&code]), &foreign);
    fs::write(folder.path().join(name.to_string()), foreign).unwrap();
    assert_eq!(
        load(folder.path(), &engine, &code),
        CacheReport { discarded: 1, ..miss() }
    );
    assert_eq!(load(folder.path(), &engine, &code), hit());
}

#[test]
fn other_files_are_left_alone() {
    let folder = TempDir::new().unwrap();
    let other = folder.path().join("README");
    fs::write(&other, "not ours").unwrap();
    let cache = Cache::open(CacheOptions {
        bytes_max: 1,
        ..CacheOptions::in_folder(folder.path())
    });
    request(&cache, &Engine::default(), &component(1));
    assert_eq!(
        files(folder.path()),
        [other],
        "and what is larger than the cache is not kept"
    );
}

#[test]
fn a_file_of_the_first_format_goes_when_it_is_the_oldest() {
    let (folder, digest) = (TempDir::new().unwrap(), "0".repeat(64));
    let old = folder.path().join(format!("{digest}-{digest}.cwasm"));
    fs::write(&old, vec![0; 1 << 20]).unwrap();
    File::open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let cache = Cache::open(CacheOptions {
        bytes_max: 1 << 20,
        ..CacheOptions::in_folder(folder.path())
    });
    request(&cache, &Engine::default(), &component(1));
    assert_eq!(cache.report(), CacheReport { evicted: 1, ..miss() });
    assert!(!old.exists());
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let report = load(folder.path(), &Engine::default(), &component(1));
    assert!(
        report
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("chmod go-w")),
        "{report:?}"
    );
    assert_eq!((report.misses, files(folder.path()).len()), (1, 0));
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_made_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("a/b");
    assert_eq!(load(&folder, &Engine::default(), &component(1)), miss());
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_a_folder_everything_is_compiled_and_the_first_reason_is_reported() {
    let parent = TempDir::new().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    let report = load(&file.join("folder"), &Engine::default(), &component(1));
    assert!(
        report
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("cannot create the folder")),
        "{report:?}"
    );
    assert_eq!(report.misses, 1);
    // The directory is removed while it is in use.
    let folder = parent.path().join("folder");
    let cache = open(&folder);
    fs::remove_dir(&folder).unwrap();
    request(&cache, &Engine::default(), &component(1));
    request(&cache, &Engine::default(), &component(2));
    let report = cache.report();
    assert!(
        report
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("cannot keep")),
        "{report:?}"
    );
    assert_eq!((report.hits, report.misses), (0, 2));
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let (folder, engine) = (TempDir::new().unwrap(), Engine::default());
    for number in 0..3 {
        load(folder.path(), &engine, &component(number));
    }
    let of = |number| {
        let key = Key::of(&engine, &[&component(number)]);
        files(folder.path()).into_iter().find(|file| {
            Name::parse(file.file_name().unwrap().to_str().unwrap()).is_some_and(|name| *name.key() == key)
        })
    };
    // Set old times in the order 0, 1, 2; then use 0 again.
    #[expect(clippy::disallowed_methods, reason = "files have times of their own")]
    let now = SystemTime::now();
    for number in 0..3_u32 {
        let age = Duration::from_secs(1000 - u64::from(number));
        File::open(of(number).unwrap())
            .unwrap()
            .set_modified(now.checked_sub(age).unwrap())
            .unwrap();
    }
    assert_eq!(load(folder.path(), &engine, &component(0)), hit());
    let size = fs::metadata(of(0).unwrap()).unwrap().len();
    let cache = Cache::open(CacheOptions {
        bytes_max: size * 5 / 2,
        ..CacheOptions::in_folder(folder.path())
    });
    request(&cache, &engine, &component(3));
    assert_eq!(cache.report(), CacheReport { evicted: 2, ..miss() });
    assert_eq!(
        [0, 1, 2, 3].map(|number| of(number).is_some()),
        [true, false, false, true]
    );
}

#[test]
fn what_a_process_that_died_left_behind_is_removed() {
    let (folder, engine) = (TempDir::new().unwrap(), Engine::default());
    let [old, new] = [".unfinished-old", ".unfinished-new"].map(|name| folder.path().join(name));
    fs::write(&old, "").unwrap();
    fs::write(&new, "").unwrap();
    File::open(&old).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    load(folder.path(), &engine, &component(1));
    assert!(!old.exists() && new.exists());
}

#[test]
fn several_processes_may_share_a_folder() {
    let (folder, engine) = (TempDir::new().unwrap(), Engine::default());
    let reports: Vec<_> = std::thread::scope(|scope| {
        let threads = (0..4_u32).map(|_| scope.spawn(|| load(folder.path(), &engine, &component(1))));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(
        reports
            .iter()
            .all(|report| report.discarded == 0 && report.problem.is_none()),
        "{reports:?}"
    );
    assert_eq!(files(folder.path()).len(), 1);
}
