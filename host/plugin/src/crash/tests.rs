use std::fs;
use std::sync::{Barrier, mpsc};

use bulkhead_core::call::{Call, CallKind, HealthCall, Reply, ScoreCall};
use bulkhead_core::model::Binding;
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::Module;

/// Limit of waits that must not run out in a test.
const PATIENCE: Duration = Duration::from_mins(1);

fn plugin(code: &str) -> PluginSource {
    let module = Module {
        origin: "p.lua".to_owned(),
        code: code.into(),
        entries: Vec::new(),
    };
    PluginSource::new(code, EngineKind::Lua, vec![module])
}

fn open(folder: &TempDir) -> CrashMarker {
    CrashMarker::open_with(folder.path(), PATIENCE).unwrap()
}

fn begin(marker: &CrashMarker, code: &str) -> Mark {
    marker.marks.begin_load(&plugin(code))
}

fn begin_call(marker: &CrashMarker, code: &str) -> Option<Mark> {
    marker.marks.begin_call(plugin(code).digest(), "Score", code)
}

fn is_quarantined(marker: &CrashMarker, code: &str) -> bool {
    marker.marks.quarantine(&plugin(code)).is_some()
}

fn is_suspect(marker: &CrashMarker, code: &str) -> bool {
    marker.marks.is_suspect(&plugin(code))
}

/// Waits until all changes are in the file.
fn settle(marker: &CrashMarker) {
    let state = marker.marks.lock();
    let change = state.changes;
    assert!(marker.marks.wait(state, change, PATIENCE).stored >= change);
}

/// Returns a copy of the directory as it is now, which is what a crash would leave to the next process.
fn crashed(folder: &TempDir) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn code_that_ran_alone_when_the_process_ended_is_quarantined_until_its_line_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    begin(&marker, "good").survived();
    let _bad = begin(&marker, "bad");
    assert!(!is_quarantined(&marker, "bad"), "it is still running");
    let folder = crashed(&folder);
    let file = folder.path().join(QUARANTINED);
    for has_news in [true, false] {
        let marker = open(&folder);
        assert_eq!(marker.notices().len(), usize::from(has_news), "{:?}", marker.notices());
        let way_out = |text: &str| text.contains("during load") && text.contains(&file.display().to_string());
        assert!(
            marker
                .notices()
                .iter()
                .all(|notice| way_out(notice) && notice.contains("plugin bad"))
        );
        let why = marker.marks.quarantine(&plugin("bad")).unwrap();
        assert!(way_out(&why), "{why}");
        assert!(!is_quarantined(&marker, "good") && !is_quarantined(&marker, "bad, mended"));
        assert_eq!(names(&folder), [LOCK, QUARANTINED]);
    }
    let marker = open(&folder);
    fs::write(&file, "\n").unwrap();
    assert!(
        !is_quarantined(&marker, "bad"),
        "the line is deleted while the process runs"
    );
}

#[test]
fn code_that_ran_beside_other_code_is_suspected_until_it_returns() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let _marks = ["a", "b", "c"].map(|code| begin(&marker, code));
    let folder = crashed(&folder);
    let marker = open(&folder);
    assert!(
        marker.notices()[0].contains("a (load), b (load), c (load)"),
        "{:?}",
        marker.notices()
    );
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|code| is_suspect(&marker, code) && !is_quarantined(&marker, code))
    );
    begin(&marker, "a").survived();
    drop(begin(&marker, "b"));
    let _ran_alone = begin(&marker, "c");
    assert!(
        !is_suspect(&marker, "a") && is_suspect(&marker, "b"),
        "b did not return"
    );
    let folder = crashed(&folder);
    let marker = open(&folder);
    assert!(["a", "b", "c"].map(|code| is_quarantined(&marker, code)) == [false, false, true]);
    assert!(["a", "b", "c"].map(|code| is_suspect(&marker, code)) == [false, true, false]);
}

#[test]
fn a_plugin_that_ends_every_process_is_quarantined_after_three_ends_whatever_runs_beside_it() {
    let mut folder = tempfile::tempdir().unwrap();
    for other in ["a", "b", "c"] {
        let marker = open(&folder);
        assert!(!is_quarantined(&marker, "bad"), "before {other}");
        let _marks = [begin(&marker, "bad"), begin(&marker, other)];
        folder = crashed(&folder);
    }
    let marker = open(&folder);
    assert!(["bad", "a", "b", "c"].map(|code| is_quarantined(&marker, code)) == [true, false, false, false]);
    assert!(["bad", "a", "b", "c"].map(|code| is_suspect(&marker, code)) == [false, true, true, true]);
}

