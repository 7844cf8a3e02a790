//! From a catalog to plugins in force: load what changed, keep what works.
//!
//! [`Plugins::look`] reads the catalog and hands what changed to the loader; each result is put in
//! force when it arrives, so that a plugin that takes long to load delays no other.

mod entry;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use bulkhead_core::composition::Composition;
use bulkhead_core::policy::Policy;

use self::entry::{Active, Entry, Load};
use crate::catalog::{Catalog, Fingerprint, Listed};
use crate::loader::{Attempt, Loader, Outcome, Report};
use crate::status::{PluginStatus, Refused};
use crate::{FoundPlugin, LoadError, LoadLimits, LoadStage, Loaded, Registry};

/// Asks a plugin first questions before it is put in force, and says what is wrong with its answers.
pub type SmokeTest = Box<dyn Fn(&dyn Policy) -> Result<(), String> + Send + Sync>;

/// The plugins of a catalog, kept in force in a registry.
///
/// A plugin that does not load leaves the version before it in force; the status says why, and the others are not
/// touched. Without a version before it, its calls are faults until it loads (`not_loaded.rs`).
pub struct Plugins {
    shared: Arc<Shared>,
    report: Weak<dyn Report>,
}

struct Shared {
    registry: Arc<Registry>,
    catalog: Box<dyn Catalog>,
    loader: Arc<Loader>,
    limits: LoadLimits,
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Default)]
struct State {
    seen: Option<Fingerprint>,
    composition: Composition,
    /// What is listed, in order.
    entries: Vec<Entry>,
    /// Why the list could not be read.
    list_error: Option<String>,
    attempts: u64,
    /// True if something changed that no look has returned yet.
    has_news: bool,
}

/// What a refresh found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The catalog is as it was.
    Unchanged,
    /// The catalog changed; the status tells what became of each plugin.
    Changed,
}

impl Plugins {
    /// Plugins of a catalog, none of them loaded yet.
    pub fn new(registry: Arc<Registry>, catalog: Box<dyn Catalog>, smoke_test: Option<SmokeTest>) -> Self {
        Self::with_limits(registry, catalog, smoke_test, LoadLimits::default())
    }

