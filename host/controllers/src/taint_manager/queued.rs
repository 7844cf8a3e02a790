//! Evictions in the queue, for metrics and for people.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bulkhead_core::decide::eviction::QueuedState;
use bulkhead_runtime::queue::{Backlog, Observable};
use serde::{Deserialize, Serialize};

use super::{Cause, TaintManager};

/// Gate of an eviction that is not due yet: a toleration has not ended, a cluster became ready a moment ago, or an
/// attempt failed.
pub const NOT_DUE: &str = "NotDue";
/// Gate of an eviction that is due and waits for a slot of its rates.
pub const RATE: &str = "Rate";
/// Gate of an eviction that is being decided or written.
pub const IN_PROGRESS: &str = "InProgress";

/// Eviction in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedEviction {
    /// Kind of the binding.
    pub kind: String,
    /// Namespace of the binding; empty for a ClusterResourceBinding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the binding.
    pub name: String,
    /// Cluster that it leaves.
    pub cluster: String,
    /// True if the workload returns home, false if a taint or a drain evicts it.
    #[serde(default)]
    pub is_failback: bool,
    /// Closed gate: [`NOT_DUE`], [`RATE`], [`IN_PROGRESS`], or a reason of the record `EvictionsWait`.
    pub gate: String,
    /// Time in the queue, in milliseconds.
    pub waited_ms: u64,
    /// Time until the next check, in milliseconds; absent if there is none without a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_check_ms: Option<u64>,
}

/// Access to the queue of the running taint manager, if this process has one.
#[derive(Default)]
pub struct EvictionsQueued(Mutex<Weak<TaintManager>>);

impl EvictionsQueued {
    /// Registers the running taint manager.
    pub(super) fn started(&self, manager: &Arc<TaintManager>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(manager);
    }

    /// Returns the queued evictions, those that wait longest first. `None` if no taint manager runs in this process.
    pub fn list(&self) -> Option<Vec<QueuedEviction>> {
        let manager = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        let mut queued = manager.queued();
        queued.sort_by_key(|eviction| std::cmp::Reverse(eviction.waited_ms));
        Some(queued)
    }
}

impl TaintManager {
    fn queued(&self) -> Vec<QueuedEviction> {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (queue, now) = (self.queue(), self.now());
        let items = queue.view(now, |cluster| self.clusters.limit(cluster));
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let one = |item: &bulkhead_core::decide::eviction::QueuedItem<'_, super::Eviction>| {
            let (gate, next_check) = match item.state {
                QueuedState::Delayed(left) => (waits.get(item.key).map_or(NOT_DUE, String::as_str), Some(left)),
                QueuedState::Ready(opens) => (RATE, opens),
                QueuedState::Taken => (IN_PROGRESS, None),
            };
            QueuedEviction {
                kind: item.key.binding_kind().to_owned(),
                namespace: item.key.binding.namespace.clone(),
                name: item.key.binding.name.clone(),
                cluster: item.cluster.to_owned(),
                is_failback: item.key.cause == Cause::Failback,
                gate: gate.to_owned(),
                waited_ms: millis(item.waited),
                next_check_ms: next_check.map(millis),
            }
        };
        items.iter().map(one).collect()
    }
}

impl Observable for TaintManager {
    fn backlog(&self) -> Backlog {
        let (queue, now) = (self.queue(), self.now());
        let ready = queue.ready();
        let waited = ready.iter().filter_map(|eviction| queue.waited(eviction, now));
        Backlog {
            depth: ready.len(),
            oldest: waited.max().unwrap_or_default(),
        }
    }
}
