//! Evictions: new targets, eviction tasks and the new placement of a binding, in one write.
//!
//! Karmada writes the eviction, receives it from the watch, and then writes the new placement. If one process does
//! both, one write suffices: the API server has half as many writes to handle, and no workload is without a place in
//! between. [`Evictions::write`] makes the write of an eviction, with the patch of [`patch`](super::patch).

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::decide::schedule::Outcome;
use bulkhead_core::model::{BindingSpec, TargetCluster};
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::object_lock::ObjectLock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::patch::{NewPlacement, patch};
use super::recorded::Recorded;
use super::{NAME, Scheduler, apply, is_one_at_a_time, triggers};
use crate::binding_kind::{Binding, Bindings};
use crate::decision_log::{DecisionLog, RecordedDecision};
use crate::eviction_trace;
use crate::metrics::Ending;

/// Writer of evictions.
#[derive(Clone)]
pub(crate) struct Evictions {
    pub(crate) bindings: Bindings,
    pub(crate) log: DecisionLog,
    pub(crate) clock: Clock,
    /// Scheduler of this process, which computes the new placements.
    pub(crate) scheduler: Arc<RunningScheduler>,
}

/// Eviction to be written.
pub(crate) struct Eviction<'a> {
    /// Spec of the binding without its new placement; `None` if only annotations change.
    pub(crate) spec: Option<&'a BindingSpec>,
    /// Annotations to be set; null removes one.
    pub(crate) annotations: Vec<(&'static str, Value)>,
    /// Records of the eviction, which depend on the write.
    pub(crate) records: Vec<RecordedDecision>,
    pub(crate) precondition: Precondition,
    /// Operation of errors.
    pub(crate) operation: String,
}

/// Precondition of an eviction.
pub(crate) enum Precondition {
    /// Nothing changed since the binding was read: the eviction rests on its status.
    Unchanged,
    /// Nothing but the status changed, and the caller holds the lock of the binding. The task of this cluster gets the
    /// time of the write, because the placement may have waited for slow plugins, and the grace period does not include
    /// that.
    Locked(ObjectLock, String),
}

impl Evictions {
    /// Writes targets and eviction tasks in one patch, with the new placement if this process computes it. The write
    /// fails if its precondition does not hold: a lost update would bring a copy back, or lose a task (Karmada issues
    /// 7290 and 7302). `emit` gets the outcome of the write and emits the events about it.
    pub(crate) async fn write<B: Binding>(
        &self,
        binding: &B,
        eviction: Eviction<'_>,
        emit: impl FnOnce(Option<&kube::Error>) + Send,
    ) -> Result<(), Error> {
        let Eviction {
            spec,
            annotations,
            mut records,
            precondition,
            operation,
        } = eviction;
        let inline = match spec {
            Some(spec) => self.scheduler.place_inline(binding, spec).await,
            None => None,
        };
        let placement = inline.as_ref().map(InlinePlacement::placement);
        let mut patch = patch(binding.spec(), spec, placement.as_ref());
        for (name, value) in annotations {
            patch["metadata"]["annotations"][name] = value;
        }
        records.extend(inline.iter().flat_map(|inline| inline.recorded.records.iter().cloned()));
        if let Precondition::Locked(_, cluster) = &precondition {
            stamp(&mut patch, cluster, self.clock.now());
        }
        self.log.sign(&mut patch, &records);
        let writer = B::writer(&self.bindings, binding);
        let written = async {
            let written = match precondition {
                Precondition::Unchanged => writer.patch_if_unchanged(binding, patch).await,
                Precondition::Locked(lock, _) => writer.patch_locked(lock, binding, patch).await,
            };
            emit(written.as_ref().err());
            written.map_err(Error::api(operation))
        };
        let written = Box::pin(self.log.apply(&records, written)).await;
        if let Ok(written) = &written {
            eviction_trace::began(binding, written);
        }
        if let Some(inline) = inline {
            Box::pin(inline.written(written.as_deref())).await;
        }
        written.map(drop)
    }
}

