//! One call of a plugin: a store with a budget, a fresh instance, an answer.

use std::sync::Arc;

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::Budget;
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Engine, Result as Outcome, Store};

use crate::bindings::bulkhead::policy::types::PolicyError;
use crate::bindings::exports::bulkhead::policy as exports;
use crate::fault;
use crate::host::{About, Host};
use crate::ticker::{TICK, Ticker};

/// Where the functions of a component are.
pub(crate) struct Exports {
    pub(crate) plugin: exports::plugin::GuestIndices,
    pub(crate) health: Option<exports::health::GuestIndices>,
    pub(crate) taints: Option<exports::taints::GuestIndices>,
    pub(crate) filter: Option<exports::filter::GuestIndices>,
    pub(crate) score: Option<exports::score::GuestIndices>,
    pub(crate) eviction: Option<exports::eviction::GuestIndices>,
    pub(crate) interpreter: Option<exports::interpreter::GuestIndices>,
}

/// What a call runs on.
pub(crate) struct Code {
    pub(crate) engine: Engine,
    pub(crate) component: InstancePre<Host>,
    pub(crate) exports: Exports,
    pub(crate) budget: Budget,
    /// JSON text that the plugin is configured with before each call.
    pub(crate) config: String,
    /// Keeps the epoch moving for as long as there is code that relies on it.
    pub(crate) _ticker: Arc<Ticker>,
}

/// One call and what it may still spend. Nothing of it survives.
pub(crate) struct Session<'a> {
    pub(crate) code: &'a Code,
    pub(crate) store: Store<Host>,
}

impl<'a> Session<'a> {
    /// A store with the budget of one call.
    pub(crate) fn new(code: &'a Code, about: About) -> Result<Self, Fault> {
        let mut store = Store::new(&code.engine, Host::new(code.budget.memory_bytes, about));
        store.limiter(|host| &mut host.limits);
        let unmetered = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"));
        store.set_fuel(code.budget.steps).map_err(unmetered)?;
        let ticks = u128::from(code.budget.wall_clock_ms).div_ceil(TICK.as_millis());
        // The epoch is about to move at any moment, so one tick more is the least that grants the whole time. The
        // deadline is relative, and the epoch wraps around to before it if it is all but unlimited.
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX / 4) + 1);
        // Bounds what crosses from the guest at once: a reply, a log line, a pointer.
        store.set_hostcall_fuel(code.budget.reply_bytes);
        Ok(Self { code, store })
    }

    /// A fresh instance that was not configured yet.
    pub(crate) fn instantiate(&mut self) -> Result<Instance, Fault> {
        let instance = self.code.component.instantiate(&mut self.store);
        self.or(FaultKind::Denied, instance)
    }

    /// A fresh instance, configured: instances do not live on, so every call configures its own.
    pub(crate) fn configured(&mut self) -> Result<Instance, Fault> {
        let instance = self.instantiate()?;
        let plugin = self.code.exports.plugin.load(&mut self.store, &instance);
        let plugin = self.loaded(plugin)?;
        let configured = plugin.call_configure(&mut self.store, &self.code.config);
        self.answered(configured)?;
        Ok(instance)
    }

    /// A kind's functions, which must be of the types that the contract says.
    pub(crate) fn loaded<G>(&self, guest: Outcome<G>) -> Result<G, Fault> {
        self.or(FaultKind::MissingExport, guest)
    }

    /// What the guest replied.
    pub(crate) fn returned<T>(&self, reply: Outcome<T>) -> Result<T, Fault> {
        self.or(FaultKind::BadReply, reply)
    }

    /// What the guest replied, unless that is an error of its own.
    pub(crate) fn answered<T>(&self, reply: Outcome<Result<T, PolicyError>>) -> Result<T, Fault> {
        self.returned(reply)?.map_err(fault::of_guest)
    }

    /// Puts an input in the table for the guest to borrow.
    pub(crate) fn lend<T: Send + 'static>(&mut self, input: T) -> Result<Resource<T>, Fault> {
        let lent = self.store.data_mut().table.push(input);
        lent.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
    }

    fn or<T>(&self, otherwise: FaultKind, outcome: Outcome<T>) -> Result<T, Fault> {
        let limits = &self.store.data().limits;
        outcome.map_err(|error| fault::of_wasmtime(&error, limits, &self.code.budget, otherwise))
    }
}

/// Where a kind's functions are, if the component has them.
pub(crate) fn exported<I>(indices: Option<&I>) -> Result<&I, Fault> {
    indices.ok_or_else(|| Fault::new(FaultKind::MissingExport, "the component does not export this kind"))
}
