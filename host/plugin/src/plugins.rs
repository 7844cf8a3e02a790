//! From a catalog to plugins in force: load what changed, keep what works.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::composition::Composition;
use bulkhead_core::policy::Policy;

use crate::catalog::{Catalog, Fingerprint, Listed};
use crate::registry::Installed;
use crate::status::{PluginStatus, Refused};
use crate::{Description, FoundPlugin, LoadError, LoadStage, Loaded, PluginSource, Registry};

/// Asks a plugin first questions before it is put in force, and says what is wrong with its answers.
pub type SmokeTest = Box<dyn Fn(&dyn Policy) -> Result<(), String> + Send + Sync>;

/// The plugins of a catalog, kept in force in a registry.
///
/// [`refresh`](Self::refresh) loads what changed and swaps the whole set at once. A plugin that does not load leaves
/// the version before it in force; the status says why, and the others are not touched.
pub struct Plugins {
    registry: Arc<Registry>,
    catalog: Box<dyn Catalog>,
    smoke_test: Option<SmokeTest>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: Option<Fingerprint>,
    composition: Composition,
    active: BTreeMap<String, Active>,
    /// What is listed, in order.
    order: Vec<Entry>,
    /// Why the list could not be read.
    list_error: Option<String>,
}

/// What became of one line of the listing.
struct Entry {
    name: String,
    generation: Option<i64>,
    /// Whether a version of it is in force.
    is_active: bool,
    /// Why its newest version is not.
    refused: Option<Refused>,
}

/// A version in force.
struct Active {
    found: FoundPlugin,
    description: Description,
    installed: Installed,
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
        Self { registry, catalog, smoke_test, state: Mutex::default() }
    }

    /// The registry that they are in force in.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Loads what changed in the catalog since the last time. Readers of the registry see the old set or the new one.
    pub fn refresh(&self) -> Refresh {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Before reading: what changes while it is read is found the next time.
        let fingerprint = self.catalog.fingerprint();
        if state.seen.as_ref() == Some(&fingerprint) {
            return Refresh::Unchanged;
        }
        state.seen = Some(fingerprint);
        match self.catalog.read() {
            Err(error) => state.list_error = Some(error.to_string()),
            Ok(listing) => {
                state.list_error = listing.stale.map(|error| error.to_string());
                state.composition = listing.composition;
                self.take(&mut state, listing.plugins);
                let active = state.order.iter().filter(|entry| entry.is_active);
                let in_order = active.filter_map(|entry| state.active.get(&entry.name));
                let installed: Vec<_> = in_order.map(|active| active.installed.clone()).collect();
                self.registry.install(&installed, state.composition);
            }
        }
        Refresh::Changed
    }

    fn take(&self, state: &mut State, listed: Vec<Listed>) {
        let mut before = std::mem::take(&mut state.active);
        state.order.clear();
        for Listed { name, generation, found } in listed {
            if let Some(first) = state.order.iter().find(|entry| entry.name == name) {
                let refused = Some(Refused::second(first.generation.is_some(), found));
                state.order.push(Entry { name, generation, is_active: false, refused });
                continue;
            }
            let old = before.remove(&name);
            let (active, refused) = match found.and_then(|found| self.renew(old.as_ref(), found)) {
                Ok(None) => (old, None),
                Ok(Some(new)) => (Some(new), None),
                Err(error) => (old, Some(Refused::from(error))),
            };
            let is_active = active.is_some();
            if let Some(active) = active {
                state.active.insert(name.clone(), active);
            }
            state.order.push(Entry { name, generation, is_active, refused });
        }
    }

    /// The new version; none if it is the one that is in force.
    fn renew(&self, old: Option<&Active>, found: FoundPlugin) -> Result<Option<Active>, LoadError> {
        if old.is_some_and(|old| old.found == found) {
            return Ok(None);
        }
        let loaded = self.registry.load(&found.source)?;
        self.try_out(&found.source, &loaded)?;
        let installed = self.registry.prepare(&loaded, &found.manifest.terms(), old.map(|old| &old.installed));
        let installed = installed.map_err(|message| LoadError::new(&found.source, LoadStage::Active, message))?;
        Ok(Some(Active { found, description: loaded.description, installed }))
    }

    fn try_out(&self, source: &PluginSource, loaded: &Loaded) -> Result<(), LoadError> {
        let Some(test) = &self.smoke_test else { return Ok(()) };
        test(&*loaded.policy).map_err(|message| LoadError::new(source, LoadStage::SmokeTested, message))
    }

    /// Why the list could not be read the last time; what was in force before stays so.
    pub fn list_error(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).list_error.clone()
    }

    /// What became of every plugin on the list, in order.
    pub fn status(&self) -> Vec<PluginStatus> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let status = |Entry { name, generation, is_active, refused }: &Entry| {
            let active = is_active.then(|| state.active.get(name)).flatten();
            PluginStatus {
                name: name.clone(),
                generation: *generation,
                stage: refused.as_ref().map_or(LoadStage::Active, |refused| refused.stage),
                refused: refused.clone(),
                active: active.map(|active| active.installed.id().clone()),
                digest: active.map(|active| active.description.digest),
                mode: active.map(|active| active.installed.mode()),
                breaker: active.map(|active| active.installed.breaker()).unwrap_or_default(),
                counts: active.map(|active| active.installed.counts()).unwrap_or_default(),
                remarks: active.map(|active| active.description.remarks.clone()).unwrap_or_default(),
            }
        };
        state.order.iter().map(status).collect()
    }
}
