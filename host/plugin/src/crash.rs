//! Quarantine of plugins that ended a process.
//!
//! A fault of a plugin is contained. A defect of an engine may still end the process: a stack overflow, an abort, a
//! kill for lack of memory. Without a record, the process would load the plugin again and end again.
//!
//! [`CrashMarker`] keeps that record in two files. `plugins-running` has a line for each plugin whose code runs for
//! the first time in this process: while it is loaded, and during the first call of each of its functions. The line
//! is in the file before the code runs, and is removed afterwards. The next start draws the conclusions from the lines
//! that are left:
//!
//! - One plugin: it ended the process. Its line moves to `plugins-quarantined`, and the loader refuses its code until
//!   an operator deletes the line.
//! - Several plugins: each is a suspect. Suspects are loaded one at a time, after all other plugins, and only one of
//!   them at a time makes a first call. The next end finds one of them alone, unless code of other plugins runs for
//!   the first time just then. Three ends quarantine a suspect in any case.
//!
//! A plugin that ends every process is therefore quarantined after at most three ends, mostly after one or two. A
//! suspect is cleared when the activity that made it one returns.
//!
//! A kill of the process at that moment has the same effect as a crash, because the file cannot tell them apart. An
//! orderly end removes the lines of running code.
//!
//! A thread writes the lines. They are not synced to the disk, because a file survives the end of a process without
//! that. Code waits for its line for a bounded time only.

mod first_calls;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bulkhead_core::manifest::Digest;

pub(crate) use self::first_calls::FirstCalls;
use self::record::{Activity, Survives, Suspects, Text};
use crate::PluginSource;
/// File with the plugins whose code is running for the first time, and the suspects.
const RUNNING: &str = "plugins-running";
/// File with the plugins that are not loaded.
const QUARANTINED: &str = "plugins-quarantined";
/// File whose lock belongs to the process that uses the directory.
const LOCK: &str = "plugins-lock";

/// Longest time that a first call waits for its mark.
const CALL_WAIT: Duration = Duration::from_millis(20);
/// Longest time that a load waits for its mark.
const LOAD_WAIT: Duration = Duration::from_secs(5);
/// Longest time that an orderly end waits for the last change of the file.
const END_WAIT: Duration = Duration::from_secs(2);

/// Record of the plugins whose code is running for the first time, kept by one process.
///
/// Dropping it is the orderly end of the process: code that is still running then leaves no mark.
#[derive(Debug)]
pub struct CrashMarker {
    marks: Arc<CrashMarks>,
    notices: Vec<String>,
}

impl CrashMarker {
    /// Opens the record in an existing directory, and draws the conclusions from the marks of an earlier process.
    ///
    /// # Errors
    ///
    /// Another process uses the directory, or a file cannot be read or written.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Self::open_with(directory, CALL_WAIT)
    }

    fn open_with(directory: &Path, call_wait: Duration) -> io::Result<Self> {
        let lock = lock(directory)?;
        let (running_file, quarantine_file) = (directory.join(RUNNING), directory.join(QUARANTINED));
        let (running, quarantine) = (Text::read(&running_file)?, Text::read(&quarantine_file)?);
        let (ran, mut suspects) = running.running();
        let mut quarantined = quarantine.quarantined();
        let problems = [
            running.problem(&running_file, ran.len() + suspects.len()),
            quarantine.problem(&quarantine_file, quarantined.len()),
        ];
        let mut notices: Vec<_> = problems.into_iter().flatten().collect();
        if !ran.is_empty() {
            let names: Vec<_> = ran.iter().map(|one| format!("{} ({})", one.plugin, one.name)).collect();
            let guilty = record::judge(ran, &mut suspects);
            notices.extend(guilty.iter().map(|one| quarantine_notice(one, &quarantine_file)));
            if guilty.is_empty() {
                let names = names.join(", ");
                notices.push(format!(
                    "a process ended while plugins ran: {names}; they are loaded one at a time now"
                ));
            } else {
                record::replace(&quarantine_file, &quarantine.with(&guilty), Survives::Machine)?;
                quarantined.extend(guilty);
            }
            // The marks are the last to go: an end before this point leads to the same conclusions again.
            let lines = record::running_lines(std::iter::empty(), &suspects);
            record::replace(&running_file, &lines, Survives::Machine)?;
        }
        let state = State {
            lock: Some(lock),
            suspects,
            quarantined,
            ..State::default()
        };
        let marks = Arc::new(CrashMarks {
            directory: directory.to_path_buf(),
            call_wait,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stored: Condvar::new(),
        });
        let writer = Arc::clone(&marks);
        thread::Builder::new()
            .name("plugin-marks".to_owned())
            .spawn(move || writer.write_changes())?;
        Ok(Self { marks, notices })
    }

    /// Returns the record for the loader of plugins.
    pub fn marks(&self) -> Arc<CrashMarks> {
        Arc::clone(&self.marks)
    }

    /// Returns the conclusions of the start, and problems of the files, as lines for the log.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

