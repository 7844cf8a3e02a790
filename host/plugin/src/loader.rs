//! Loading of plugins on dedicated threads, with a time limit.
//!
//! A compilation cannot be interrupted. One that exceeds the limit keeps running, but its result is discarded. While
//! too many of those are running, no new one starts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};

use crate::crash::{CrashMarks, FirstCalls};
use crate::{FoundPlugin, LoadError, LoadStage, Loaded, PluginSource, Registry};

/// Calls a plugin with test inputs before it is activated. Returns a description of invalid answers.
pub type SmokeTest = Box<dyn Fn(&dyn Policy) -> Result<(), String> + Send + Sync>;

/// Limits of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Time limit for compiling one plugin, describing it and answering its first test calls.
    pub load_time: Duration,
    /// Time that the start waits for all plugins. A plugin that is not loaded by then counts as failed.
    pub start_wait: Duration,
    /// Number of plugins that are loaded concurrently.
    pub loads: usize,
    /// Number of loads over the time limit that may still be running when another one starts.
    pub overdue: usize,
    /// Pause before a load that exceeded its time limit is retried; doubles with each retry.
    pub retry_base: Duration,
    /// Maximum pause.
    pub retry_max: Duration,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            load_time: Duration::from_mins(1),
            start_wait: Duration::from_mins(2),
            loads: 2,
            overdue: 1,
            retry_base: Duration::from_secs(2),
            retry_max: Duration::from_mins(5),
        }
    }
}

/// Options of loading.
#[derive(Default)]
pub struct Loading {
    /// Test of a loaded plugin before it is activated.
    pub smoke_test: Option<SmokeTest>,
    /// Limits of time and of concurrent loads.
    pub limits: LoadLimits,
    /// Record of the plugins that ended a process.
    pub crash_marks: Option<Arc<CrashMarks>>,
}

/// A version to be loaded.
pub(crate) struct Attempt {
    /// Number of the attempt, used to assign its result to its entry.
    pub(crate) id: u64,
    pub(crate) found: FoundPlugin,
}

/// Result of a load.
pub(crate) enum Outcome {
    Loaded(Loaded),
    Refused {
        error: LoadError,
        /// True if the load ran out of time, so that a retry may succeed.
        is_transient: bool,
        /// Calls that the plugin answers, if known.
        capabilities: Option<Vec<Capability>>,
    },
}

/// Receiver of results.
pub(crate) trait Report: Send + Sync {
    fn report(&self, attempt: &Attempt, outcome: Outcome);
    /// Called when a loading thread has no more work.
    fn idle(&self);
}

/// Loads plugins on a limited number of threads.
pub(crate) struct Loader {
    registry: Arc<Registry>,
    options: Loading,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Attempt>,
    running: usize,
    overdue: usize,
    /// True while a plugin is loaded that may have ended an earlier process. No other load starts meanwhile.
    is_exclusive: bool,
}