    /// Plugins that are loaded within other limits.
    pub fn with_limits(
        registry: Arc<Registry>,
        catalog: Box<dyn Catalog>,
        smoke_test: Option<SmokeTest>,
        limits: LoadLimits,
    ) -> Self {
        let loader = Loader::new(Arc::clone(&registry), smoke_test, limits);
        let (state, settled) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { registry, catalog, loader, limits, state, settled });
        let report: Arc<dyn Report> = Arc::clone(&shared) as Arc<dyn Report>;
        Self { shared, report: Arc::downgrade(&report) }
    }

    /// The registry that they are in force in.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// Looks for changes of the catalog and begins to load them. Returns at once; readers of the registry see the
    /// change when it is loaded. A load that ran out of time begins again when its pause is over.
    pub fn look(&self) -> Refresh {
        let shared = &self.shared;
        let mut state = shared.lock();
        // Before reading: what changes while it is read is found the next time.
        let fingerprint = shared.catalog.fingerprint();
        let mut attempts = Vec::new();
        if state.seen.as_ref() != Some(&fingerprint) {
            state.seen = Some(fingerprint);
            state.has_news = true;
            match shared.catalog.read() {
                Err(error) => state.list_error = Some(error.to_string()),
                Ok(listing) => {
                    state.list_error = listing.stale.map(|error| error.to_string());
                    state.composition = listing.composition;
                    attempts = state.take(listing.plugins, &shared.registry);
                    shared.install(&state);
                }
            }
        }
        attempts.extend(state.due_again());
        let has_news = std::mem::take(&mut state.has_news);
        drop(state);
        shared.loader.load(attempts, &self.report);
        if has_news { Refresh::Changed } else { Refresh::Unchanged }
    }

    /// Looks for changes of the catalog, and waits until they are loaded or refused. What takes longer than a start
    /// waits counts as not loaded until it is.
    pub fn refresh(&self) -> Refresh {
        let looked = self.look();
        let shared = &self.shared;
        let is_busy = |state: &mut State| state.entries.iter().any(Entry::is_loading) && shared.loader.is_busy();
        let waited = shared.settled.wait_timeout_while(shared.lock(), shared.limits.start_wait, is_busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let late = state.entries.iter_mut().filter(|entry| entry.is_loading() && entry.stand_in.is_none());
        let late: Vec<_> =
            late.map(|entry| entry.stand_in(&shared.registry, "it is still being loaded", None)).collect();
        if late.contains(&true) {
            shared.install(&state);
        }
        if std::mem::take(&mut state.has_news) { Refresh::Changed } else { looked }
    }

    /// Why the list could not be read the last time; what was in force before stays so.
    pub fn list_error(&self) -> Option<String> {
        self.shared.lock().list_error.clone()
    }

    /// What became of every plugin on the list, in order.
    pub fn status(&self) -> Vec<PluginStatus> {
        self.shared.lock().entries.iter().map(Entry::status).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readers of the registry see the old set or the new one.
    fn install(&self, state: &State) {
        let installed: Vec<_> = state.entries.iter().filter_map(Entry::installed).cloned().collect();
        self.registry.install(&installed, state.composition);
    }
}

impl Report for Shared {
    fn report(&self, attempt: &Attempt, outcome: Outcome) {
        let mut state = self.lock();
        // The catalog may have changed meanwhile.
        let Some(entry) = state.entries.iter_mut().find(|entry| entry.load == Load::Attempted(attempt.id)) else {
            return;
        };
        let outcome = match outcome {
            Outcome::Refused { .. } => outcome,
            Outcome::Loaded(loaded) => entry.put_in_force(&self.registry, &attempt.found, loaded),
        };
        if let Outcome::Refused { error, is_transient, capabilities } = outcome {
            entry.refuse(&self.registry, Refused::from(error), capabilities);
            entry.load = if is_transient { entry.pause(&self.limits, Instant::now()) } else { Load::Ended };
        }
        state.has_news = true;
        self.install(&state);
        drop(state);
        self.settled.notify_all();
    }

    fn idle(&self) {
        // With the lock, so that it does not come between the look of a waiter and its sleep.
        drop(self.lock());
        self.settled.notify_all();
    }
}

impl State {
    /// Takes over a listing. Returns what is to be loaded.
    fn take(&mut self, listed: Vec<Listed>, registry: &Registry) -> Vec<Attempt> {
        let entries = std::mem::take(&mut self.entries);
        let mut before: BTreeMap<_, _> = entries.into_iter().rev().map(|entry| (entry.name.clone(), entry)).collect();
        let mut attempts = Vec::new();
        for Listed { name, generation, manifest, found } in listed {
            if let Some(first) = self.entries.iter().find(|entry| entry.name == name) {
                let refused = Refused::second(first.generation.is_some(), found);
                self.entries.push(Entry::second(name, generation, refused));
                continue;
            }
            let mut entry = before.remove(&name).unwrap_or_else(|| Entry::new(name));
            (entry.generation, entry.manifest) = (generation, manifest);
            match found {
                Err(error) => {
                    (entry.found, entry.load) = (None, Load::Ended);
                    entry.refuse(registry, Refused::from(error), None);
                }
                Ok(found) if entry.is_in_force(&found) => entry.settle(),
                // It is being loaded, or was refused as it is.
                Ok(found) if entry.found.as_ref() == Some(&found) => {}
                Ok(found) => {
                    entry.found = Some(found);
                    entry.failures = 0;
                    self.attempts += 1;
                    attempts.extend(entry.attempt(self.attempts));
                }
            }
            self.entries.push(entry);
        }
        attempts
    }

    /// Attempts whose pause is over.
    fn due_again(&mut self) -> Vec<Attempt> {
        let Self { entries, attempts, .. } = self;
        let now = Instant::now();
        let due = entries.iter_mut().filter(|entry| matches!(entry.load, Load::Pausing(until) if until <= now));
        let again = due.filter_map(|entry| {
            *attempts += 1;
            entry.attempt(*attempts)
        });
        again.collect()
    }
}

impl Entry {
    /// Puts a loaded version in force.
    fn put_in_force(&mut self, registry: &Registry, found: &FoundPlugin, loaded: Loaded) -> Outcome {
        let previous = self.active.as_ref().map(|active| &active.installed);
        match registry.prepare(&loaded, &found.manifest.terms(), previous) {
            Err(message) => Outcome::Refused {
                error: LoadError::new(&found.source, LoadStage::Active, message),
                is_transient: false,
                capabilities: Some(loaded.policy.capabilities().to_vec()),
            },
            Ok(installed) => {
                let description = loaded.description.clone();
                self.active = Some(Active { found: found.clone(), description, installed });
                self.settle();
                Outcome::Loaded(loaded)
            }
        }
    }
}
