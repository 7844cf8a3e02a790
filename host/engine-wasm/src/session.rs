//! One call of a plugin: a store with a budget, an instance, an answer.

use std::sync::Arc;

use bulkhead_core::manifest::{Budget, Instances};
use bulkhead_core::policy::{Fault, FaultKind};
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Engine, Result as Outcome, Store};

use crate::fault;
use crate::host::allowance::Deadline;
use crate::host::bindings::bulkhead::policy::types::PolicyError;
use crate::host::bindings::exports::bulkhead::policy as exports;
use crate::host::{About, Host};
use crate::limits::HANDLES_MAX;
use crate::slots::{Idle, NoFreeSlot, PluginKey, Slot, Slots};
use crate::ticker::{Ticker, ticks_in_ms};

/// Maximum number of calls per instance, to bound memory leaks of plugins.
const REUSED_CALLS_MAX: u32 = 1_000;
/// Maximum growth of an instance's memory in bytes if it is to be reused.
const REUSED_GROWTH_BYTES_MAX: usize = 1 << 20;

/// Indexes of a component's functions.
pub(crate) struct Exports {
    pub(crate) plugin: exports::plugin::GuestIndices,
    pub(crate) health: Option<exports::health::GuestIndices>,
    pub(crate) taints: Option<exports::taints::GuestIndices>,
    pub(crate) filter: Option<exports::filter::GuestIndices>,
    pub(crate) score: Option<exports::score::GuestIndices>,
    pub(crate) eviction: Option<exports::eviction::GuestIndices>,
    pub(crate) interpreter: Option<exports::interpreter::GuestIndices>,
}

/// Compiled code and settings of a plugin.
pub(crate) struct Code {
    pub(crate) engine: Engine,
    pub(crate) component: InstancePre<Host>,
    pub(crate) exports: Exports,
    pub(crate) budget: Budget,
    /// Configuration as JSON text, passed to an instance before its first call.
    pub(crate) config: String,
    /// Lifetime of an instance.
    pub(crate) instances: Instances,
    /// Slots for instances, and the key of this plugin in them.
    pub(crate) slots: Arc<Slots>,
    pub(crate) plugin: PluginKey,
    /// Ticker that advances the epoch as long as this code exists.
    pub(crate) ticker: Arc<Ticker>,
}

impl Drop for Code {
    fn drop(&mut self) {
        self.slots.forget(self.plugin);
    }
}

/// One call and its remaining budget. Only its instance may be reused, if that is allowed.
pub(crate) struct Session<'a> {
    pub(crate) code: &'a Code,
    pub(crate) store: Store<Host>,
    /// A configured instance, the number of its calls, and its initial memory.
    instance: Option<Configured>,
    /// Number of inputs in the table.
    lent: usize,
    deadline: Deadline,
    /// Released last, after the store was dropped.
    slot: Slot,
}

#[derive(Clone, Copy)]
struct Configured {
    instance: Instance,
    calls: u32,
    bytes: usize,
}

impl<'a> Session<'a> {
    /// Creates a session with the budget of one call. Waiting for a slot counts towards the time of the call.
    pub(crate) fn new(code: &'a Code, about: About) -> Result<Self, Fault> {
        let ticks_max = ticks_in_ms(code.budget.wall_clock_ms);
        let taken = code
            .slots
            .take(code.plugin, ticks_max)
            .map_err(|NoFreeSlot| crowded(&code.budget))?;
        let (store, instance) = match taken.idle {
            Some(Idle {
                mut store,
                instance,
                calls,
                configured_bytes: bytes,
            }) => {
                store.data_mut().renew(about);
                (store, Some(Configured { instance, calls, bytes }))
            }
            None => (
                Store::new(&code.engine, Host::new(code.budget.memory_bytes, about)),
                None,
            ),
        };
        let deadline = Deadline::after(&code.ticker, 0);
        let mut session = Self {
            code,
            store,
            instance,
            lent: 0,
            deadline,
            slot: taken.slot,
        };
        session.grant(ticks_max.saturating_sub(taken.waited_ticks))?;
        Ok(session)
    }

    /// Grants the budget of one call.
    fn grant(&mut self, ticks: u64) -> Result<(), Fault> {
        let (store, budget) = (&mut self.store, &self.code.budget);
        store.limiter(|host| &mut host.limits);
        let unmetered = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"));
        store.set_fuel(budget.steps).map_err(unmetered)?;
        // The epoch may advance at any moment, so one more tick is needed to grant the whole time. The deadline is
        // relative; an almost unlimited one would wrap around to a past epoch.
        let ticks = ticks.min(u64::MAX / 4) + 1;
        store.set_epoch_deadline(ticks);
        self.deadline = Deadline::after(&self.code.ticker, ticks);
        let (steps, deadline) = (budget.steps, self.deadline.clone());
        store.data_mut().allowance.grant(steps, budget.memory_bytes, deadline);
        // Limits the size of each transfer from the guest: a reply, a log line, a pointer.
        store.set_hostcall_fuel(budget.reply_bytes);
        store.data_mut().table.set_max_capacity(HANDLES_MAX);
        Ok(())
    }

