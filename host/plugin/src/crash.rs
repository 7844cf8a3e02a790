//! Quarantine of plugins that ended a process.
//!
//! A fault of a plugin is contained. A defect of an engine may still end the process: a stack overflow, an abort, a
//! kill for lack of memory. Without a record, the process would load the plugin again and end again.
//!
//! [`CrashMarker`] keeps that record in two files. The first has one line for each plugin whose code runs for the
//! first time in this process: while it is loaded, and during the first call of each of its functions. The line is on
//! the disk before the code runs, and is removed afterwards. At the next start, the remaining lines move to the second
//! file. The loader refuses the code of its lines until an operator deletes them.
//!
//! A kill of the process at that moment has the same effect as a crash, because the file cannot tell them apart. An
//! orderly end removes the lines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};

use crate::{Digest, EntryPoint, PluginSource, one_line};

/// File with the plugins whose code is running for the first time.
const RUNNING: &str = "plugins-running";
/// File with the plugins that are not loaded.
const QUARANTINED: &str = "plugins-quarantined";
/// Maximum length of a plugin's name in a line, in characters.
const NAME_CHARS_MAX: usize = 253;

/// Record of the plugins whose code is running for the first time, kept by one process.
///
/// Dropping it is the orderly end of the process: code that is still running then leaves no mark.
#[derive(Debug)]
pub struct CrashMarker(Arc<CrashMarks>);

impl CrashMarker {
    /// Opens the record in an existing directory. Marks of an earlier process put their plugins into quarantine.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let marks = CrashMarks { directory: directory.to_path_buf(), state: Mutex::default() };
        let left = marks.lines(RUNNING)?;
        if !left.is_empty() {
            let mut lines = marks.lines(QUARANTINED)?;
            lines.extend(left);
            lines.sort();
            lines.dedup();
            marks.write(QUARANTINED, &lines)?;
            marks.write(RUNNING, &[])?;
        }
        Ok(Self(Arc::new(marks)))
    }

    /// Returns the record for the loader of plugins.
    pub fn marks(&self) -> Arc<CrashMarks> {
        Arc::clone(&self.0)
    }
}

impl Drop for CrashMarker {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        if !std::mem::take(&mut state.running).is_empty() {
            // At worst a plugin is quarantined that did no harm.
            let _ = self.0.write(RUNNING, &[]);
        }
    }
}

/// Shared part of a [`CrashMarker`].
#[derive(Debug)]
pub struct CrashMarks {
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines by the number of the mark.
    running: BTreeMap<u64, String>,
    last: u64,
    /// True after the orderly end of the process.
    has_ended: bool,
}

impl CrashMarks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// Returns the lines of a file; none if it does not exist.
    fn lines(&self, file: &str) -> io::Result<Vec<String>> {
        match fs::read_to_string(self.path(file)) {
            Ok(text) => Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(about(&self.path(file), &error)),
        }
    }

    /// Replaces a file and syncs it to the disk. A file without lines is removed.
    fn write(&self, file: &str, lines: &[String]) -> io::Result<()> {
        let path = self.path(file);
        self.replace(&path, lines).map_err(|error| about(&path, &error))
    }

    fn replace(&self, path: &Path, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        } else {
            let new = path.with_extension("new");
            let mut written = File::create(&new)?;
            for line in lines {
                writeln!(written, "{line}")?;
            }
            written.sync_all()?;
            fs::rename(&new, path)?;
        }
        // The name of a file is on the disk when its directory is.
        File::open(&self.directory)?.sync_all()
    }

    /// Returns the reason why a plugin must not be loaded, if it is in quarantine.
    pub(crate) fn quarantine(&self, source: &PluginSource) -> io::Result<Option<String>> {
        let digest = source.digest().to_string();
        let is_of_code = |line: &String| line.split(' ').next() == Some(digest.as_str());
        let Some(line) = self.lines(QUARANTINED)?.into_iter().find(is_of_code) else { return Ok(None) };
        let activity = line.split(' ').nth(1).unwrap_or("load");
        let file = self.path(QUARANTINED);
        Ok(Some(format!(
            "an earlier process ended during {activity} of this code, sha256 {digest}; another version loads at once, \
             and this one within minutes after its line in {} is deleted",
            file.display()
        )))
    }

    /// Marks that the code of a plugin runs, until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>, digest: Digest, activity: &str, plugin: &str) -> io::Result<Mark> {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        if !state.has_ended {
            let line = format!("{digest} {activity} {}", one_line(plugin, NAME_CHARS_MAX));
            state.running.insert(number, line);
            if let Err(error) = self.write_running(&state) {
                state.running.remove(&number);
                return Err(error);
            }
        }
        drop(state);
        Ok(Mark { marks: Arc::clone(self), number })
    }

    fn write_running(&self, state: &State) -> io::Result<()> {
        let lines: Vec<_> = state.running.values().cloned().collect();
        self.write(RUNNING, &lines)
    }
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Mark of code that is running.
#[derive(Debug)]
pub(crate) struct Mark {
    marks: Arc<CrashMarks>,
    number: u64,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.marks.lock();
        if state.running.remove(&self.number).is_some() {
            // At worst a plugin is quarantined that did no harm.
            let _ = self.marks.write_running(&state);
        }
    }
}

