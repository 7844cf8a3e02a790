//! One loaded plugin, and one call of it.

use std::sync::Arc;

use bulkhead_core::call::{Call, Reply, TaintVerdict};
use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_plugin::Budget;
use serde_json::Value;
use wasmtime::component::{Instance, InstancePre, Resource};
use wasmtime::{Engine, Store, Trap};

use crate::answers;
use crate::bindings::exports::bulkhead::policy as exports;
use crate::engine::LogSink;
use crate::host::{Candidates, Document, Host};
use crate::ticker::{TICK, Ticker};

/// Where the functions of a component are.
pub(crate) struct Exports {
    pub(crate) plugin: exports::plugin::GuestIndices,
    pub(crate) health: Option<exports::health::GuestIndices>,
    pub(crate) taints: Option<exports::taints::GuestIndices>,
    pub(crate) filter: Option<exports::filter::GuestIndices>,
    pub(crate) score: Option<exports::score::GuestIndices>,
    pub(crate) eviction: Option<exports::eviction::GuestIndices>,
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

/// A plugin in force.
pub(crate) struct WasmPolicy {
    pub(crate) id: PolicyId,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) code: Code,
    pub(crate) log: Option<LogSink>,
}

impl Policy for WasmPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let mut store = self.code.store()?;
        let outcome = self.code.answer(&mut store, call);
        if let Some(log) = &self.log {
            for (level, line) in &store.data().lines {
                log(&self.id, *level as u8, line);
            }
        }
        outcome
    }
}

impl Code {
    /// A store with the budget of one call.
    pub(crate) fn store(&self) -> Result<Store<Host>, Fault> {
        let mut store = Store::new(&self.engine, Host::new(self.budget.memory_bytes));
        store.limiter(|host| &mut host.memory);
        let bug = |error: wasmtime::Error| Fault::new(FaultKind::HostBug, format!("{error:#}"));
        store.set_fuel(self.budget.steps).map_err(bug)?;
        let ticks = u128::from(self.budget.wall_clock_ms).div_ceil(TICK.as_millis());
        // The epoch is about to move at any moment, so one tick more is the least that grants the whole time.
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1));
        store.set_hostcall_fuel(self.budget.reply_bytes);
        Ok(store)
    }

    /// A fresh instance, configured.
    pub(crate) fn instantiate(&self, store: &mut Store<Host>) -> Result<Instance, Fault> {
        let instance = self.component.instantiate(&mut *store);
        let instance = self.checked(store, instance)?;
        let plugin = self.exports.plugin.load(&mut *store, &instance);
        let plugin = self.checked(store, plugin)?;
        let configured = plugin.call_configure(&mut *store, &self.config);
        self.checked(store, configured)?.map_err(answers::guest_error)?;
        Ok(instance)
    }

    /// Maps an error of wasmtime to a fault, by type and by what the limiter saw, never by text.
    pub(crate) fn checked<T>(&self, store: &Store<Host>, outcome: wasmtime::Result<T>) -> Result<T, Fault> {
        outcome.map_err(|error| {
            let kind = match error.downcast_ref::<Trap>() {
                Some(Trap::OutOfFuel) => FaultKind::OutOfFuel,
                Some(Trap::Interrupt) => FaultKind::Deadline,
                Some(Trap::AllocationTooLarge) => FaultKind::Memory,
                _ if store.data().memory.hit => FaultKind::Memory,
                Some(_) => FaultKind::Trap,
                // What is no trap happened while values crossed: too large, or not of the declared type.
                None => FaultKind::BadReply,
            };
            let message = match kind {
                FaultKind::OutOfFuel => format!("used up its {} steps", self.budget.steps),
                FaultKind::Deadline => format!("did not answer within {} ms", self.budget.wall_clock_ms),
                FaultKind::Memory => format!("asked for more than {} bytes of memory", self.budget.memory_bytes),
                _ => error.root_cause().to_string(),
            };
            Fault::new(kind, message)
        })
    }

    fn answer(&self, store: &mut Store<Host>, call: &Call<'_>) -> Result<Reply, Fault> {
        let instance = self.instantiate(store)?;
        let seconds = |now: Time| now.as_millis().div_euclid(1000);
        match call {
            Call::Health(call) => {
                let guest = exported(self.exports.health.as_ref())?.load(&mut *store, &instance);
                let guest = self.checked(store, guest)?;
                let observed = document(store, call.object.clone())?;
                let answer = guest.call_interpret(&mut *store, observed);
                let verdict = self.checked(store, answer)?.map_err(answers::guest_error)?;
                Ok(Reply::Health(answers::health(verdict)))
            }
            Call::ClusterTaint(call) => {
                let guest = exported(self.exports.taints.as_ref())?.load(&mut *store, &instance);
                let guest = self.checked(store, guest)?;
                let cluster = document(store, to_value(call.cluster))?;
                let answer = guest.call_decide(&mut *store, cluster, seconds(call.now));
                let changes = self.checked(store, answer)?.map_err(answers::guest_error)?;
                let changes = changes.into_iter().map(answers::taint_change).collect();
                Ok(Reply::ClusterTaint(TaintVerdict { changes }))
            }
            Call::Filter(call) => {
                let guest = exported(self.exports.filter.as_ref())?.load(&mut *store, &instance);
                let guest = self.checked(store, guest)?;
                let candidates = candidates(store, Candidates::new(call.binding, call.clusters))?;
                let binding = document(store, to_value(call.binding))?;
                let answer = guest.call_filter(&mut *store, binding, candidates, seconds(call.now));
                let verdicts = self.checked(store, answer)?.map_err(answers::guest_error)?;
                Ok(Reply::Filter(verdicts.into_iter().map(answers::filter).collect()))
            }
            Call::Score(call) => {
                let guest = exported(self.exports.score.as_ref())?.load(&mut *store, &instance);
                let guest = self.checked(store, guest)?;
                let candidates = candidates(store, Candidates::new(call.binding, call.clusters))?;
                let binding = document(store, to_value(call.binding))?;
                let answer = guest.call_score(&mut *store, binding, candidates, seconds(call.now));
                let scores = self.checked(store, answer)?.map_err(answers::guest_error)?;
                Ok(Reply::Score(scores.into_iter().map(i64::from).collect()))
            }
            Call::EvictionCheck(call) => {
                let guest = exported(self.exports.eviction.as_ref())?.load(&mut *store, &instance);
                let guest = self.checked(store, guest)?;
                let binding = document(store, to_value(call.binding))?;
                let task = document(store, to_value(call.task))?;
                let answer = guest.call_check(&mut *store, binding, task, seconds(call.now));
                let verdict = self.checked(store, answer)?.map_err(answers::guest_error)?;
                Ok(Reply::EvictionCheck(answers::eviction(verdict)))
            }
            Call::Interpret(_) => Ok(Reply::Interpret(None)),
        }
    }
}

fn exported<I>(indices: Option<&I>) -> Result<&I, Fault> {
    indices.ok_or_else(|| Fault::new(FaultKind::MissingExport, "the component does not export this interface"))
}

fn to_value<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn document(store: &mut Store<Host>, value: Value) -> Result<Resource<Document>, Fault> {
    let pushed = store.data_mut().table.push(Document(Arc::new(value)));
    pushed.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
}

fn candidates(store: &mut Store<Host>, value: Candidates) -> Result<Resource<Candidates>, Fault> {
    let pushed = store.data_mut().table.push(value);
    pushed.map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
}