/// Sets the creation time of the task for a cluster.
fn stamp(patch: &mut Value, cluster: &str, now: Time) {
    let tasks = patch
        .pointer_mut("/spec/gracefulEvictionTasks")
        .and_then(Value::as_array_mut);
    let task = tasks.into_iter().flatten().find(|task| task["fromCluster"] == cluster);
    if let Some(task) = task {
        task["creationTimestamp"] = json!(now.truncated());
    }
}

/// Time for which an eviction waits for filter and score plugins. After that it is written without a placement, and
/// the scheduler computes one. While the write of an eviction takes more than a second, no new eviction starts.
const INLINE_TIME_MAX: Duration = Duration::from_millis(500);

/// Scheduler of this process, while it runs.
#[derive(Default)]
pub struct RunningScheduler(Mutex<Weak<Scheduler>>);

impl RunningScheduler {
    /// Registers the running scheduler.
    pub(super) fn started(&self, scheduler: &Arc<Scheduler>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(scheduler);
    }

    /// Computes the placement of a binding that gets another spec. Returns `None` if this process is not responsible,
    /// if the placement stays the same, or if estimators or other writes have to be waited for. The scheduler then
    /// decides when it receives the new spec.
    async fn place_inline<B: Binding>(&self, binding: &B, spec: &BindingSpec) -> Option<InlinePlacement<B>> {
        let scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        let (deps, started) = (&scheduler.deps, Instant::now());
        if deps.estimators.is_some() || is_one_at_a_time(&deps.flags) {
            return None;
        }
        let mut next = Box::new(binding.clone());
        *next.spec_mut() = spec.clone();
        // Generation that the API server will set.
        next.meta_mut().generation = binding.meta().generation.map(|generation| generation + 1);
        if next.meta().deletion_timestamp.is_some() || !triggers::is_responsible(&*next, &deps.flags.scheduler_name) {
            return None;
        }
        if let Some(fields) = deps.pending_status.get(&Key::of(binding)) {
            fields.merge_into(next.status_mut());
        }
        let attempt = scheduler.attempt(Arc::new(next.to_model()))?;
        let planned = attempt.decide_within(INLINE_TIME_MAX, &scheduler).await?;
        let Outcome::Place(targets) = &planned.plan().outcome else {
            return None;
        };
        if *targets == spec.clusters {
            return None;
        }
        let (targets, placement) = (targets.clone(), apply::placement_text(&*next).ok()?);
        let recorded = planned.record(deps, &*next);
        Some(InlinePlacement {
            scheduler: Arc::clone(&scheduler),
            next,
            targets,
            placement,
            recorded,
            started,
        })
    }
}

/// Placement that is recorded and not written yet.
struct InlinePlacement<B> {
    scheduler: Arc<Scheduler>,
    /// Binding with its new spec, without the new placement.
    next: Box<B>,
    targets: Vec<TargetCluster>,
    placement: String,
    recorded: Recorded,
    started: Instant,
}

impl<B: Binding> InlinePlacement<B> {
    /// Returns the part of the placement that the patch applies.
    fn placement(&self) -> NewPlacement<'_> {
        NewPlacement {
            targets: &self.targets,
            applied: &self.placement,
            displaced: &self.recorded.plan.displaced,
        }
    }

    /// Concludes the placement after its write succeeded or failed. It is part of the eviction, which has a rate of
    /// its own: the scheduler's write budget does not apply, so that evictions never queue behind schedulings.
    async fn written(self, written: Result<&B, &Error>) {
        let Self {
            scheduler,
            next,
            recorded,
            started,
            ..
        } = self;
        let metrics = &scheduler.deps.metrics.scheduler;
        metrics.attempted(recorded.trigger, Ending::of(&written), started.elapsed());
        let Ok(written) = written else { return };
        if let Err(error) = apply::conclude(&scheduler, &*next, &recorded, Ok(written), None).await {
            scheduler.deps.failures.count(NAME, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_the_cluster_gets_the_time_of_the_write() {
        let mut patch = json!({"spec": {"gracefulEvictionTasks": [{"fromCluster": "m1"}, {"fromCluster": "m2"}]}});
        stamp(&mut patch, "m2", Time::from_millis(1_500));
        let created = |index: usize| patch["spec"]["gracefulEvictionTasks"][index]["creationTimestamp"].clone();
        assert_eq!((created(0), created(1)), (Value::Null, json!("1970-01-01T00:00:01Z")));
    }
}