/// Policy whose first call of each function is marked.
pub(crate) struct FirstCalls {
    inner: Arc<dyn Policy>,
    digest: Digest,
    marks: Arc<CrashMarks>,
    /// True for each function that has returned from a call, in order of [`EntryPoint::ALL`].
    survived: [AtomicBool; EntryPoint::ALL.len()],
}

impl FirstCalls {
    pub(crate) fn new(inner: Arc<dyn Policy>, digest: Digest, marks: Arc<CrashMarks>) -> Self {
        Self { inner, digest, marks, survived: Default::default() }
    }
}

impl Policy for FirstCalls {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let point = EntryPoint::of_call(call);
        let survived = EntryPoint::ALL.iter().position(|known| *known == point).and_then(|at| self.survived.get(at));
        let Some(survived) = survived.filter(|survived| !survived.load(Ordering::Relaxed)) else {
            return self.inner.call(call);
        };
        // A call without a mark is better than a fault: a full disk stops the journal, and with it the process.
        let mark = self.marks.begin(self.digest, point.function(), &self.id().name);
        let answer = self.inner.call(call);
        let was_called = answer.as_ref().err().is_none_or(|fault| fault.kind != FaultKind::HostBusy);
        survived.store(mark.is_ok() && was_called, Ordering::Relaxed);
        answer
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::call::{CallKind, HealthCall, ScoreCall};
    use bulkhead_core::model::Binding;
    use bulkhead_core::policy::EngineKind;
    use bulkhead_core::snapshot::ClusterSnapshot;
    use bulkhead_core::time::Time;
    use serde_json::json;

    use super::*;
    use crate::Module;

    fn plugin(code: &str) -> PluginSource {
        let module = Module { origin: "p.lua".to_owned(), code: code.as_bytes().to_vec(), entries: Vec::new() };
        PluginSource::new("p", EngineKind::Lua, vec![module])
    }

    fn begin(marker: &CrashMarker, code: &str) -> Mark {
        marker.marks().begin(plugin(code).digest(), "load", "p").unwrap()
    }

    /// Simulates the end of the process by a crash.
    fn crash(marker: CrashMarker, marks: Vec<Mark>) {
        std::mem::forget((marker, marks));
    }