    /// Returns a new instance that is not configured yet.
    pub(crate) fn instantiate(&mut self) -> Result<Instance, Fault> {
        let instance = self.code.component.instantiate(&mut self.store);
        self.or(FaultKind::Denied, instance)
    }

    /// Returns a configured instance: a reused or a new one.
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
        self.instance = Some(Configured {
            instance,
            calls: 0,
            bytes,
        });
        Ok(instance)
    }

    /// Returns the functions of a kind, whose types must match the contract.
    pub(crate) fn loaded<G>(&self, guest: Outcome<G>) -> Result<G, Fault> {
        self.or(FaultKind::MissingExport, guest)
    }

    /// Returns the guest's reply if it is within its deadline and steps.
    pub(crate) fn returned<T>(&mut self, reply: Outcome<T>) -> Result<T, Fault> {
        let settled = self.settle();
        let reply = self.or(FaultKind::BadReply, reply)?;
        settled.and_then(|()| self.in_time()).map(|()| reply)
    }

    /// Deducts the steps spent by host functions while the guest ran from the fuel.
    fn settle(&mut self) -> Result<(), Fault> {
        let fuel = self.store.get_fuel().unwrap_or(0);
        let remaining = self.store.data_mut().allowance.settle(fuel);
        let unmetered = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"));
        self.store.set_fuel(remaining.unwrap_or(0)).map_err(unmetered)?;
        remaining.map(drop).ok_or_else(|| fault::out_of_fuel(&self.code.budget))
    }

    /// Returns an error if the deadline is over. A later reply does not count, regardless of the cause of the delay.
    pub(crate) fn in_time(&self) -> Result<(), Fault> {
        if self.deadline.is_over() {
            Err(fault::deadline(&self.code.budget))
        } else {
            Ok(())
        }
    }

    /// Returns the guest's reply, or a fault for the guest's own error.
    pub(crate) fn answered<T>(&mut self, reply: Outcome<Result<T, PolicyError>>) -> Result<T, Fault> {
        self.returned(reply)?.map_err(fault::of_guest)
    }

    /// Adds an input to the table for the guest to borrow.
    pub(crate) fn lend<T: Send + 'static>(&mut self, input: T) -> Result<Resource<T>, Fault> {
        let lent = self.store.data_mut().table.push(input);
        self.lent += 1;
        lent.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
    }

    /// Returns the number of steps used so far.
    pub(crate) fn steps(&self) -> u64 {
        self.code
            .budget
            .steps
            .saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    /// Returns the memory of the guest, with what the host holds for it, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let host = self.store.data();
        host.limits.memory_bytes().max(host.allowance.bytes_max())
    }

    /// Ends the session without a fault. If the plugin may be reused, its instance is kept for the next call, unless
    /// it has reached the maximum number of calls, has grown too much, or still holds handles, which would give the
    /// next call access to another call's data.
    pub(crate) fn end_well(mut self) {
        let Some(Configured { instance, calls, bytes }) = self.instance else {
            return;
        };
        let calls = calls + 1;
        let host = self.store.data_mut();
        let grown = host.limits.memory_bytes().saturating_sub(bytes);
        let keeps_handles = host.table.iter_mut().count() != self.lent;
        let fit = calls < REUSED_CALLS_MAX && grown <= REUSED_GROWTH_BYTES_MAX && !keeps_handles;
        if self.code.instances == Instances::Reused && fit {
            // The inputs are dropped now, not at the next call of the instance.
            host.clear();
            let idle = Idle {
                store: self.store,
                instance,
                calls,
                configured_bytes: bytes,
            };
            self.slot.keep(self.code.plugin, idle);
        }
    }

    fn or<T>(&self, otherwise: FaultKind, outcome: Outcome<T>) -> Result<T, Fault> {
        let limits = &self.store.data().limits;
        outcome.map_err(|error| fault::of_wasmtime(&error, limits, &self.code.budget, otherwise))
    }
}

/// Returns the fault of a call that found no slot within its time.
fn crowded(budget: &Budget) -> Fault {
    let message = format!(
        "found no free instance slot within {} ms; other calls use all of them",
        budget.wall_clock_ms
    );
    Fault::new(FaultKind::HostBusy, message)
}

/// Returns the indexes of a kind's functions, or a fault if the component does not export them.
pub(crate) fn exported<I>(indices: Option<&I>) -> Result<&I, Fault> {
    indices.ok_or_else(|| Fault::new(FaultKind::MissingExport, "the component does not export this kind"))
}
