//! Activation of a catalog's plugins: loads changed plugins and keeps working ones.
//!
//! [`Plugins::look`] reads the catalog and passes changed plugins to the loader. Each result is activated when it
//! arrives, so a plugin that loads slowly does not delay others.

mod entry;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bulkhead_core::composition::Composition;
use bulkhead_core::manifest::Fallback;

use self::entry::{Active, Entry, Load};
use crate::catalog::{Catalog, CatalogEntry, Fingerprint};
use crate::loader::{Attempt, Loader, Outcome, Report};
use crate::status::{PluginStatus, Refused};
use crate::{FoundPlugin, LoadError, LoadLimits, LoadStage, Loaded, Loading, Registry};

/// Interval at which a start checks for code that is on its way.
const PENDING_INTERVAL: Duration = Duration::from_millis(20);

/// Plugins of a catalog, kept active in a registry.
///
/// If a plugin does not load, its previous version stays active; the status has the reason, and other plugins are
/// unaffected. Without a previous version, its calls are faults until it loads (`not_loaded.rs`).
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
    /// Listed plugins in order.
    entries: Vec<Entry>,
    /// Reason why the list could not be read.
    list_error: Option<String>,
    attempts: u64,
    /// True if there is a change that no refresh has reported yet.
    has_news: bool,
}

/// Result of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The catalog has not changed.
    Unchanged,
    /// The catalog changed; the status has the result for each plugin.
    Changed,
}