    #[test]
    fn code_that_ran_when_the_process_ended_is_quarantined_until_its_line_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let marker = CrashMarker::open(folder.path()).unwrap();
        drop(begin(&marker, "good"));
        let bad = begin(&marker, "bad");
        assert_eq!(marker.marks().quarantine(&plugin("bad")).unwrap(), None, "it is still running");
        crash(marker, vec![bad]);
        for _ in 0..2 {
            let marker = CrashMarker::open(folder.path()).unwrap();
            let quarantine = |code: &str| marker.marks().quarantine(&plugin(code)).unwrap();
            let why = quarantine("bad").unwrap();
            let file = folder.path().join(QUARANTINED);
            assert!(why.contains("during load") && why.contains(&file.display().to_string()), "{why}");
            assert_eq!((quarantine("good"), quarantine("bad, mended")), (None, None));
            assert!(!folder.path().join(RUNNING).exists());
        }
        fs::write(folder.path().join(QUARANTINED), "\n").unwrap();
        let marker = CrashMarker::open(folder.path()).unwrap();
        assert_eq!(marker.marks().quarantine(&plugin("bad")).unwrap(), None);
    }

    #[test]
    fn every_plugin_of_every_crash_stays_in_quarantine() {
        let folder = tempfile::tempdir().unwrap();
        for pair in [["a", "b"], ["c", "a"]] {
            let marker = CrashMarker::open(folder.path()).unwrap();
            let marks = pair.map(|code| begin(&marker, code));
            crash(marker, Vec::from(marks));
        }
        let marker = CrashMarker::open(folder.path()).unwrap();
        for code in ["a", "b", "c"] {
            assert!(marker.marks().quarantine(&plugin(code)).unwrap().is_some(), "{code}");
        }
        assert_eq!(marker.marks().lines(QUARANTINED).unwrap().len(), 3);
    }

    #[test]
    fn an_orderly_end_leaves_no_mark_of_code_that_is_still_running() {
        let folder = tempfile::tempdir().unwrap();
        let marker = CrashMarker::open(folder.path()).unwrap();
        let (marks, running) = (marker.marks(), begin(&marker, "slow"));
        drop(marker);
        let late = marks.begin(plugin("late").digest(), "load", "p").unwrap();
        assert!(!folder.path().join(RUNNING).exists());
        drop((running, late));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let marker = CrashMarker::open(folder.path()).unwrap();
        let name = format!("p\n{} load other", plugin("other").digest());
        let mark = marker.marks().begin(plugin("bad").digest(), "load", &name).unwrap();
        crash(marker, vec![mark]);
        let marker = CrashMarker::open(folder.path()).unwrap();
        assert_eq!(marker.marks().quarantine(&plugin("other")).unwrap(), None);
        assert!(marker.marks().quarantine(&plugin("bad")).unwrap().is_some());
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
            let line = fs::read_to_string(&self.running).unwrap_or_default();
            let activity = line.split(' ').nth(1).unwrap_or("unmarked").to_owned();
            self.seen.lock().unwrap().push(activity);
            let kind = self.faults.lock().unwrap().pop().unwrap_or(FaultKind::Trap);
            Err(Fault::new(kind, "looked"))
        }
    }

    #[test]
    fn the_first_call_of_each_function_is_marked_and_later_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let marker = CrashMarker::open(folder.path()).unwrap();
        let looks = Arc::new(Looks {
            id: PolicyId::builtin("p"),
            capabilities: [CallKind::Health, CallKind::Score].map(Capability::any),
            running: folder.path().join(RUNNING),
            seen: Mutex::default(),
            // The first call finds no free instance, so the code does not run.
            faults: Mutex::new(vec![FaultKind::HostBusy]),
        });
        let policy = FirstCalls::new(Arc::clone(&looks) as Arc<dyn Policy>, plugin("p").digest(), marker.marks());
        let (object, binding, now) = (Arc::new(json!({})), Binding::default(), Time::from_millis(0));
        let clusters = ClusterSnapshot::new([]);
        let health = Call::Health(HealthCall { object: &object, now });
        let score = Call::Score(ScoreCall { binding: &binding, clusters: clusters.present(), now });
        for call in [&health, &health, &health, &score, &score, &health] {
            assert!(policy.call(call).is_err());
        }
        let expected = ["InterpretHealth", "InterpretHealth", "unmarked", "Score", "unmarked", "unmarked"];
        assert_eq!(*looks.seen.lock().unwrap(), expected);
    }
}