impl Drop for CrashMarker {
    fn drop(&mut self) {
        let mut state = self.marks.lock();
        state.has_ended = true;
        state.running.clear();
        let change = self.marks.change(&mut state);
        // At worst a plugin becomes a suspect that did no harm.
        let mut state = self.marks.wait(state, change, END_WAIT);
        if state.stored == change {
            // Plugins keep the record until the process is gone. The next process need not wait for that.
            state.lock = None;
        }
    }
}

/// Locks the directory for this process, until the file is dropped.
fn lock(directory: &Path) -> io::Result<File> {
    let path = directory.join(LOCK);
    let file = record::open(OpenOptions::new().create(true).write(true).truncate(false), &path);
    let file = file.map_err(|error| record::about(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{}: another process uses the directory", path.display());
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
        Err(TryLockError::Error(error)) => Err(record::about(&path, &error)),
    }
}

fn quarantine_notice(activity: &Activity, file: &Path) -> String {
    let Activity { digest, name, plugin } = activity;
    let file = file.display();
    format!(
        "plugin {plugin} is quarantined: a process ended during {name} of its code, sha256 {digest}; to load this \
         code again, delete its line in {file}"
    )
}

/// Shared part of a [`CrashMarker`].
#[derive(Debug)]
pub struct CrashMarks {
    directory: PathBuf,
    /// Longest time that a first call waits for its mark.
    call_wait: Duration,
    state: Mutex<State>,
    /// Notified when there is a change to write.
    changed: Condvar,
    /// Notified when changes have been written.
    stored: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Lock of the directory.
    lock: Option<File>,
    /// Running code by the number of its mark.
    running: BTreeMap<u64, Activity>,
    suspects: Suspects,
    /// Quarantined code, as last read.
    quarantined: Vec<Activity>,
    /// Number of the last mark.
    last: u64,
    /// Mark of the suspect that makes a first call.
    calling_suspect: Option<u64>,
    /// Number of changes of the running code and of the suspects.
    changes: u64,
    /// Number of changes that were written, or could not be.
    stored: u64,
    /// Reasons why files could not be read or written the last time.
    problems: BTreeMap<&'static str, String>,
    /// True after the orderly end of the process.
    has_ended: bool,
}

impl State {
    fn record(&mut self, file: &'static str, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => self.problems.remove(file),
            Err(error) => self.problems.insert(file, error.to_string()),
        };
    }
}

