//! Where a binding goes that is about to leave a cluster, decided before it leaves.
//!
//! Karmada writes that a binding leaves, hears of it, and writes where it goes. Where one process does both, both can
//! be one write: the API server has half of them to make, and no workload is nowhere in between.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::decide::schedule::Outcome;
use bulkhead_core::model::{BindingSpec, TargetCluster};
use serde_json::Value;
use tokio::time::Instant;

use super::decide::Decided;
use super::{NAME, Scheduler, apply, is_one_at_a_time, triggers};
use crate::binding_kind::Binding;
use crate::controller::Error;
use crate::metrics::Ending;
use crate::store::Key;

/// How long an eviction waits for filter and score plugins. After that it is written without a place, and the scheduler
/// finds one. Evictions whose write takes a second keep others from starting.
const AHEAD_TIME_MAX: Duration = Duration::from_millis(500);

/// The scheduler of this process, while there is one.
#[derive(Default)]
pub struct RunningScheduler(Mutex<Weak<Scheduler>>);

impl RunningScheduler {
    /// Notes that one runs.
    pub(super) fn started(&self, scheduler: &Arc<Scheduler>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(scheduler);
    }

    /// Adds to a patch by which a binding gets another spec where it goes then, and the records of that to those that
    /// depend on the patch.
    pub(crate) async fn put_place<B: Binding>(
        &self,
        binding: &B,
        spec: &BindingSpec,
        patch: &mut Value,
        records: &mut Vec<u64>,
    ) -> Option<Ahead<B>> {
        let ahead = self.look_ahead(binding, spec).await?;
        apply::put_result(patch, &ahead.targets, &ahead.placement);
        apply::put_displaced(patch, spec, &ahead.decided.plan);
        records.extend(&ahead.decided.records);
        Some(ahead)
    }

    /// Where a binding goes that gets another spec; none if that is not for this process to say, if it goes nowhere else, or
    /// if others have to be asked or waited for first. Then the scheduler decides when it hears of the new spec.
    async fn look_ahead<B: Binding>(&self, binding: &B, spec: &BindingSpec) -> Option<Ahead<B>> {
        let scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        let (context, started) = (&scheduler.context, Instant::now());
        if context.estimators.is_some() || is_one_at_a_time(&context.flags) {
            return None;
        }
        let mut next = Box::new(binding.clone());
        *next.spec_mut() = spec.clone();
        // What the API server will make of it.
        next.meta_mut().generation = binding.meta().generation.map(|generation| generation + 1);
        if next.meta().deletion_timestamp.is_some() || !triggers::is_responsible(&*next, &context.flags.scheduler_name)
        {
            return None;
        }
        if let Some(observation) = context.observations.get(&Key::of(binding)) {
            observation.put_into(next.status_mut());
        }
        let matter = scheduler.matter(Arc::new(next.to_model()))?;
        let undisclosed = matter.decide_within(AHEAD_TIME_MAX, &scheduler).await?;
        let Outcome::Place(targets) = &undisclosed.plan().outcome else { return None };
        if *targets == spec.clusters {
            return None;
        }
        let (targets, placement) = (targets.clone(), apply::placement_text(&*next).ok()?);
        let decided = undisclosed.record(context, &*next);
        Some(Ahead { scheduler: Arc::clone(&scheduler), next, targets, placement, decided, started })
    }
}

/// A place that is on record and not written yet.
pub(crate) struct Ahead<B> {
    scheduler: Arc<Scheduler>,
    /// The binding as it will be, but for its place.
    next: Box<B>,
    targets: Vec<TargetCluster>,
    placement: String,
    decided: Decided,
    started: Instant,
}

impl<B: Binding> Ahead<B> {
    /// What follows once it is written, or could not be. That is part of the eviction, whose pace is its own: the
    /// scheduler's budget of writes is not asked, so that evictions never queue behind schedulings.
    pub(crate) async fn written(self, written: Result<&B, &Error>) {
        let Self { scheduler, next, decided, started, .. } = self;
        let attempts = &scheduler.context.metrics.scheduler;
        attempts.attempted(decided.trigger, Ending::of(&written), started.elapsed());
        let Ok(written) = written else { return };
        if let Err(error) = apply::conclude(&scheduler, &*next, &decided, Ok(written), None).await {
            scheduler.context.failures.count(NAME, &error);
        }
    }
}
