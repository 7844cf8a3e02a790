//! One call of a plugin: a store with a budget, an instance, an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bulkhead_core::manifest::{Budget, Instances};
use bulkhead_core::policy::{Fault, FaultKind};
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Engine, Result as Outcome, Store};

use crate::checksum::Checksum;
use crate::fault;
use crate::host::allowance::Deadline;
use crate::host::bindings::bulkhead::policy::types::PolicyError;
use crate::host::bindings::exports::bulkhead::policy as exports;
use crate::host::{About, Host};
use crate::limits::HANDLES_MAX;
use crate::origin::{Access, Origin};
use crate::slots::{Idle, NoFreeSlot, PluginKey, Slot, Slots};
use crate::ticker::{Ticker, ticks_in_ms};

/// Maximum number of calls per instance, to bound memory leaks of plugins.
const REUSED_CALLS_MAX: u32 = 1_000;
/// Maximum number of copies of the state in a row that no later call used.
const UNUSED_COPIES_MAX: u32 = 64;
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
    /// True if new instances are configured already.
    pub(crate) starts_configured: bool,
    /// Functions that give an instance its initial state back; `None` if it cannot be used again that way.
    pub(crate) access: Option<Access>,
    /// Number of copies of the state in a row that no later call used.
    pub(crate) unused_copies: AtomicU32,
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
    /// State to give back to the instance.
    origin: Option<Origin>,
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
        let (store, instance, origin) = if let Some(idle) = taken.idle {
            let Idle {
                mut store,
                instance,
                calls,
                configured_bytes: bytes,
                mut origin,
            } = idle;
            if let Some(origin) = &mut origin {
                origin.begin();
                code.unused_copies.store(0, Ordering::Relaxed);
            }
            store.data_mut().renew(about);
            (store, Some(Configured { instance, calls, bytes }), origin)
        } else {
            let host = Host::new(code.budget.memory_bytes, about);
            (Store::new(&code.engine, host), None, None)
        };
        let deadline = Deadline::after(&code.ticker, 0);
        let mut session = Self {
            code,
            store,
            instance,
            origin,
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
        store.set_fuel(budget.steps).map_err(not_counted)?;
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
        let code = self.code;
        let instance = self.instantiate()?;
        if code.starts_configured {
            // A call costs the same in an instance that answered before.
            self.store.set_fuel(code.budget.steps).map_err(not_counted)?;
            self.save(&instance)?;
        } else {
            let plugin = code.exports.plugin.load(&mut self.store, &instance);
            let plugin = self.loaded(plugin)?;
            let configured = plugin.call_configure(&mut self.store, &code.config);
            self.answered(configured)?;
        }
        let bytes = self.store.data().limits.memory_bytes();
        self.instance = Some(Configured {
            instance,
            calls: 0,
            bytes,
        });
        Ok(instance)
    }

    /// Saves the state of a new instance, to give it back after the call. The copy counts towards the memory of the plugin.
    /// A plugin whose instances are never used again gets no copies.
    fn save(&mut self, instance: &Instance) -> Result<(), Fault> {
        let code = self.code;
        let Some(access) = &code.access else { return Ok(()) };
        let fits = 2 * self.store.data().limits.memory_bytes() <= code.budget.memory_bytes;
        if !fits || code.unused_copies.fetch_add(1, Ordering::Relaxed) >= UNUSED_COPIES_MAX {
            return Ok(());
        }
        self.origin = self.unmetered(|store| Origin::of(access, store, instance));
        if self.origin.is_some() {
            return Ok(());
        }
        // wasmtime lets no function of the store be called after a trap, such as that of the deadline.
        self.in_time()?;
        Err(Fault::new(
            FaultKind::HostBusy,
            "the state of the instance was not saved",
        ))
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
        self.store.set_fuel(remaining.unwrap_or(0)).map_err(not_counted)?;
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

    /// Ends all limits, to read the state of a guest. `None` if that is not possible.
    pub(crate) fn unbounded(&mut self) -> Option<()> {
        self.store.set_fuel(u64::MAX).ok()?;
        self.store.set_epoch_deadline(u64::MAX / 4);
        self.store.set_hostcall_fuel(usize::MAX);
        Some(())
    }

    /// Runs functions of a snapshot, which cost the guest nothing.
    fn unmetered<T>(&mut self, run: impl FnOnce(&mut Store<Host>) -> Option<T>) -> Option<T> {
        let fuel = self.store.get_fuel().ok()?;
        self.store.set_fuel(u64::MAX).ok()?;
        self.store.set_hostcall_fuel(usize::MAX);
        self.store.data_mut().limits.is_counting = false;
        let result = run(&mut self.store);
        self.store.data_mut().limits.is_counting = true;
        self.store.set_hostcall_fuel(self.code.budget.reply_bytes);
        self.store.set_fuel(fuel).ok()?;
        result
    }

    /// Returns the number of calls that the instance answered before.
    pub(crate) fn calls(&self) -> u32 {
        self.instance.map_or(0, |configured| configured.calls)
    }

    /// Starts another call of the same instance, with a new budget. False if the guest keeps handles.
    pub(crate) fn renew(&mut self) -> Result<bool, Fault> {
        let host = self.store.data_mut();
        if host.has_handles(self.lent) {
            return Ok(false);
        }
        host.clear();
        self.lent = 0;
        self.grant(ticks_in_ms(self.code.budget.wall_clock_ms))?;
        Ok(true)
    }

    /// Returns the checksums of the memories of an instance that can be given its state back.
    pub(crate) fn memories(&mut self) -> Option<Vec<Checksum>> {
        let origin = self.origin.take()?;
        let memories = self.unmetered(|store| origin.memories(store));
        self.origin = Some(origin);
        memories
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

    /// Ends the session without a fault. The instance is kept for the next call if it can be given its initial state
    /// back, or if the plugin may be reused. It is dropped if it has reached the maximum number of calls, has grown too
    /// much, or still holds handles, which would give the next call access to another call's data.
    pub(crate) fn end_well(mut self) {
        let Some(Configured { instance, calls, bytes }) = self.instance else {
            return;
        };
        let mut origin = self.origin.take();
        let calls = calls + 1;
        let host = self.store.data_mut();
        let grown = host.limits.memory_bytes().saturating_sub(bytes);
        let fit = match &origin {
            Some(_) => grown == 0 && !host.has_handles(self.lent),
            None => {
                self.code.instances == Instances::Reused
                    && grown <= REUSED_GROWTH_BYTES_MAX
                    && !host.keeps_handles(self.lent)
            }
        };
        if !fit || calls >= REUSED_CALLS_MAX {
            return;
        }
        // The inputs are dropped now, not at the next call of the instance.
        host.clear();
        let code = self.code;
        if let Some(origin) = &mut origin
            && self
                .unmetered(|store| origin.restore(code.access.as_ref()?, store))
                .is_none()
        {
            return;
        }
        let idle = Idle {
            store: self.store,
            instance,
            calls,
            configured_bytes: bytes,
            origin,
        };
        self.slot.keep(self.code.plugin, idle);
    }

    fn or<T>(&self, otherwise: FaultKind, outcome: Outcome<T>) -> Result<T, Fault> {
        let limits = &self.store.data().limits;
        outcome.map_err(|error| fault::of_wasmtime(&error, limits, &self.code.budget, otherwise))
    }
}

/// Returns the fault of a store that does not count steps.
fn not_counted(error: wasmtime::Error) -> Fault {
    Fault::new(FaultKind::HostBug, format!("setting fuel: {error:#}"))
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
