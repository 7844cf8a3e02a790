//! Lua states of one plugin, kept between calls.

use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Fault, PolicyId};
use bulkhead_plugin::LogSink;

use crate::library::Library;
use crate::machine::{CallSettings, Machine, Session};
use crate::meter::Spent;
use crate::script::Script;

/// Maximum number of idle states. Additional ones are created for concurrent calls and dropped afterwards.
const IDLE_MAX: usize = 8;

/// Reusable states, and the data to create more.
pub(crate) struct Pool {
    library: Arc<Library>,
    scripts: Vec<Script>,
    budget: Budget,
    /// Receiver of printed lines, and the plugin that it gets them from; absent to discard them.
    lines: Option<(PolicyId, LogSink)>,
    /// Idle states. The last one was used last and is reused first, because its memory is warm.
    idle: Mutex<Vec<Machine>>,
}

impl Pool {
    /// Creates a pool without states.
    pub(crate) fn new(library: Arc<Library>, scripts: Vec<Script>, budget: Budget) -> Self {
        Self {
            library,
            scripts,
            budget,
            lines: None,
            idle: Mutex::default(),
        }
    }

    /// Sends the lines that scripts print to a receiver.
    pub(crate) fn with_lines(self, id: PolicyId, sink: LogSink) -> Self {
        Self {
            lines: Some((id, sink)),
            ..self
        }
    }

    /// Returns the scripts in the plugin's order.
    pub(crate) fn scripts(&self) -> &[Script] {
        &self.scripts
    }

    /// Runs a call in a state of its own. If the call panics, its state is dropped.
    pub(crate) fn session<'v, T>(
        &self,
        setting: &CallSettings<'v>,
        run: impl FnOnce(&Session<'_, 'v>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.metered(setting, |_| {}, run)
    }

    /// Runs a call as [`session`](Self::session) does, and passes its resources to `meter`.
    pub(crate) fn metered<'v, T>(
        &self,
        setting: &CallSettings<'v>,
        meter: impl FnOnce(Spent),
        run: impl FnOnce(&Session<'_, 'v>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let machine = waiting.map_or_else(|| self.machine(), Ok)?;
        let result = machine.session(setting, run);
        if let Some((id, sink)) = &self.lines {
            machine.lines().flush(Some(sink), id);
        }
        meter(machine.spent());
        if machine.is_reusable(&result) {
            self.put_back(machine);
        }
        result
    }

    fn machine(&self) -> Result<Machine, Fault> {
        Machine::new(&self.library, &self.scripts, self.budget, self.lines.is_some())
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