impl Plugins {
    /// Creates the plugins of a catalog. None of them is loaded yet.
    pub fn new(registry: Arc<Registry>, catalog: Box<dyn Catalog>, options: Loading) -> Self {
        let limits = options.limits;
        let loader = Loader::new(Arc::clone(&registry), options);
        let (state, settled) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared {
            registry,
            catalog,
            loader,
            limits,
            state,
            settled,
        });
        let report: Arc<dyn Report> = Arc::clone(&shared) as Arc<dyn Report>;
        Self {
            shared,
            report: Arc::downgrade(&report),
        }
    }

    /// Returns the registry in which they are active.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// Checks the catalog for changes and starts to load them. Returns immediately; readers of the registry see a
    /// change when it is loaded. A load that ran out of time is retried when its pause is over.
    pub fn look(&self) -> Refresh {
        let shared = &self.shared;
        let mut state = shared.lock();
        // The fingerprint is taken before reading: a change during the read is found the next time.
        let fingerprint = shared.catalog.fingerprint();
        let mut attempts = Vec::new();
        if state.seen.as_ref() != Some(&fingerprint) {
            state.seen = Some(fingerprint);
            state.has_news = true;
            let listing = shared.catalog.read();
            let is_read = listing.is_ok();
            match listing {
                Err(error) => state.list_error = Some(error.to_string()),
                Ok(listing) => {
                    state.list_error = listing.stale.map(|error| error.to_string());
                    state.composition = listing.composition;
                    attempts = state.take(listing.plugins, &shared.registry);
                }
            }
            // A withdrawal counts even if the list cannot be read.
            let verify = |entry: &mut Entry| entry.verify_again(&shared.registry, shared.catalog.as_ref());
            let changed = state
                .entries
                .iter_mut()
                .map(verify)
                .filter(|is_other| *is_other)
                .count();
            if is_read || changed > 0 {
                shared.install(&state);
            }
        }
        attempts.extend(state.due_again());
        let has_news = std::mem::take(&mut state.has_news);
        drop(state);
        shared.loader.load(attempts, &self.report);
        if has_news { Refresh::Changed } else { Refresh::Unchanged }
    }

    /// Checks the catalog for changes and waits until they are loaded or rejected. A plugin that is not loaded within
    /// the start limit counts as not loaded until it is.
    pub fn refresh(&self) -> Refresh {
        let looked = self.look_for_code();
        let shared = &self.shared;
        let is_busy = |state: &mut State| state.entries.iter().any(Entry::is_loading) && shared.loader.is_busy();
        let waited = shared
            .settled
            .wait_timeout_while(shared.lock(), shared.limits.start_wait, is_busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let late = state
            .entries
            .iter_mut()
            .filter(|entry| entry.is_loading() && entry.placeholder.is_none());
        let late: Vec<_> = late
            .map(|entry| entry.install_placeholder(&shared.registry, "it is still being loaded", None))
            .collect();
        if late.contains(&true) {
            shared.install(&state);
        }
        if std::mem::take(&mut state.has_news) {
            Refresh::Changed
        } else {
            looked
        }
    }

    /// Checks the catalog for changes, and again once the code of every plugin has arrived or failed to, within the
    /// start limit.
    fn look_for_code(&self) -> Refresh {
        let (shared, looked) = (&self.shared, self.look());
        if !shared.catalog.is_pending() {
            return looked;
        }
        let start = Instant::now();
        while shared.catalog.is_pending() && start.elapsed() < shared.limits.start_wait {
            let waited = shared.settled.wait_timeout(shared.lock(), PENDING_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        match self.look() {
            Refresh::Changed => Refresh::Changed,
            Refresh::Unchanged => looked,
        }
    }

    /// Returns the reason why the list could not be read the last time. The active plugins stay active in this case.
    pub fn list_error(&self) -> Option<String> {
        self.shared.lock().list_error.clone()
    }

    /// Returns the status of every listed plugin, in order.
    pub fn status(&self) -> Vec<PluginStatus> {
        self.shared.lock().entries.iter().map(Entry::status).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates the current set. Readers of the registry see either the old set or the new one.
    fn install(&self, state: &State) {
        let installed: Vec<_> = state.entries.iter().filter_map(Entry::installed).cloned().collect();
        self.registry.install(&installed, state.composition);
    }
}

impl Report for Shared {
    fn report(&self, attempt: &Attempt, outcome: Outcome) {
        let mut state = self.lock();
        // The catalog may have changed in the meantime.
        let Some(entry) = state
            .entries
            .iter_mut()
            .find(|entry| entry.load == Load::Attempted(attempt.id))
        else {
            return;
        };
        let outcome = match outcome {
            Outcome::Refused { .. } => outcome,
            Outcome::Loaded(loaded) => entry.put_in_force(&self.registry, &attempt.found, loaded),
        };
        if let Outcome::Refused {
            error,
            is_transient,
            capabilities,
        } = outcome
        {
            entry.refuse(&self.registry, Refused::from(error), capabilities);
            entry.load = if is_transient {
                entry.pause(&self.limits, Instant::now())
            } else {
                Load::Ended
            };
        }
        state.has_news = true;
        self.install(&state);
        drop(state);
        self.settled.notify_all();
    }

    fn idle(&self) {
        // The lock ensures that a waiter does not miss the notification between its check and its wait.
        drop(self.lock());
        self.settled.notify_all();
    }
}

impl State {
    /// Applies a listing. Returns the versions to be loaded.
    fn take(&mut self, listed: Vec<CatalogEntry>, registry: &Registry) -> Vec<Attempt> {
        let entries = std::mem::take(&mut self.entries);
        let mut before: BTreeMap<_, _> = entries
            .into_iter()
            .rev()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        let mut attempts = Vec::new();
        for CatalogEntry {
            name,
            generation,
            manifest,
            image,
            grant,
            found,
            newer,
        } in listed
        {
            if let Some(first) = self.entries.iter().find(|entry| entry.name == name) {
                let refused = Refused::second(first.generation.is_some(), found);
                self.entries.push(Entry::second(name, generation, refused));
                continue;
            }
            let mut entry = before.remove(&name).unwrap_or_else(|| Entry::new(name));
            (entry.generation, entry.manifest, entry.image) = (generation, manifest, image);
            entry.grant = grant;
            entry.newer = newer.map(Refused::from);
            match found {
                Err(error) => {
                    (entry.found, entry.load) = (None, Load::Ended);
                    entry.refuse(registry, Refused::from(error), None);
                }
                Ok(found) if entry.is_in_force(&found) => entry.settle(),
                // This version is being loaded or was already rejected.
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

    /// Returns the attempts whose pause is over.
    fn due_again(&mut self) -> Vec<Attempt> {
        let Self { entries, attempts, .. } = self;
        let now = Instant::now();
        let due = entries
            .iter_mut()
            .filter(|entry| matches!(entry.load, Load::Pausing(until) if until <= now));
        let again = due.filter_map(|entry| {
            *attempts += 1;
            entry.attempt(*attempts)
        });
        again.collect()
    }
}

impl Entry {
    /// Activates a loaded version.
    fn put_in_force(&mut self, registry: &Registry, found: &FoundPlugin, loaded: Loaded) -> Outcome {
        let terms = found.manifest.terms();
        let before = self.active.as_ref();
        let previous = before
            .filter(|_| terms.fallback == Fallback::Previous)
            .and_then(|before| {
                let source = &before.found.source;
                Some((source.image.clone()?, source.digest()))
            });
        match registry.prepare(&loaded, &terms, before.map(|before| &before.installed)) {
            Err(message) => Outcome::Refused {
                error: LoadError::new(&found.source, LoadStage::Active, message),
                is_transient: false,
                capabilities: Some(loaded.policy.capabilities().to_vec()),
            },
            Ok(mut installed) => {
                installed.limit_to(found.grant.tenancy.as_ref());
                let description = loaded.description.clone();
                self.active = Some(Active {
                    found: found.clone(),
                    description,
                    installed,
                    previous,
                });
                self.settle();
                Outcome::Loaded(loaded)
            }
        }
    }
}