impl Loader {
    pub(crate) fn new(registry: Arc<Registry>, options: Loading) -> Arc<Self> {
        Arc::new(Self {
            registry,
            options,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true while a load is running or can start.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.running > 0 || (!state.waiting.is_empty() && state.overdue <= self.options.limits.overdue)
    }

    /// Loads in the background. Every attempt is reported once, unless `to` was dropped before.
    pub(crate) fn load(self: &Arc<Self>, attempts: impl IntoIterator<Item = Attempt>, to: &Weak<dyn Report>) {
        self.lock().waiting.extend(attempts);
        self.start(to);
    }

    /// Starts supervisors for waiting attempts, up to the limit.
    fn start(self: &Arc<Self>, to: &Weak<dyn Report>) {
        let mut state = self.lock();
        // Running supervisors may be busy with a slow load. A superfluous one ends immediately.
        for _ in 0..state.waiting.len() {
            let is_full = state.running >= self.options.limits.loads || state.is_exclusive;
            if is_full || state.overdue > self.options.limits.overdue {
                return;
            }
            let (loader, to) = (Arc::clone(self), Weak::clone(to));
            let supervise = thread::Builder::new().name("plugin-loads".to_owned());
            if supervise.spawn(move || loader.supervise(&to)).is_err() {
                // The thread could not be started; the next refresh retries.
                return;
            }
            state.running += 1;
        }
    }

    fn supervise(self: &Arc<Self>, to: &Weak<dyn Report>) {
        while let Some(attempt) = self.next_attempt() {
            let outcome = self.load_in_time(&attempt, to);
            let was_exclusive = std::mem::take(&mut self.lock().is_exclusive);
            if let Some(to) = to.upgrade() {
                to.report(&attempt, outcome);
            }
            if was_exclusive {
                self.start(to);
            }
        }
        // The last report may have been made while this thread still counted as running.
        if let Some(to) = to.upgrade() {
            to.idle();
        }
    }

    /// Returns the next attempt of a supervisor; `None` ends the supervisor.
    fn next_attempt(&self) -> Option<Attempt> {
        let mut state = self.lock();
        let is_blocked = state.overdue > self.options.limits.overdue || state.is_exclusive;
        let next = if is_blocked { None } else { self.take(&mut state) };
        if next.is_none() {
            state.running -= 1;
        }
        next
    }

    /// Takes the first attempt that may start. Suspects come last and are loaded while no other load runs: if the
    /// process ends then, it is clear which plugin ended it.
    fn take(&self, state: &mut State) -> Option<Attempt> {
        let marks = self.options.crash_marks.as_deref();
        let is_suspect = |attempt: &Attempt| marks.is_some_and(|marks| marks.is_suspect(&attempt.found.source));
        if let Some(first) = state.waiting.iter().position(|attempt| !is_suspect(attempt)) {
            return state.waiting.remove(first);
        }
        // The supervisor of the last load that still runs continues with the suspects.
        let next = if state.running > 1 {
            None
        } else {
            state.waiting.pop_front()
        };
        state.is_exclusive = next.is_some();
        next
    }

    fn load_in_time(self: &Arc<Self>, attempt: &Attempt, to: &Weak<dyn Report>) -> Outcome {
        let (sender, outcome) = mpsc::channel();
        let (loader, found, next) = (Arc::clone(self), attempt.found.clone(), Weak::clone(to));
        let load_state = Arc::new(Mutex::new(LoadState::Running));
        let of_worker = Arc::clone(&load_state);
        let work = move || {
            let _ended = Ended {
                loader: Arc::clone(&loader),
                load_state: of_worker,
                to: next,
            };
            let _ = sender.send(loader.load_marked(&found));
        };
        let source = &attempt.found.source;
        let refused = |is_transient, message: String| Outcome::Refused {
            error: LoadError::new(source, LoadStage::Compiled, message),
            is_transient,
            capabilities: None,
        };
        // Compilers use deep recursion.
        let thread = thread::Builder::new()
            .name("plugin-load".to_owned())
            .stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(work) {
            return refused(true, format!("cannot start a thread to load it: {error}"));
        }
        match outcome.recv_timeout(self.options.limits.load_time) {
            Ok(outcome) => outcome,
            Err(mpsc::RecvTimeoutError::Disconnected) => refused(false, "the loader panicked".to_owned()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let mut load_state = load_state.lock().unwrap_or_else(PoisonError::into_inner);
                if let (LoadState::Ended, Ok(outcome)) = (&*load_state, outcome.try_recv()) {
                    return outcome;
                }
                *load_state = LoadState::Overdue;
                self.lock().overdue += 1;
                refused(
                    true,
                    format!(
                        "loading it took longer than {} s",
                        self.options.limits.load_time.as_secs_f64()
                    ),
                )
            }
        }
    }

    /// Loads a plugin unless it is in quarantine, with a mark for as long as its code runs.
    fn load_marked(&self, found: &FoundPlugin) -> Outcome {
        let Some(marks) = &self.options.crash_marks else {
            return self.load_now(found);
        };
        let (source, digest) = (&found.source, found.source.digest());
        if let Some(why) = marks.quarantine(source) {
            // A line that an operator has deleted is found by the next attempt.
            return Outcome::Refused {
                error: LoadError::new(source, LoadStage::Quarantined, why),
                is_transient: true,
                capabilities: None,
            };
        }
        let mark = marks.begin_load(source);
        let outcome = self.load_now(found);
        mark.survived();
        match outcome {
            Outcome::Loaded(Loaded { policy, description }) => {
                let policy = Arc::new(FirstCalls::new(policy, digest, Arc::clone(marks)));
                Outcome::Loaded(Loaded { policy, description })
            }
            refused @ Outcome::Refused { .. } => refused,
        }
    }

    fn load_now(&self, found: &FoundPlugin) -> Outcome {
        let refused = |error: LoadError, is_transient, capabilities| Outcome::Refused {
            error,
            is_transient,
            capabilities,
        };
        if let Some(message) = found.grant.refused_budget(&found.source.budget) {
            let error = LoadError::new(&found.source, LoadStage::Verified, message);
            return refused(error, false, None);
        }
        let loaded = match self.registry.load(&found.source) {
            Ok(loaded) => loaded,
            // The guest has a wall-clock limit, which it may exceed on a busy machine.
            Err(error) => {
                let has_run = matches!(error.stage, LoadStage::Described | LoadStage::Configured);
                return refused(error, has_run, None);
            }
        };
        if let Some((message, permitted)) = found.grant.refused_calls(loaded.policy.capabilities()) {
            let error = LoadError::new(&found.source, LoadStage::Verified, message);
            return refused(error, false, Some(permitted));
        }
        let Some(test) = &self.options.smoke_test else {
            return Outcome::Loaded(loaded);
        };
        let watched = Watched {
            inner: Arc::clone(&loaded.policy),
            ran_out_of_time: AtomicBool::new(false),
        };
        match test(&watched) {
            Ok(()) => Outcome::Loaded(loaded),
            Err(message) => {
                let capabilities = loaded.policy.capabilities().to_vec();
                let is_transient = watched.ran_out_of_time.load(Ordering::Relaxed);
                refused(smoke_error(&found.source, message), is_transient, Some(capabilities))
            }
        }
    }
}

fn smoke_error(source: &PluginSource, message: String) -> LoadError {
    LoadError::new(source, LoadStage::SmokeTested, message)
}

/// Stack size of a loading thread in bytes. It is virtual memory; only used pages count.
const STACK_BYTES: usize = 16 << 20;

/// State of the thread of a load.
enum LoadState {
    Running,
    Ended,
    /// The load was given up; its thread still runs.
    Overdue,
}

/// Records the end of a load, including a panic.
struct Ended {
    loader: Arc<Loader>,
    load_state: Arc<Mutex<LoadState>>,
    to: Weak<dyn Report>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let load_state = std::mem::replace(
            &mut *self.load_state.lock().unwrap_or_else(PoisonError::into_inner),
            LoadState::Ended,
        );
        if matches!(load_state, LoadState::Overdue) {
            self.loader.lock().overdue -= 1;
            self.loader.start(&self.to);
        }
    }
}

/// Policy that records faults caused by time limits.
struct Watched {
    inner: Arc<dyn Policy>,
    ran_out_of_time: AtomicBool,
}

impl Policy for Watched {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let answer = self.inner.call(call);
        if answer
            .as_ref()
            .is_err_and(|fault| matches!(fault.kind, FaultKind::Deadline | FaultKind::HostBusy))
        {
            self.ran_out_of_time.store(true, Ordering::Relaxed);
        }
        answer
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.inner.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}
