//! Slots for concurrent instances, and the idle instances that wait for their next call.
//!
//! Every instance has a slot while it exists. The number of slots equals the capacity of the allocator, so a call
//! waits here, in FIFO order, instead of failing there. An idle instance keeps its slot until it is needed: its own
//! plugin reuses the instance, another one drops it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use wasmtime::Store;
use wasmtime::component::Instance;

use crate::host::Host;
use crate::origin::Origin;
use crate::ticker::{TICK, Ticker};

/// Maximum number of idle instances of one plugin. More would only serve concurrent calls, for which new instances
/// suffice.
const IDLE_PER_PLUGIN_MAX: usize = 8;

/// Key of a plugin of an engine; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PluginKey(u64);

/// An instance between two calls.
pub(crate) struct Idle {
    /// Store of the instance.
    pub(crate) store: Store<Host>,
    /// Instance that is configured and has answered before.
    pub(crate) instance: Instance,
    /// Number of calls that it answered.
    pub(crate) calls: u32,
    /// Memory in bytes after it was configured.
    pub(crate) configured_bytes: usize,
    /// State that it was given back; `None` if it is in the state that its last call left.
    pub(crate) origin: Option<Origin>,
}

/// Error for a call that found no free slot within its time.
#[derive(Debug)]
pub(crate) struct NoFreeSlot;

/// Slots of one engine.
pub(crate) struct Slots {
    state: Mutex<State>,
    changed: Condvar,
    ticker: Arc<Ticker>,
}

struct State {
    free: u32,
    /// Idle instances, least recently used first.
    idle: VecDeque<(PluginKey, Idle)>,
    /// Tickets of the waiting calls, in FIFO order.
    waiting: VecDeque<u64>,
    tickets: u64,
    plugins: u64,
}

/// Permit for one instance.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    /// False if the slot was passed on to an idle instance.
    held: bool,
}

/// A slot and its contents.
pub(crate) struct Taken {
    pub(crate) slot: Slot,
    /// An idle instance of the same plugin; if absent, the caller creates one.
    pub(crate) idle: Option<Idle>,
    /// Time that the call waited, in ticks.
    pub(crate) waited_ticks: u64,
}

impl Slots {
    /// Creates `count` free slots; at least one.
    pub(crate) fn new(count: u32, ticker: Arc<Ticker>) -> Self {
        let state = State {
            free: count.max(1),
            idle: VecDeque::new(),
            waiting: VecDeque::new(),
            tickets: 0,
            plugins: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            ticker,
        }
    }

    /// Returns a key for a plugin.
    pub(crate) fn plugin(&self) -> PluginKey {
        let mut state = self.lock();
        state.plugins += 1;
        PluginKey(state.plugins)
    }

    /// Takes a slot; waits for at most `ticks_max` ticks.
    pub(crate) fn take(self: &Arc<Self>, plugin: PluginKey, ticks_max: u64) -> Result<Taken, NoFreeSlot> {
        let since = self.ticker.ticks();
        let mut state = self.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push_back(ticket);
        loop {
            let waited_ticks = self.ticker.ticks().saturating_sub(since);
            let found = if state.waiting.front() == Some(&ticket) {
                state.find(plugin)
            } else {
                None
            };
            if found.is_none() && waited_ticks < ticks_max {
                state = self
                    .changed
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            state.waiting.retain(|waiting| *waiting != ticket);
            self.changed(state);
            let found = found.ok_or(NoFreeSlot)?;
            let slot = Slot {
                slots: Arc::clone(self),
                held: true,
            };
            // Another plugin's instance is dropped here, before a new one takes its place.
            let idle = if let Found::Own(idle) = found { Some(idle) } else { None };
            return Ok(Taken {
                slot,
                idle,
                waited_ticks,
            });
        }
    }

    /// Drops the idle instances of a plugin that is no longer used.
    pub(crate) fn forget(&self, plugin: PluginKey) {
        let mut state = self.lock();
        let (gone, rest): (VecDeque<_>, _) = state.idle.drain(..).partition(|(of, _)| *of == plugin);
        state.idle = rest;
        drop(state);
        let count = u32::try_from(gone.len()).unwrap_or(0);
        drop(gone);
        self.release(count);
    }

    /// Returns the number of idle instances.
    pub(crate) fn idle(&self) -> usize {
        self.lock().idle.len()
    }

    fn release(&self, count: u32) {
        let mut state = self.lock();
        state.free += count;
        self.changed(state);
    }

    /// Wakes the waiting calls, if there are any: a wake-up without waiters also costs a system call.
    fn changed(&self, state: MutexGuard<'_, State>) {
        let is_awaited = !state.waiting.is_empty();
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Origin of a slot.
enum Found {
    Own(Idle),
    Free,
    Other(#[expect(dead_code, reason = "held to be dropped outside of the lock")] Idle),
}

impl State {
    fn find(&mut self, plugin: PluginKey) -> Option<Found> {
        if let Some(at) = self.idle.iter().rposition(|(of, _)| *of == plugin) {
            return self.idle.remove(at).map(|(_, idle)| Found::Own(idle));
        }
        if self.free > 0 {
            self.free -= 1;
            return Some(Found::Free);
        }
        self.idle.pop_front().map(|(_, idle)| Found::Other(idle))
    }
}

impl Slot {
    /// Keeps an instance for the next call of its plugin, unless the plugin has enough idle ones.
    pub(crate) fn keep(mut self, plugin: PluginKey, idle: Idle) {
        let mut state = self.slots.lock();
        if state.idle.iter().filter(|(of, _)| *of == plugin).count() >= IDLE_PER_PLUGIN_MAX {
            drop(state);
            // The slot is released only after the instance was dropped.
            drop(idle);
            return;
        }
        state.idle.push_back((plugin, idle));
        self.slots.changed(state);
        self.held = false;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.held {
            self.slots.release(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wasmtime::Engine;

    use super::{NoFreeSlot, Slots};
    use crate::ticker::Ticker;

    fn slots(count: u32) -> Arc<Slots> {
        Arc::new(Slots::new(count, Arc::new(Ticker::start(Engine::default()).unwrap())))
    }

    #[test]
    fn a_call_without_a_slot_in_time_is_a_fault() {
        let slots = slots(2);
        let plugin = slots.plugin();
        let held: Vec<_> = (0..2).map(|_| slots.take(plugin, 0).unwrap()).collect();
        assert!(matches!(slots.take(plugin, 2), Err(NoFreeSlot)));
        assert!(matches!(slots.take(slots.plugin(), 0), Err(NoFreeSlot)));
        drop(held);
        assert!(slots.take(plugin, 0).is_ok(), "those who gave up are not waited for");
    }

    #[test]
    fn every_waiting_call_gets_a_slot() {
        let slots = slots(1);
        let plugin = slots.plugin();
        let first = slots.take(plugin, 0).unwrap();
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| slots.take(plugin, u64::MAX).map(|taken| drop(taken.slot))))
                .collect();
            drop(first);
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap().is_ok()));
        });
    }
}
