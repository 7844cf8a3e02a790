//! Marks of evictions, from which an exporter of traces assembles one trace for each eviction.
//!
//! The parts of an eviction are reconciles of several controllers, and of several processes after a change of leader.
//! A mark names the eviction that the current reconcile is about: by the uid of the binding, the cluster and the
//! creation time of the task. Every process reads them off the binding, so all of them find the same trace.
//!
//! A mark is an event of `tracing` with level TRACE in the span of the reconcile. Without a subscriber that collects
//! traces it costs one atomic load.

use std::time::Duration;

use bulkhead_api::{AnyBinding, Cluster};
use bulkhead_core::model::{Condition, ConditionStatus, GracefulEvictionTask, Taint};
use bulkhead_core::names::keys;
use bulkhead_core::time::Time;
use bulkhead_runtime::key::Key;
use kube::ResourceExt as _;
use tracing::{Level, enabled, trace};

/// Target of the marks.
pub const TARGET: &str = "bulkhead::eviction";

/// Steps of an eviction, as the field `step` of a mark names them.
pub mod steps {
    /// An eviction left the queue. The mark has the cluster (`cluster`), the time in the queue (`waited_ms`), and if
    /// they are known: the time when the cluster was lost (`lost_ms`), the taint (`taint`), the time when it was
    /// added (`tainted_ms`) and the last decision about the cluster (`decision`). Times are milliseconds since 1970.
    pub const LEFT_QUEUE: &str = "left the queue";
    /// A task was written. The mark has the binding (`kind`, `object`, `uid`), the cluster (`cluster`), the creation
    /// time of the task (`created_ms`), its reason (`reason`) and its producer (`producer`), as all marks below.
    pub const BEGAN: &str = "began";
    /// A task was looked at.
    pub const UNDER_WAY: &str = "under way";
    /// A task ended with the release of the old copy.
    pub const RELEASED: &str = "released";
    /// A task ended, and the old copy stays.
    pub const CALLED_OFF: &str = "called off";
}

/// Returns true if an exporter collects marks.
fn is_on() -> bool {
    enabled!(target: TARGET, Level::TRACE)
}

/// Marks that an eviction left the queue. `taint` is the taint that causes it.
pub(crate) fn left_queue(name: &str, waited: Duration, cluster: Option<&Cluster>, taint: Option<&Taint>) {
    if !is_on() {
        return;
    }
    let ready = cluster.and_then(|cluster| Condition::find(&cluster.status.conditions, "Ready"));
    let lost = ready.filter(|ready| ready.status != ConditionStatus::True);
    let lost_ms = lost.and_then(|ready| ready.last_transition_time).map(Time::as_millis);
    let decision = cluster.and_then(|cluster| cluster.annotations().get(keys::DECISION).cloned());
    let tainted_ms = taint.and_then(|taint| taint.time_added).map(Time::as_millis);
    trace!(
        target: TARGET,
        step = steps::LEFT_QUEUE,
        cluster = name,
        waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        lost_ms,
        taint = taint.map(tracing::field::display),
        tainted_ms,
        decision,
    );
}

/// Marks the tasks that a write added to a binding.
pub(crate) fn began<B: AnyBinding>(before: &B, written: &B) {
    let known = &before.spec().graceful_eviction_tasks;
    let is_new = |task: &&GracefulEvictionTask| {
        !known
            .iter()
            .any(|known| known.from_cluster == task.from_cluster && known.creation_timestamp == task.creation_timestamp)
    };
    for task in written.spec().graceful_eviction_tasks.iter().filter(is_new) {
        mark(steps::BEGAN, written, task);
    }
}

/// Marks a step of a task. A task without a creation time has no trace yet.
pub(crate) fn mark<B: AnyBinding>(step: &'static str, binding: &B, task: &GracefulEvictionTask) {
    if !is_on() {
        return;
    }
    let (Some(created), Some(uid)) = (task.creation_timestamp, binding.uid()) else {
        return;
    };
    trace!(
        target: TARGET,
        step,
        kind = &*B::kind(&()),
        object = %Key::of(binding),
        uid,
        cluster = task.from_cluster,
        created_ms = created.as_millis(),
        reason = task.reason,
        producer = task.producer,
    );
}

#[cfg(test)]
mod tests;
