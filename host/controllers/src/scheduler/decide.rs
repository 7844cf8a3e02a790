//! One decision: its inputs, its computation and its record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::call::{CallKind, Peer};
use bulkhead_core::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload};
use bulkhead_core::decide::schedule::{self, SchedulePlan, SchedulerOptions, SchedulingSnapshot, Trigger};
use bulkhead_core::journal::{DecisionInput, plan};
use bulkhead_core::model;
use bulkhead_core::policy::PolicySet;
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_estimator::EstimatorPool;
use tokio::time::Instant;

use super::recorded::{self, Recorded};
use super::{Dependencies, NAME, Scheduler, estimators, inputs};
use crate::binding_kind::Binding;
use crate::decision_recorder::{DecisionInputs, DecisionRecorder};
use crate::subjects::subject;

/// Kinds of calls that scheduling makes.
const KINDS: [CallKind; 2] = [CallKind::Filter, CallKind::Score];

/// Attempt to schedule a binding, with the inputs at that moment.
#[derive(Clone)]
pub(super) struct Attempt {
    binding: Arc<model::Binding>,
    trigger: Trigger,
    clusters: Arc<ClusterSnapshot>,
    assumed: BTreeMap<String, Vec<AssumedWorkload>>,
    options: SchedulerOptions,
    now: Time,
}

/// Inputs of a plan, except for the policies.
#[derive(Clone)]
struct Inputs {
    attempt: Attempt,
    peers: Vec<Peer>,
    accurate: Option<AccurateEstimates>,
}

/// Plan that is not recorded yet.
pub(super) struct Planned {
    inputs: Arc<Inputs>,
    recorder: DecisionRecorder,
    plan: SchedulePlan,
}

impl Scheduler {
    /// Prepares a decision about a binding. Returns `None` if there is no reason for one.
    pub(super) fn attempt(&self, binding: Arc<model::Binding>) -> Option<Attempt> {
        let deps = &self.deps;
        let (now, clusters, options) = (deps.clock.now(), self.cache.clusters(), inputs::options(&deps.flags));
        let trigger = schedule::trigger(&binding, binding.spec.placement.as_ref()?, &clusters, &options)?;
        let assumed = self.cache.assumed(&options, now);
        Some(Attempt {
            binding,
            trigger,
            clusters,
            assumed,
            options,
            now,
        })
    }
}

impl Attempt {
    /// Returns the time of the decision.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Queries the accurate estimators, if there are any.
    pub(super) async fn ask(&self, pool: Option<&EstimatorPool>) -> Option<AccurateEstimates> {
        let Self {
            binding,
            clusters,
            options,
            assumed,
            ..
        } = self;
        estimators::ask(
            pool,
            binding,
            binding.spec.placement.as_ref()?,
            clusters,
            options,
            assumed,
        )
        .await
    }

    /// Makes the decision.
    pub(super) async fn decide(self, scheduler: &Scheduler, accurate: Option<AccurateEstimates>) -> Planned {
        let deps = &scheduler.deps;
        let (inputs, policies, decide) = self.prepare(scheduler, accurate);
        let deciding = Instant::now();
        let (recorder, plan) = deps.decider.decide(NAME, policies, &KINDS, decide).await;
        deps.metrics.scheduler.decided(deciding.elapsed());
        Planned { inputs, recorder, plan }
    }

    /// Makes the decision. Returns `None` if it takes longer than `limit`.
    pub(super) async fn decide_within(self, limit: Duration, scheduler: &Scheduler) -> Option<Planned> {
        let deps = &scheduler.deps;
        let (inputs, policies, decide) = self.prepare(scheduler, None);
        let deciding = Instant::now();
        let (recorder, plan) = deps
            .decider
            .decide_within(limit, NAME, policies, &KINDS, decide)
            .await?;
        deps.metrics.scheduler.decided(deciding.elapsed());
        Some(Planned { inputs, recorder, plan })
    }

    /// Returns the inputs, the policies, and the decision as a function of the policies.
    fn prepare(
        self,
        scheduler: &Scheduler,
        accurate: Option<AccurateEstimates>,
    ) -> (
        Arc<Inputs>,
        Arc<PolicySet>,
        impl Fn(&PolicySet) -> SchedulePlan + Send + Sync + use<>,
    ) {
        let deps = &scheduler.deps;
        let peers = scheduler.cache.peers(deps, &self.binding);
        let is_explained = deps
            .explain
            .as_ref()
            .is_some_and(|explained| *explained == self.binding.key());
        let inputs = Arc::new(Inputs {
            attempt: self,
            peers,
            accurate,
        });
        let deciding = Arc::clone(&inputs);
        let decide = move |policies: &PolicySet| deciding.decide(is_explained, policies);
        (inputs, Arc::new(inputs::policies(deps)), decide)
    }
}

impl Inputs {
    fn decide(&self, is_explained: bool, policies: &PolicySet) -> SchedulePlan {
        let Self {
            attempt,
            peers,
            accurate,
        } = self;
        let snapshot = SchedulingSnapshot {
            binding: &attempt.binding,
            clusters: &attempt.clusters,
            peers,
            accurate: accurate.as_ref(),
            assumed: &attempt.assumed,
            options: &attempt.options,
            now: attempt.now,
        };
        let decide = if is_explained {
            schedule::decide_explained
        } else {
            schedule::decide
        };
        decide(snapshot, policies)
    }
}

impl Planned {
    /// Returns the plan.
    pub(super) fn plan(&self) -> &SchedulePlan {
        &self.plan
    }

    /// Records the plan, unless all of it was recorded before, and the plugin faults on the way to it.
    pub(super) fn record<B: Binding>(self, deps: &Dependencies, binding: &B) -> Recorded {
        let Self { inputs, recorder, plan } = self;
        // A thread that decided may still hold its reference for a moment.
        let Inputs {
            attempt,
            peers,
            accurate,
        } = Arc::unwrap_or_clone(inputs);
        let Attempt {
            binding: model,
            trigger,
            clusters,
            assumed,
            options,
            now,
        } = attempt;
        deps.log
            .record_diagnostics(NAME, &subject(binding), None, &plan.diagnostics);
        let decision_inputs = || DecisionInputs {
            trigger: trigger.describe(),
            now,
            input: DecisionInput::Schedule {
                binding: model,
                peers,
                accurate,
                assumed,
                options,
            },
            clusters: clusters.clusters().to_vec(),
            plan: plan::schedule(&plan),
        };
        let records = recorded::record(deps, binding, &plan, trigger, || recorder.finish(decision_inputs));
        Recorded { trigger, plan, records }
    }
}
