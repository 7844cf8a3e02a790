//! The states of one plugin, kept between calls.

use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::policy::Fault;
use bulkhead_plugin::Budget;

use crate::engine::Script;
use crate::library::Library;
use crate::machine::{Machine, Session, Setting};

/// Most states that wait for a call. More are made when more calls come at once, and dropped afterwards.
const IDLE_MAX: usize = 8;

/// States that are as good as new, and what it takes to make another.
pub(crate) struct Pool {
    library: Arc<Library>,
    scripts: Vec<Script>,
    budget: Budget,
    /// The one that was used last is last, and first to be used again: its memory is warm.
    idle: Mutex<Vec<Machine>>,
}

impl Pool {
    /// A pool without a state.
    pub(crate) fn new(library: Arc<Library>, scripts: Vec<Script>, budget: Budget) -> Self {
        Self { library, scripts, budget, idle: Mutex::default() }
    }

    /// The scripts, in the plugin's order.
    pub(crate) fn scripts(&self) -> &[Script] {
        &self.scripts
    }

    /// Runs a call in a state that nobody else uses meanwhile. A state that a panic passes through is dropped.
    pub(crate) fn session<'v, T>(
        &self,
        setting: &Setting<'v>,
        run: impl FnOnce(&Session<'_, 'v>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let machine = waiting.map_or_else(|| Machine::new(&self.library, &self.scripts, self.budget), Ok)?;
        let result = machine.session(setting, run);
        if machine.is_reusable(&result) {
            self.put_back(machine);
        }
        result
    }

    fn put_back(&self, machine: Machine) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(machine);
        }
    }
}

#[cfg(test)]
mod tests;