impl CrashMarks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reasons why marks are not recorded or the quarantine cannot be read at present, as lines for the
    /// log.
    pub fn problems(&self) -> Vec<String> {
        let line = |problem: &String| format!("the record of plugins that end the process is incomplete: {problem}");
        self.lock().problems.values().map(line).collect()
    }

    /// Returns the reason why a plugin must not be loaded, if it is in quarantine. A file that cannot be read leaves
    /// the quarantine as it is.
    pub(crate) fn quarantine(&self, source: &PluginSource) -> Option<String> {
        let (digest, file) = (source.digest().to_string(), self.directory.join(QUARANTINED));
        let read = Text::read(&file);
        let mut state = self.lock();
        let outcome = read.map(|text| state.quarantined = text.quarantined());
        state.record(QUARANTINED, outcome);
        let found = state.quarantined.iter().find(|activity| activity.digest == digest)?;
        let (name, file) = (&found.name, file.display());
        Some(format!(
            "an earlier process ended during {name} of this code, sha256 {digest}; another version loads at once, and \
             this one within minutes after its line in {file} is deleted"
        ))
    }

    /// Returns true if the code of a plugin ran when an earlier process ended, among other code.
    pub(crate) fn is_suspect(&self, source: &PluginSource) -> bool {
        if self.lock().suspects.is_empty() {
            return false;
        }
        let digest = source.digest().to_string();
        self.lock().suspects.contains_key(&digest)
    }

    /// Marks that a plugin is loaded, until the result is dropped.
    pub(crate) fn begin_load(self: &Arc<Self>, source: &PluginSource) -> Mark {
        let activity = Activity::load(source);
        self.begin(self.lock(), activity, LOAD_WAIT)
    }

    /// Marks the first call of a function, until the result is dropped. Returns `None` if the plugin is a suspect and
    /// another one is in such a call.
    pub(crate) fn begin_call(self: &Arc<Self>, digest: Digest, function: &str, plugin: &str) -> Option<Mark> {
        let activity = Activity::new(digest.to_string(), function, plugin);
        let mut state = self.lock();
        if state.suspects.contains_key(&activity.digest) {
            if state.calling_suspect.is_some() {
                return None;
            }
            state.calling_suspect = Some(state.last + 1);
        }
        Some(self.begin(state, activity, self.call_wait))
    }

    fn begin<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>, activity: Activity, wait: Duration) -> Mark {
        state.last += 1;
        let mark = Mark {
            marks: Arc::clone(self),
            number: state.last,
        };
        if !state.has_ended {
            state.running.insert(mark.number, activity);
            let change = self.change(&mut state);
            // Code without a mark is better than a fault: the disk may be slow or full.
            drop(self.wait(state, change, wait));
        }
        mark
    }

    /// Records a change, which a thread writes. Returns its number.
    fn change(&self, state: &mut State) -> u64 {
        state.changes += 1;
        self.changed.notify_one();
        state.changes
    }

    /// Waits until a change was written or could not be, at most for `limit`.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>, change: u64, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self
            .stored
            .wait_timeout_while(state, limit, |state| state.stored < change);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes changes until the orderly end of the process.
    fn write_changes(&self) {
        let path = self.directory.join(RUNNING);
        let mut state = self.lock();
        loop {
            let waited = self.changed.wait_while(state, |state| state.stored == state.changes);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            let (change, has_ended) = (state.changes, state.has_ended);
            let lines = record::running_lines(state.running.values(), &state.suspects);
            drop(state);
            let outcome = record::replace(&path, &lines, Survives::Process);
            state = self.lock();
            state.record(RUNNING, outcome);
            state.stored = change;
            self.stored.notify_all();
            if has_ended {
                return;
            }
        }
    }
}

/// Mark of code that is running.
#[derive(Debug)]
pub(crate) struct Mark {
    marks: Arc<CrashMarks>,
    number: u64,
}

impl Mark {
    /// Ends the mark of code that ran without ending the process, which clears a suspect of this activity.
    pub(crate) fn survived(self) {
        let mut state = self.marks.lock();
        let Some(activity) = state.running.get(&self.number) else {
            return;
        };
        let (digest, name) = (activity.digest.clone(), activity.name.clone());
        if state
            .suspects
            .get(&digest)
            .is_some_and(|suspect| suspect.activity.name == name)
        {
            state.suspects.remove(&digest);
        }
        // Dropping the mark writes both.
        drop(state);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.marks.lock();
        if state.calling_suspect == Some(self.number) {
            state.calling_suspect = None;
        }
        if state.running.remove(&self.number).is_some() {
            self.marks.change(&mut state);
        }
    }
}
