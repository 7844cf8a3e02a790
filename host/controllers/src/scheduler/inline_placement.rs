//! Inline placement: computes the new placement as part of the eviction write.
//!
//! Karmada writes the eviction, receives it from the watch, and then writes the new placement. If one process does
//! both, one write suffices: the API server has half as many writes to handle, and no workload is without a place in
//! between.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::decide::schedule::Outcome;
use bulkhead_core::model::{BindingSpec, TargetCluster};
use serde_json::Value;
use tokio::time::Instant;

use super::decide::Recorded;
use super::{NAME, Scheduler, apply, is_one_at_a_time, triggers};
use crate::binding_kind::Binding;
use crate::controller::Error;
use crate::metrics::Ending;
use crate::store::Key;

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

    /// Adds the new placement to a patch that gives a binding another spec. Adds its records to those that depend on
    /// the patch.
    pub(crate) async fn add_placement<B: Binding>(
        &self,
        binding: &B,
        spec: &BindingSpec,
        patch: &mut Value,
        records: &mut Vec<u64>,
    ) -> Option<InlinePlacement<B>> {
        let inline = self.place_inline(binding, spec).await?;
        apply::put_result(patch, &inline.targets, &inline.placement);
        apply::put_displaced(patch, spec, &inline.recorded.plan);
        records.extend(&inline.recorded.records);
        Some(inline)
    }

    /// Computes the placement of a binding that gets another spec. Returns `None` if this process is not responsible,
    /// if the placement stays the same, or if estimators or other writes have to be waited for. The scheduler then
    /// decides when it receives the new spec.
    async fn place_inline<B: Binding>(&self, binding: &B, spec: &BindingSpec) -> Option<InlinePlacement<B>> {
        let scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        let (context, started) = (&scheduler.context, Instant::now());
        if context.estimators.is_some() || is_one_at_a_time(&context.flags) {
            return None;
        }
        let mut next = Box::new(binding.clone());
        *next.spec_mut() = spec.clone();
        // Generation that the API server will set.
        next.meta_mut().generation = binding.meta().generation.map(|generation| generation + 1);
        if next.meta().deletion_timestamp.is_some() || !triggers::is_responsible(&*next, &context.flags.scheduler_name)
        {
            return None;
        }
        if let Some(fields) = context.pending_status.get(&Key::of(binding)) {
            fields.merge_into(next.status_mut());
        }
        let attempt = scheduler.attempt(Arc::new(next.to_model()))?;
        let planned = attempt.decide_within(INLINE_TIME_MAX, &scheduler).await?;
        let Outcome::Place(targets) = &planned.plan().outcome else { return None };
        if *targets == spec.clusters {
            return None;
        }
        let (targets, placement) = (targets.clone(), apply::placement_text(&*next).ok()?);
        let recorded = planned.record(context, &*next);
        Some(InlinePlacement { scheduler: Arc::clone(&scheduler), next, targets, placement, recorded, started })
    }
}

/// Placement that is recorded and not written yet.
pub(crate) struct InlinePlacement<B> {
    scheduler: Arc<Scheduler>,
    /// Binding with its new spec, without the new placement.
    next: Box<B>,
    targets: Vec<TargetCluster>,
    placement: String,
    recorded: Recorded,
    started: Instant,
}

impl<B: Binding> InlinePlacement<B> {
    /// Concludes the placement after its write succeeded or failed. It is part of the eviction, which has a rate of
    /// its own: the scheduler's write budget does not apply, so that evictions never queue behind schedulings.
    pub(crate) async fn written(self, written: Result<&B, &Error>) {
        let Self { scheduler, next, recorded, started, .. } = self;
        let metrics = &scheduler.context.metrics.scheduler;
        metrics.attempted(recorded.trigger, Ending::of(&written), started.elapsed());
        let Ok(written) = written else { return };
        if let Err(error) = apply::conclude(&scheduler, &*next, &recorded, Ok(written), None).await {
            scheduler.context.failures.count(NAME, &error);
        }
    }
}
