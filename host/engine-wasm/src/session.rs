//! One call of a plugin: a store with a budget, an instance, an answer.

use std::sync::Arc;

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::{Budget, Instances};
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Engine, Result as Outcome, Store};

use crate::bindings::bulkhead::policy::types::PolicyError;
use crate::bindings::exports::bulkhead::policy as exports;
use crate::fault;
use crate::host::allowance::Deadline;
use crate::host::{About, Host};
use crate::slots::{Crowded, Idle, PluginKey, Slot, Slots};
use crate::ticker::{Ticker, ticks_in_ms};

/// Most calls that one instance answers, so that what a plugin leaks is bounded.
const REUSED_CALLS_MAX: u32 = 1_000;
/// Most bytes that an instance may have grown by and still be reused.
const REUSED_GROWTH_BYTES_MAX: usize = 1 << 20;
/// Most handles that a guest holds at a time. What is behind a handle is memory of the host, which no other limit counts.
pub(crate) const HANDLES_MAX: usize = 1_024;

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
    /// JSON text that an instance is configured with before its first question.
    pub(crate) config: String,
    /// How long an instance lives.
    pub(crate) instances: Instances,
    /// Where instances have their place, and which of them are this plugin's.
    pub(crate) slots: Arc<Slots>,
    pub(crate) plugin: PluginKey,
    /// Keeps the epoch moving for as long as there is code that relies on it.
    pub(crate) ticker: Arc<Ticker>,
}

impl Drop for Code {
    fn drop(&mut self) {
        self.slots.forget(self.plugin);
    }
}

/// One call and what it may still spend. Nothing of it survives but, if that is allowed, its instance.
pub(crate) struct Session<'a> {
    pub(crate) code: &'a Code,
    pub(crate) store: Store<Host>,
    /// A configured instance, with the calls that it answered and the memory that it started with.
    instance: Option<Configured>,
    /// How many inputs are in the table.
    lent: usize,
    deadline: Deadline,
    /// Given back last, when the store is gone.
    slot: Slot,
}

#[derive(Clone, Copy)]
struct Configured {
    instance: Instance,
    calls: u32,
    bytes: usize,
}

impl<'a> Session<'a> {
    /// A session with the budget of one call. Waiting for a place counts as time of the call.
    pub(crate) fn new(code: &'a Code, about: About) -> Result<Self, Fault> {
        let ticks_max = ticks_in_ms(code.budget.wall_clock_ms);
        let taken = code.slots.take(code.plugin, ticks_max).map_err(|Crowded| crowded(&code.budget))?;
        let (store, instance) = match taken.idle {
            Some(Idle { mut store, instance, calls, configured_bytes: bytes }) => {
                store.data_mut().renew(about);
                (store, Some(Configured { instance, calls, bytes }))
            }
            None => (Store::new(&code.engine, Host::new(code.budget.memory_bytes, about)), None),
        };
        let deadline = Deadline::after(&code.ticker, 0);
        let mut session = Self { code, store, instance, lent: 0, deadline, slot: taken.slot };
        session.grant(ticks_max.saturating_sub(taken.waited_ticks))?;
        Ok(session)
    }

    /// Grants what one call may spend.
    fn grant(&mut self, ticks: u64) -> Result<(), Fault> {
        let (store, budget) = (&mut self.store, &self.code.budget);
        store.limiter(|host| &mut host.limits);
        let unmetered = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"));
        store.set_fuel(budget.steps).map_err(unmetered)?;
        // The epoch is about to move at any moment, so one tick more is the least that grants the whole time. The
        // deadline is relative, and the epoch wraps around to before it if it is all but unlimited.
        let ticks = ticks.min(u64::MAX / 4) + 1;
        store.set_epoch_deadline(ticks);
        self.deadline = Deadline::after(&self.code.ticker, ticks);
        let (steps, deadline) = (budget.steps, self.deadline.clone());
        store.data_mut().allowance.grant(steps, budget.memory_bytes, deadline);
        // Bounds what crosses from the guest at once: a reply, a log line, a pointer.
        store.set_hostcall_fuel(budget.reply_bytes);
        store.data_mut().table.set_max_capacity(HANDLES_MAX);
        Ok(())
    }

    /// A fresh instance that was not configured yet.
    pub(crate) fn instantiate(&mut self) -> Result<Instance, Fault> {
        let instance = self.code.component.instantiate(&mut self.store);
        self.or(FaultKind::Denied, instance)
    }

