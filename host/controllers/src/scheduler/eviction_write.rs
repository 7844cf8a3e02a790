//! Evictions: new targets, eviction tasks and the new placement of a binding, in one write.
//!
//! Karmada writes the eviction, receives it from the watch, and then writes the new placement. If one process does
//! both, one write suffices: the API server has half as many writes to handle, and no workload is without a place in
//! between. [`patch`] builds every patch that evicts or places; [`Evictions::write`] makes the write of an eviction.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::decide::schedule::{EVICTION_HISTORY, Outcome};
use bulkhead_core::model::{BindingSpec, GracefulEvictionTask, TargetCluster};
use bulkhead_core::names::keys;
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::Error;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::object_lock::ObjectLock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::decide::Recorded;
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
            Box::pin(inline.written(written.as_ref())).await;
        }
        written.map(drop)
    }
}

/// Placement that a patch applies.
pub(super) struct NewPlacement<'a> {
    pub(super) targets: &'a [TargetCluster],
    /// Placement of the policy that the targets rest on, as text.
    pub(super) applied: &'a str,
    /// Tasks for copies that leave because of it.
    pub(super) displaced: &'a [GracefulEvictionTask],
}

/// Returns the merge patch of a write that evicts, places, or both. `evicted` is the spec after the eviction and before
/// the placement.
pub(super) fn patch(
    before: &BindingSpec,
    evicted: Option<&BindingSpec>,
    placement: Option<&NewPlacement<'_>>,
) -> Value {
    let mut patch = json!({});
    // A merge patch does not change an absent list, so an empty one is null.
    let list = |targets: &[TargetCluster]| {
        if targets.is_empty() {
            json!(null)
        } else {
            json!(targets)
        }
    };
    if let Some(spec) = evicted {
        patch["spec"] =
            json!({"clusters": list(&spec.clusters), "gracefulEvictionTasks": spec.graceful_eviction_tasks});
        if spec.reschedule_triggered_at != before.reschedule_triggered_at {
            patch["spec"]["rescheduleTriggeredAt"] = json!(spec.reschedule_triggered_at);
        }
        let history = spec.rest.get(EVICTION_HISTORY);
        if let Some(history) = history.filter(|history| before.rest.get(EVICTION_HISTORY) != Some(*history)) {
            patch["spec"][EVICTION_HISTORY] = history.clone();
        }
    }
    if let Some(NewPlacement {
        targets,
        applied,
        displaced,
    }) = placement
    {
        patch["metadata"]["annotations"][keys::APPLIED_PLACEMENT] = json!(applied);
        patch["spec"]["clusters"] = list(targets);
        if !displaced.is_empty() {
            let tasks = &evicted.unwrap_or(before).graceful_eviction_tasks;
            patch["spec"]["gracefulEvictionTasks"] = json!(tasks.iter().chain(*displaced).collect::<Vec<_>>());
        }
    }
    patch
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

    fn spec(spec: Value) -> BindingSpec {
        let mut whole = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        for (name, value) in spec.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    fn task(cluster: &str) -> Value {
        json!({"fromCluster": cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
    }

    /// Returns the value at a pointer of a patch, or null.
    fn at(patch: &Value, pointer: &str) -> Value {
        patch.pointer(pointer).cloned().unwrap_or_default()
    }

    #[test]
    fn an_eviction_and_its_placement_are_one_patch() {
        let before = spec(json!({"clusters": [{"name": "m1", "replicas": 2}]}));
        let evicted = spec(json!({"gracefulEvictionTasks": [task("m1")]}));
        let alone = patch(&before, Some(&evicted), None);
        assert_eq!(at(&alone, "/spec/gracefulEvictionTasks/0/fromCluster"), "m1");
        assert_eq!(
            alone["spec"].get("clusters"),
            Some(&Value::Null),
            "an empty list removes the targets"
        );
        let (targets, displaced) = (
            [TargetCluster::new("m2", 2)],
            spec(json!({"gracefulEvictionTasks": [task("m3")]})),
        );
        let displaced = &*displaced.graceful_eviction_tasks;
        let placement = NewPlacement {
            targets: &targets,
            applied: "{}",
            displaced,
        };
        let both = patch(&before, Some(&evicted), Some(&placement));
        assert_eq!(at(&both, "/spec/clusters"), json!([{"name": "m2", "replicas": 2}]));
        let from = |index: usize| at(&both, &format!("/spec/gracefulEvictionTasks/{index}/fromCluster"));
        assert_eq!((from(0), from(1)), (json!("m1"), json!("m3")));
        assert_eq!(both["metadata"]["annotations"][keys::APPLIED_PLACEMENT], "{}");
    }

    #[test]
    fn a_placement_without_an_eviction_leaves_the_tasks_alone() {
        let before = spec(json!({"gracefulEvictionTasks": [task("m1")]}));
        let placement = NewPlacement {
            targets: &[],
            applied: "{}",
            displaced: &[],
        };
        let patch = patch(&before, None, Some(&placement));
        assert_eq!(patch["spec"], json!({"clusters": null}));
    }

    #[test]
    fn history_and_reschedule_time_are_written_when_they_change() {
        let before = spec(json!({"rescheduleTriggeredAt": "2026-01-01T00:00:00Z", EVICTION_HISTORY: ["a"]}));
        let fields = |patch: &Value| patch["spec"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            fields(&patch(&before, Some(&before), None)),
            ["clusters", "gracefulEvictionTasks"]
        );
        let after = spec(json!({"rescheduleTriggeredAt": "2026-01-01T00:00:01Z", EVICTION_HISTORY: ["a", "b"]}));
        let expected = [
            EVICTION_HISTORY,
            "clusters",
            "gracefulEvictionTasks",
            "rescheduleTriggeredAt",
        ];
        assert_eq!(fields(&patch(&before, Some(&after), None)), expected);
    }

    #[test]
    fn the_task_of_the_cluster_gets_the_time_of_the_write() {
        let mut patch = json!({"spec": {"gracefulEvictionTasks": [task("m1"), task("m2")]}});
        stamp(&mut patch, "m2", Time::from_millis(1_500));
        let created = |index: usize| {
            at(
                &patch,
                &format!("/spec/gracefulEvictionTasks/{index}/creationTimestamp"),
            )
        };
        assert_eq!((created(0), created(1)), (Value::Null, json!("1970-01-01T00:00:01Z")));
    }
}