#[test]
fn a_start_that_ends_before_the_marks_are_gone_comes_to_the_same_conclusions() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let _bad = begin(&marker, "bad");
    let (folder, running) = (crashed(&folder), fs::read(folder.path().join(RUNNING)).unwrap());
    drop(open(&folder));
    fs::write(folder.path().join(RUNNING), running).unwrap();
    let marker = open(&folder);
    assert!(is_quarantined(&marker, "bad"));
    let text = fs::read_to_string(folder.path().join(QUARANTINED)).unwrap();
    assert_eq!(text.lines().count(), 2, "a comment and one line:\n{text}");
}

#[test]
fn first_calls_of_suspects_come_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let _marks = ["a", "b"].map(|code| begin_call(&marker, code).unwrap());
    let folder = crashed(&folder);
    let marker = open(&folder);
    let first = begin_call(&marker, "a").unwrap();
    assert!(begin_call(&marker, "b").is_none());
    let _other = begin_call(&marker, "c").unwrap();
    first.survived();
    let second = begin_call(&marker, "b").unwrap();
    assert!(begin_call(&marker, "a").is_some(), "it is cleared");
    drop(second);
    assert!(is_suspect(&marker, "b"), "its code did not run");
}

#[test]
fn an_orderly_end_leaves_no_mark_of_code_that_is_still_running() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let (marks, running) = (marker.marks(), begin(&marker, "slow"));
    assert!(folder.path().join(RUNNING).exists());
    drop(marker);
    let late = marks.begin_load(&plugin("late"));
    assert_eq!(names(&folder), [LOCK]);
    drop((running, late));
    assert_eq!(names(&folder), [LOCK]);
    // The record of the ended process is still alive, and does not block the next one.
    assert!(open(&folder).notices().is_empty());
}

#[test]
fn an_orderly_end_keeps_the_suspects() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let _marks = ["a", "b"].map(|code| begin(&marker, code));
    let folder = crashed(&folder);
    drop(open(&folder));
    let marker = open(&folder);
    assert!(is_suspect(&marker, "a") && is_suspect(&marker, "b"));
}

#[test]
fn a_directory_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let _marker = open(&folder);
    let error = CrashMarker::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("another process uses the directory"), "{error}");
    let missing = CrashMarker::open(&folder.path().join("missing"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("plugins-lock"), "{missing}");
}

#[test]
fn a_damaged_file_is_reported_and_the_rest_applies() {
    let folder = tempfile::tempdir().unwrap();
    let line = Activity::load(&plugin("bad"));
    fs::write(
        folder.path().join(QUARANTINED),
        format!("# format 2: new\n{line}\n{}", &line.to_string()[..20]),
    )
    .unwrap();
    fs::write(folder.path().join(RUNNING), b"\xff\xffrunning\n").unwrap();
    let marker = open(&folder);
    assert!(is_quarantined(&marker, "bad") && !is_quarantined(&marker, "good"));
    let (damaged, newer) = (&marker.notices()[0], &marker.notices()[1]);
    assert!(
        damaged.contains(RUNNING) && damaged.contains("1 of 1 lines are damaged"),
        "{damaged}"
    );
    assert!(
        newer.contains(QUARANTINED) && newer.contains("newer version") && newer.contains("1 of 2 lines"),
        "{newer}"
    );
    let _mark = begin(&marker, "good");
    settle(&marker);
    assert!(marker.marks.problems().is_empty());
}

#[test]
fn a_quarantine_that_becomes_unreadable_stays_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(QUARANTINED);
    fs::write(&file, Activity::load(&plugin("bad")).to_string()).unwrap();
    let marker = open(&folder);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(is_quarantined(&marker, "bad"));
    let problems = marker.marks.problems();
    assert!(problems.len() == 1 && problems[0].contains(QUARANTINED), "{problems:?}");
    fs::remove_dir(&file).unwrap();
    assert!(!is_quarantined(&marker, "bad") && marker.marks.problems().is_empty());
}

#[test]
fn code_runs_without_a_mark_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let blocked = folder.path().join(RUNNING).with_extension("new");
    fs::create_dir(&blocked).unwrap();
    let _load = begin(&marker, "p");
    let _call = begin_call(&marker, "p").unwrap();
    let problems = marker.marks.problems();
    assert!(problems.len() == 1 && problems[0].contains(RUNNING), "{problems:?}");
    fs::remove_dir(&blocked).unwrap();
    let _next = begin(&marker, "q");
    assert!(marker.marks.problems().is_empty());
    let text = fs::read_to_string(folder.path().join(RUNNING)).unwrap();
    assert_eq!(text.matches("running ").count(), 3, "{text}");
}

#[test]
fn a_name_cannot_forge_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let mut source = plugin("bad");
    source.name = format!("p\nrunning {} load other", plugin("other").digest());
    let _mark = marker.marks.begin_load(&source);
    let folder = crashed(&folder);
    let marker = open(&folder);
    assert!(!is_quarantined(&marker, "other") && is_quarantined(&marker, "bad"));
}

/// Records the marks that exist during its calls.
struct Looks {
    id: PolicyId,
    capabilities: [Capability; 2],
    running: PathBuf,
    seen: Mutex<Vec<String>>,
    faults: Mutex<Vec<FaultKind>>,
}