    /// A configured instance: one that answered before, or a fresh one.
    pub(crate) fn configured(&mut self) -> Result<Instance, Fault> {
        if let Some(configured) = self.instance {
            return Ok(configured.instance);
        }
        let instance = self.instantiate()?;
        let plugin = self.code.exports.plugin.load(&mut self.store, &instance);
        let plugin = self.loaded(plugin)?;
        let configured = plugin.call_configure(&mut self.store, &self.code.config);
        self.answered(configured)?;
        let bytes = self.store.data().limits.memory_bytes();
        self.instance = Some(Configured { instance, calls: 0, bytes });
        Ok(instance)
    }

    /// A kind's functions, which must be of the types that the contract says.
    pub(crate) fn loaded<G>(&self, guest: Outcome<G>) -> Result<G, Fault> {
        self.or(FaultKind::MissingExport, guest)
    }

    /// What the guest replied, if it is in time and within its steps.
    pub(crate) fn returned<T>(&mut self, reply: Outcome<T>) -> Result<T, Fault> {
        let settled = self.settle();
        let reply = self.or(FaultKind::BadReply, reply)?;
        settled.and_then(|()| self.in_time()).map(|()| reply)
    }

    /// Deducts from the fuel what functions of the host spent while the guest ran.
    fn settle(&mut self) -> Result<(), Fault> {
        let fuel = self.store.get_fuel().unwrap_or(0);
        let left = self.store.data_mut().allowance.settle(fuel);
        let unmetered = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"));
        self.store.set_fuel(left.unwrap_or(0)).map_err(unmetered)?;
        left.map(drop).ok_or_else(|| fault::out_of_fuel(&self.code.budget))
    }

    /// Fails once the deadline is over: a reply that comes later does not count, whatever was late.
    pub(crate) fn in_time(&self) -> Result<(), Fault> {
        if self.deadline.is_over() { Err(fault::deadline(&self.code.budget)) } else { Ok(()) }
    }

    /// What the guest replied, unless that is an error of its own.
    pub(crate) fn answered<T>(&mut self, reply: Outcome<Result<T, PolicyError>>) -> Result<T, Fault> {
        self.returned(reply)?.map_err(fault::of_guest)
    }

    /// Puts an input in the table for the guest to borrow.
    pub(crate) fn lend<T: Send + 'static>(&mut self, input: T) -> Result<Resource<T>, Fault> {
        let lent = self.store.data_mut().table.push(input);
        self.lent += 1;
        lent.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
    }

    /// The steps that were used so far.
    pub(crate) fn steps(&self) -> u64 {
        self.code.budget.steps.saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    /// Ends the session without a fault. The instance stays for the next call if the plugin may be reused and nothing
    /// speaks against it: it answered enough calls, has grown, or still holds handles, which would be of use in the next
    /// call only to somebody who should not have them.
    pub(crate) fn end_well(mut self) {
        let Some(Configured { instance, calls, bytes }) = self.instance else { return };
        let calls = calls + 1;
        let host = self.store.data_mut();
        let grown = host.limits.memory_bytes().saturating_sub(bytes);
        let keeps_handles = host.table.iter_mut().count() != self.lent;
        let fit = calls < REUSED_CALLS_MAX && grown <= REUSED_GROWTH_BYTES_MAX && !keeps_handles;
        if self.code.instances == Instances::Reused && fit {
            // The inputs go now, not when the instance is next asked.
            host.clear();
            let idle = Idle { store: self.store, instance, calls, configured_bytes: bytes };
            self.slot.keep(self.code.plugin, idle);
        }
    }

    fn or<T>(&self, otherwise: FaultKind, outcome: Outcome<T>) -> Result<T, Fault> {
        let limits = &self.store.data().limits;
        outcome.map_err(|error| fault::of_wasmtime(&error, limits, &self.code.budget, otherwise))
    }
}

/// Every place for an instance was taken for as long as the call may take.
fn crowded(budget: &Budget) -> Fault {
    let message =
        format!("found no place for an instance within {} ms; other calls had them all", budget.wall_clock_ms);
    Fault::new(FaultKind::HostBusy, message)
}

/// Where a kind's functions are, if the component has them.
pub(crate) fn exported<I>(indices: Option<&I>) -> Result<&I, Fault> {
    indices.ok_or_else(|| Fault::new(FaultKind::MissingExport, "the component does not export this kind"))
}
