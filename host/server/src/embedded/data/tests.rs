use bulkhead_apiserver::{ApiServer, Clock, DeleteOptions, ObjectKey, Options};
use proptest::prelude::*;

use super::*;
use crate::edit::{edits, with_edits};

/// Creates a server with the stored objects.
fn server(directory: &DataDirectory) -> ApiServer {
    let (contents, persistence) = directory.server("hub").unwrap();
    let options = Options::new("hub", 1, Clock::new(now()));
    let server = ApiServer::new(Options {
        persistence: Some(persistence),
        ..options
    });
    assert!(server.restore(contents).is_empty());
    server
}

#[tokio::test]
async fn objects_and_versions_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    let first = server(&directory);
    let kind = first.kind_id("v1", "Namespace").unwrap();
    for name in ["a", "b"] {
        first
            .store()
            .create(kind, "", json!({"metadata": {"name": name}}))
            .unwrap();
    }
    first
        .store()
        .delete(&ObjectKey::new(kind, "", "b"), &DeleteOptions::default())
        .unwrap();
    let (version, kept) = (
        first.store().resource_version(),
        first.store().get(&ObjectKey::new(kind, "", "a")),
    );
    assert!(
        DataDirectory::open(folder.path()).is_err(),
        "two processes use one folder"
    );
    drop((first, directory));

    // Simulates a torn last write.
    let (_, path) = segment::list(&folder.path().join("hub")).unwrap().pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([7, 0, 0, 0, 1]);
    fs::write(&path, &bytes).unwrap();

    let directory = DataDirectory::open(folder.path()).unwrap();
    let second = server(&directory);
    assert_eq!(second.store().resource_version(), version);
    let names: Vec<_> = second
        .store()
        .list(kind, None)
        .iter()
        .map(|object| object.name().to_owned())
        .collect();
    assert_eq!(names, ["a"]);
    let again = second.store().get(&ObjectKey::new(kind, "", "a")).unwrap();
    assert_eq!(again.content(), kept.unwrap().content());
    let next = second
        .store()
        .create(kind, "", json!({"metadata": {"name": "c"}}))
        .unwrap();
    assert_eq!(next.resource_version(), version + 1);
}

#[test]
fn other_users_read_nothing_of_a_folder_that_was_open_to_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let (folder, hub) = (parent.path().join("data"), parent.path().join("data/hub"));
    fs::create_dir_all(&hub).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open_up = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let directory = DataDirectory::open(&folder).unwrap();
    let first = server(&directory);
    let kind = first.kind_id("v1", "Namespace").unwrap();
    first
        .store()
        .create(kind, "", json!({"metadata": {"name": "a"}}))
        .unwrap();
    drop((first, directory));
    let segments = || {
        segment::list(&hub)
            .unwrap()
            .into_iter()
            .map(|(_, path)| path)
            .collect::<Vec<_>>()
    };
    for path in segments().iter().chain([&folder.join("lock")]) {
        assert_eq!(mode(path), 0o600, "{}", path.display());
        open_up(path, 0o644);
    }
    open_up(&folder, 0o755);
    open_up(&hub, 0o755);
    let directory = DataDirectory::open(&folder).unwrap();
    let _second = server(&directory);
    assert_eq!(
        (mode(&folder), mode(&hub), mode(&folder.join("lock"))),
        (0o700, 0o700, 0o600)
    );
    assert!(segments().iter().all(|path| mode(path) == 0o600));
}

/// Stores namespaces a and b. Returns the hub's directory and its segment.
fn two_namespaces(folder: &Path) -> (PathBuf, PathBuf) {
    let directory = DataDirectory::open(folder).unwrap();
    let first = server(&directory);
    let kind = first.kind_id("v1", "Namespace").unwrap();
    for name in ["a", "b"] {
        first
            .store()
            .create(kind, "", json!({"metadata": {"name": name}}))
            .unwrap();
    }
    let hub = folder.join(HUB);
    let (_, path) = segment::list(&hub).unwrap().pop().unwrap();
    (hub, path)
}

#[test]
fn a_cut_segment_is_kept_and_reported() {
    for cut in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (hub, path) = two_namespaces(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(if cut { bytes.len() - 10 } else { 0 });
        fs::write(&path, &bytes).unwrap();
        let (contents, _kept, losses) = Kept::open(&hub, &Arc::default(), true).unwrap();
        let has_a = contents.objects.iter().any(|object| object["metadata"]["name"] == "a");
        assert_eq!(has_a, cut, "{:?}", contents.objects);
        let read = format!("{} objects were read before it", contents.objects.len());
        let copy = path.with_extension("torn-1");
        assert_eq!(fs::read(&copy).unwrap(), bytes);
        assert_eq!(losses.len(), 1);
        for part in [
            "incomplete from byte",
            &read,
            &path.display().to_string(),
            &copy.display().to_string(),
        ] {
            assert!(losses[0].contains(part), "{part}: {}", losses[0]);
        }
        let (_, _kept, losses) = Kept::open(&hub, &Arc::default(), true).unwrap();
        assert!(losses.is_empty(), "{losses:?}");
    }
}

#[test]
fn a_removed_segment_is_reported_and_a_new_server_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, path) = two_namespaces(folder.path());
    fs::remove_file(path).unwrap();
    let (_, _kept, losses) = Kept::open(&hub, &Arc::default(), true).unwrap();
    assert!(
        losses.len() == 1 && losses[0].contains("no segment is left"),
        "{losses:?}"
    );
    let (_, _kept, losses) = Kept::open(&folder.path().join("member1"), &Arc::default(), false).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
}

#[test]
fn a_folder_that_was_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hub = folder.path().join("hub");
    fs::create_dir_all(&hub).unwrap();
    fs::write(segment::path(&hub, 1), "not a segment").unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    let error = directory.server("hub").map(drop).unwrap_err();
    for part in [
        "segment-0000000001",
        "nothing was changed",
        "to start without its objects",
    ] {
        assert!(format!("{error:#}").contains(part), "{part}: {error:#}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Objects are those that were stored. A segment that is not read to its end is reported, or refused and kept.
    #[test]
    fn a_segment_with_any_damage_is_reported_or_refused_and_invents_nothing(edits in edits()) {
        let folder = tempfile::tempdir().unwrap();
        let (hub, path) = two_namespaces(folder.path());
        let whole = fs::read(&path).unwrap();
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join(path.file_name().unwrap()), &whole).unwrap();
        let (stored, _, _) = Kept::open(copy.path(), &Arc::default(), true).unwrap();
        let damaged = with_edits(&whole, &edits, 256 * 1024);
        fs::write(&path, &damaged).unwrap();
        match Kept::open(&hub, &Arc::default(), true) {
            Ok((contents, _, losses)) => {
                prop_assert!(contents.objects.iter().all(|object| stored.objects.contains(object)));
                // A cut between two changes looks like a process that ended between them.
                prop_assert!(!losses.is_empty() || whole.starts_with(&damaged));
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                prop_assert_eq!(fs::read(&path).unwrap(), damaged);
            }
        }
    }
}
