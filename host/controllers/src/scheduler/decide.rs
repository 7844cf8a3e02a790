//! One decision: what it is made from, how it is made, and its record.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::call::{CallKind, Peer};
use bulkhead_core::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload};
use bulkhead_core::decide::schedule::{self, SchedulePlan, SchedulerOptions, SchedulingSnapshot, Trigger};
use bulkhead_core::journal::{Question, plan};
use bulkhead_core::model;
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;
use bulkhead_estimator::EstimatorPool;
use tokio::time::Instant;

use super::{NAME, Scheduler, apply, estimators, inputs};
use crate::binding_kind::Binding;
use crate::context::{Context, subject};
use crate::deliberation::{Asking, Basis};

/// A binding that has to be scheduled, and what is known at that moment.
pub(super) struct Matter {
    binding: Arc<model::Binding>,
    trigger: Trigger,
    clusters: Arc<ClusterSnapshot>,
    assumed: BTreeMap<String, Vec<AssumedWorkload>>,
    options: SchedulerOptions,
    now: Time,
}

/// A plan that nobody has heard of yet.
pub(super) struct Undisclosed {
    matter: Matter,
    peers: Vec<Peer>,
    accurate: Option<AccurateEstimates>,
    asking: Asking,
    plan: SchedulePlan,
}

/// A plan that is on record, and may be put into effect.
pub(super) struct Decided {
    pub(super) trigger: Trigger,
    pub(super) plan: SchedulePlan,
    /// What depends on its being put into effect.
    pub(super) records: Vec<u64>,
}

impl Scheduler {
    /// What there is to decide about a binding; none if nothing calls for it.
    pub(super) fn matter(&self, binding: Arc<model::Binding>) -> Option<Matter> {
        let context = &self.context;
        let (now, clusters, options) = (context.clock.now(), self.known.clusters(), inputs::options(&context.flags));
        let trigger = schedule::trigger(&binding, binding.spec.placement.as_ref()?, &clusters, &options)?;
        let assumed = self.known.assumed(&options, now);
        Some(Matter { binding, trigger, clusters, assumed, options, now })
    }
}

impl Matter {
    /// The time that is reasoned with.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// What accurate estimators say, if there are any.
    pub(super) async fn ask(&self, pool: Option<&EstimatorPool>) -> Option<AccurateEstimates> {
        let Self { binding, clusters, options, assumed, .. } = self;
        estimators::ask(pool, binding, binding.spec.placement.as_ref()?, clusters, options, assumed).await
    }

    /// Decides.
    pub(super) fn decide(self, scheduler: &Scheduler, accurate: Option<AccurateEstimates>) -> Undisclosed {
        let context = &scheduler.context;
        let peers = scheduler.known.peers(context, &self.binding);
        let asking = context.asking(Arc::new(inputs::policies(context)), &[CallKind::Filter, CallKind::Score]);
        let snapshot = SchedulingSnapshot {
            binding: &self.binding,
            clusters: &self.clusters,
            peers: &peers,
            accurate: accurate.as_ref(),
            assumed: &self.assumed,
            options: &self.options,
            now: self.now,
        };
        let is_explained = context.explain.as_ref().is_some_and(|explained| *explained == self.binding.key());
        let decide = if is_explained { schedule::decide_explained } else { schedule::decide };
        let deciding = Instant::now();
        let plan = decide(snapshot, asking.policies());
        context.metrics.scheduler.decided(deciding.elapsed());
        Undisclosed { matter: self, peers, accurate, asking, plan }
    }
}

impl Undisclosed {
    /// The plan.
    pub(super) fn plan(&self) -> &SchedulePlan {
        &self.plan
    }

    /// Records the plan, unless all of it was said before, and the faults of plugins on the way to it.
    pub(super) fn record<B: Binding>(self, context: &Context, binding: &B) -> Decided {
        let Self { matter, peers, accurate, asking, plan } = self;
        let Matter { binding: model, trigger, clusters, assumed, options, now } = matter;
        context.record_remarks(NAME, &subject(binding), None, &plan.remarks);
        let basis = || Basis {
            trigger: trigger.describe(),
            now,
            question: Question::Schedule { binding: model, peers, accurate, assumed, options },
            clusters: clusters.clusters().to_vec(),
            plan: plan::schedule(&plan),
        };
        let records = apply::record(context, binding, &plan, trigger, || asking.case(basis));
        Decided { trigger, plan, records }
    }
}
