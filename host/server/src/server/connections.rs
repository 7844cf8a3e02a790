//! Connections of an endpoint: their number, the bytes that they buffer and their deadlines.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Limits;

/// Time for which a connection keeps its slot while it waits for its client. A request that has arrived is read in that
/// time, also when many clients compete for the slots.
const TIME_SLICE: Duration = Duration::from_millis(250);

/// Connections of an endpoint. Clones share them.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    limits: Limits,
    state: Mutex<State>,
    /// Notified when a connection ends, releases its buffer or starts to wait for its client.
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// Last used id or position in the waiting order.
    next: u64,
    slots: BTreeMap<u64, Entry>,
    /// Total size of all buffered bodies, in bytes.
    buffered: usize,
}

struct Entry {
    /// Position in the order in which connections started to wait for their clients; `None` while the server works.
    waits_since: Option<u64>,
    /// Start of the current step.
    started: Instant,
    /// Size of the buffered request body, in bytes.
    buffered: usize,
    /// True if it was closed to make room, but its task has not ended yet.
    closing: bool,
    /// Deadline of the current step; `None` while the server works.
    deadline: watch::Sender<Option<Instant>>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            limits,
            state: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// Admits a connection whose first step has the given time limit. If the endpoint is full, closes the connection
    /// that has waited longest for its client; if all have a request in progress, waits for one to end.
    pub(super) async fn slot(&self, first_step: Duration) -> Arc<ConnectionSlot> {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            freed.as_mut().enable();
            let turn_ends;
            {
                let mut state = self.0.state();
                if state.slots.len() < self.0.limits.connections {
                    return self.admit(&mut state, first_step);
                }
                let now = Instant::now();
                if !state.slots.values().any(|entry| entry.closing) {
                    state.close_longest_waiting(|_, entry| entry.started + TIME_SLICE <= now);
                }
                turn_ends = state.next_turn_ends(now);
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = tokio::time::sleep_until(turn_ends.unwrap_or_else(Instant::now)), if turn_ends.is_some() => {}
            }
        }
    }

    /// Closes the connection that has waited longest for its client, if any.
    pub(super) fn close_longest_waiting(&self) {
        self.0.state().close_longest_waiting(|_, _| true);
    }

    fn admit(&self, state: &mut State, first_step: Duration) -> Arc<ConnectionSlot> {
        let (id, order) = (state.take_next(), state.take_next());
        let (deadline, deadlines) = watch::channel(Some(Instant::now() + first_step));
        let started = Instant::now();
        state.slots.insert(
            id,
            Entry {
                waits_since: Some(order),
                started,
                buffered: 0,
                closing: false,
                deadline,
            },
        );
        Arc::new(ConnectionSlot {
            id,
            shared: Arc::clone(&self.0),
            deadlines,
        })
    }

    /// Returns the number of open connections, and the bytes that they buffer.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        let state = self.0.state();
        (state.slots.len(), state.buffered)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Closes the connection that has waited longest for its client, among those that `eligible` accepts by id and
    /// entry.
    fn close_longest_waiting(&mut self, eligible: impl Fn(u64, &Entry) -> bool) {
        let waiting = self
            .slots
            .iter_mut()
            .filter(|(id, entry)| !entry.closing && eligible(**id, entry));
        let oldest = waiting.filter_map(|(_, entry)| entry.waits_since.map(|since| (since, entry)));
        if let Some((_, entry)) = oldest.min_by_key(|(since, _)| *since) {
            entry.closing = true;
            entry.deadline.send_replace(Some(Instant::now()));
        }
    }

    /// Returns the time at which the next waiting connection may be closed to make room.
    fn next_turn_ends(&self, now: Instant) -> Option<Instant> {
        let waiting = self
            .slots
            .values()
            .filter(|entry| entry.waits_since.is_some() && !entry.closing);
        waiting
            .map(|entry| entry.started + TIME_SLICE)
            .filter(|ends| *ends > now)
            .min()
    }

    /// Returns the number of bytes that closing connections will free.
    fn becoming_free(&self) -> usize {
        self.slots
            .values()
            .filter(|entry| entry.closing)
            .map(|entry| entry.buffered)
            .sum()
    }
}

/// Slot of one open connection. Dropping it frees the slot.
pub(super) struct ConnectionSlot {
    id: u64,
    shared: Arc<Shared>,
    deadlines: watch::Receiver<Option<Instant>>,
}

impl ConnectionSlot {
    /// Returns the limits of the endpoint.
    pub(super) fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// Starts a step of the client with a time limit.
    pub(super) fn wait(&self, limit: Duration) {
        let mut state = self.shared.state();
        let order = state.take_next();
        if let Some(entry) = state.slots.get_mut(&self.id).filter(|entry| !entry.closing) {
            entry.waits_since = Some(order);
            entry.started = Instant::now();
            entry.deadline.send_replace(Some(entry.started + limit));
        }
        drop(state);
        // The connection may now be closed to make room.
        self.shared.freed.notify_waiters();
    }

    /// Starts a step of the server, without a deadline.
    pub(super) fn work(&self) {
        self.stream(None);
    }

    /// Starts a response that lasts for a limited time, or without a deadline.
    pub(super) fn stream(&self, limit: Option<Duration>) {
        let mut state = self.shared.state();
        if let Some(entry) = state.slots.get_mut(&self.id).filter(|entry| !entry.closing) {
            entry.waits_since = None;
            entry
                .deadline
                .send_replace(limit.and_then(|limit| Instant::now().checked_add(limit)));
        }
    }

    /// Reserves bytes for the body of the request. If too many are in use, closes the connections that have waited
    /// longest for the rest of a body; if all bodies are complete, waits for a response to one.
    pub(super) async fn buffer(&self, bytes: usize) {
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            {
                let mut state = self.shared.state();
                let lacking = (state.buffered + bytes).saturating_sub(self.shared.limits.buffered_bytes);
                if lacking == 0 {
                    if let Some(entry) = state.slots.get_mut(&self.id) {
                        entry.buffered += bytes;
                        state.buffered += bytes;
                    }
                    return;
                }
                if state.becoming_free() < lacking {
                    state.close_longest_waiting(|id, entry| id != self.id && entry.buffered > 0);
                }
            }
            freed.await;
        }
    }

    /// Releases the bytes of the request.
    pub(super) fn release(&self) {
        let mut state = self.shared.state();
        if let Some(entry) = state.slots.get_mut(&self.id) {
            let buffered = std::mem::take(&mut entry.buffered);
            state.buffered -= buffered;
        }
        drop(state);
        self.shared.freed.notify_waiters();
    }

    /// Runs the connection until it ends or misses a deadline.
    pub(super) async fn within_deadlines(&self, connection: impl Future<Output = ()>) {
        let (mut connection, mut deadlines) = (pin!(connection), self.deadlines.clone());
        loop {
            let deadline = *deadlines.borrow_and_update();
            let missed = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut connection => return,
                () = missed => return,
                Ok(()) = deadlines.changed() => {}
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(entry) = state.slots.remove(&self.id) {
            state.buffered -= entry.buffered;
        }
        drop(state);
        self.shared.freed.notify_waiters();
    }
}