impl Policy for Looks {
    fn id(&self) -> &PolicyId {
        &self.id
    }
    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }
    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        let text = fs::read_to_string(&self.running).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("running "));
        let activity = line
            .and_then(|line| line.split(' ').nth(2))
            .unwrap_or("unmarked")
            .to_owned();
        self.seen.lock().unwrap().push(activity);
        let kind = self.faults.lock().unwrap().pop().unwrap_or(FaultKind::Trap);
        Err(Fault::new(kind, "looked"))
    }
}

/// Passes a health call and a score call to a closure.
fn with_calls(with: impl FnOnce(&Call<'_>, &Call<'_>)) {
    let (object, binding, now) = (Arc::new(json!({})), Binding::default(), Time::from_millis(0));
    let clusters = ClusterSnapshot::new([]);
    let health = Call::Health(HealthCall { object: &object, now });
    let score = Call::Score(ScoreCall {
        binding: &binding,
        clusters: clusters.present(),
        now,
    });
    with(&health, &score);
}

#[test]
fn the_first_call_of_each_function_is_marked_and_later_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let looks = Arc::new(Looks {
        id: PolicyId::builtin("p"),
        capabilities: [CallKind::Health, CallKind::Score].map(Capability::any),
        running: folder.path().join(RUNNING),
        seen: Mutex::default(),
        // The first call finds no free instance, so the code does not run.
        faults: Mutex::new(vec![FaultKind::HostBusy]),
    });
    let policy = FirstCalls::new(
        Arc::clone(&looks) as Arc<dyn Policy>,
        plugin("p").digest(),
        marker.marks(),
    );
    with_calls(|health, score| {
        for call in [health, health, health, score, score, health] {
            assert!(policy.call(call).is_err());
            settle(&marker);
        }
    });
    let expected = [
        "InterpretHealth",
        "InterpretHealth",
        "unmarked",
        "Score",
        "unmarked",
        "unmarked",
    ];
    assert_eq!(*looks.seen.lock().unwrap(), expected);
}

/// Reports that it is called, and answers when it may.
struct Waits(PolicyId, [Capability; 1], mpsc::Sender<()>, Arc<Barrier>);

impl Policy for Waits {
    fn id(&self) -> &PolicyId {
        &self.0
    }
    fn capabilities(&self) -> &[Capability] {
        &self.1
    }
    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        self.2.send(()).unwrap();
        self.3.wait();
        Err(Fault::new(FaultKind::Trap, "waited"))
    }
}

#[test]
fn a_suspect_is_busy_while_another_one_is_called_for_the_first_time() {
    let folder = tempfile::tempdir().unwrap();
    let marker = open(&folder);
    let _marks = ["a", "b"].map(|code| begin(&marker, code));
    let folder = crashed(&folder);
    let marker = open(&folder);
    let (sender, called) = mpsc::channel();
    let end = Arc::new(Barrier::new(2));
    let policy = |code: &str| {
        let id = PolicyId::builtin(code);
        let inner = Waits(
            id,
            [Capability::any(CallKind::Health)],
            sender.clone(),
            Arc::clone(&end),
        );
        FirstCalls::new(Arc::new(inner), plugin(code).digest(), marker.marks())
    };
    let (a, b) = (policy("a"), policy("b"));
    let fault = |policy: &FirstCalls| {
        let mut fault = None;
        with_calls(|health, _| fault = policy.call(health).err());
        fault.map(|fault| fault.kind)
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| fault(&a));
        called.recv_timeout(PATIENCE).unwrap();
        assert_eq!(fault(&b), Some(FaultKind::HostBusy));
        end.wait();
        assert_eq!(first.join().unwrap(), Some(FaultKind::Trap));
        let second = scope.spawn(|| fault(&b));
        called.recv_timeout(PATIENCE).unwrap();
        end.wait();
        assert_eq!(second.join().unwrap(), Some(FaultKind::Trap));
    });
}

#[test]
fn a_call_does_not_wait_for_a_disk_that_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    // No thread writes changes.
    let marks = Arc::new(CrashMarks {
        directory: folder.path().to_path_buf(),
        call_wait: Duration::from_millis(1),
        state: Mutex::default(),
        changed: Condvar::new(),
        stored: Condvar::new(),
    });
    let (sender, called) = mpsc::channel();
    let capabilities = [Capability::any(CallKind::Health)];
    let inner = Waits(PolicyId::builtin("p"), capabilities, sender, Arc::new(Barrier::new(1)));
    let policy = FirstCalls::new(Arc::new(inner), plugin("p").digest(), marks);
    with_calls(|health, _| assert_eq!(policy.call(health).unwrap_err().kind, FaultKind::Trap));
    called.try_recv().unwrap();
    assert_eq!(names(&folder), Vec::<String>::new());
}
