//! Binding → target clusters (Karmada: `pkg/scheduler`).
//!
//! Which changes bring which bindings here is below; what a decision needs besides its binding is in [`inputs`],
//! what becomes of it in [`apply`]. The decision itself is `bulkhead_core::decide::schedule`.

mod apply;
mod inputs;

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::AnyBinding;
use bulkhead_core::decide::affinity;
use bulkhead_core::decide::schedule::{self, Outcome, SchedulingSnapshot};
use bulkhead_core::model;
use bulkhead_core::names::keys;
use kube::ResourceExt;

use crate::binding_kind::{self, Binding, Reconcile};
use crate::context::{Context, subject};
use crate::controller::{self, Action, Error};
use crate::queue::WorkQueue;
use crate::store::{Change, Key};
use inputs::Known;

const NAME: &str = "scheduler";
/// Karmada schedules one binding at a time, and so decisions never race each other.
const WORKERS: usize = 1;
/// Retries of what could not be scheduled (Karmada: `backoffQ`).
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

struct Scheduler {
    context: Context,
    known: Arc<Known>,
}

/// Runs the scheduler, for ever.
pub(crate) async fn run(context: Context) {
    let queue = Arc::new(WorkQueue::with_backoff(BACKOFF.0, BACKOFF.1));
    let known = Arc::new(Known::default());
    let _known = known.subscribe(&context);
    let names = [context.flags.scheduler_name.clone(), context.flags.scheduler_name.clone()];
    let [name, cluster_name] = names;
    let _bindings = binding_kind::subscribe(
        &context,
        &queue,
        move |change| change.is_generation_change() && is_responsible(change.object(), &name),
        move |change| change.is_generation_change() && is_responsible(change.object(), &cluster_name),
    );
    let (affected, bindings) = (Arc::clone(&queue), context.clone());
    let _clusters = context.stores.clusters.subscribe(move |change| {
        if let Change::Updated { old, new } = change {
            let terminating = old.metadata.deletion_timestamp.is_none() && new.metadata.deletion_timestamp.is_some();
            if terminating || old.labels() != new.labels() || old.metadata.generation != new.metadata.generation {
                enqueue_affected(&bindings, &affected, &[old.to_model(), new.to_model()]);
            }
        }
    });
    let scheduler = Arc::new(Scheduler { context: context.clone(), known });
    let reconcile = move |key| {
        let scheduler = Arc::clone(&scheduler);
        async move { binding_kind::dispatch(&*scheduler, key).await }
    };
    controller::run(queue, WORKERS, reconcile, context.failed(NAME)).await;
}

/// Whether a binding is this scheduler's, not suspended, and managed by a policy or another manager.
fn is_responsible<B: AnyBinding>(binding: &B, scheduler_name: &str) -> bool {
    let spec = binding.spec();
    let named = if spec.scheduler_name.is_empty() { "default-scheduler" } else { &spec.scheduler_name };
    let managed = [keys::PROPAGATION_POLICY_ID, keys::CLUSTER_PROPAGATION_POLICY_ID, keys::BINDING_MANAGED_BY]
        .into_iter()
        .any(|label| binding.labels().get(label).is_some_and(|value| !value.is_empty()));
    named == scheduler_name && !spec.scheduling_suspended() && managed
}

/// Karmada: `event_handler.go:enqueueAffectedBindings`.
fn enqueue_affected(context: &Context, queue: &WorkQueue<Key>, clusters: &[model::Cluster]) {
    fn enqueue<B: Binding>(context: &Context, queue: &WorkQueue<Key>, clusters: &[model::Cluster]) {
        for binding in B::store(&context.stores).list() {
            let responsible = is_responsible(&*binding, &context.flags.scheduler_name);
            if responsible && clusters.iter().any(|cluster| is_affected(&*binding, cluster)) {
                queue.add(Key::of(&*binding));
            }
        }
    }
    enqueue::<bulkhead_api::ResourceBinding>(context, queue, clusters);
    enqueue::<bulkhead_api::ClusterResourceBinding>(context, queue, clusters);
}

fn is_affected<B: AnyBinding>(binding: &B, cluster: &model::Cluster) -> bool {
    let Some(placement) = &binding.spec().placement else { return false };
    let status = binding.status();
    if let Some(terms) = &placement.cluster_affinities {
        let observed = terms.iter().find(|term| term.affinity_name == status.scheduler_observed_affinity_name);
        // In Karmada an empty list of groups brings the scheduler down here.
        let Some(term) = observed.or(terms.first()) else { return false };
        return Some(status.scheduler_observed_generation) != binding.meta().generation
            || affinity::matches(&term.affinity, cluster);
    }
    placement.cluster_affinity.as_ref().is_none_or(|affinity| affinity::matches(affinity, cluster))
}

impl Reconcile for Scheduler {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&key) else { return Ok(Action::Wait) };
        let model = binding.to_model();
        if model.deletion_timestamp.is_some() {
            apply::emit(context, &*binding, &schedule::deleting_event(&model));
            return Ok(Action::Wait);
        }
        let Some(placement) = &model.spec.placement else {
            return Err(Error::Undecided(format!("{} {key} has no placement", B::kind(&()))));
        };
        let now = context.clock.now();
        let (clusters, options) = (self.known.clusters(), inputs::options(&context.flags));
        let Some(trigger) = schedule::trigger(&model, placement, &clusters, &options) else {
            return apply::note_observed(context, &*binding).await;
        };
        let snapshot = SchedulingSnapshot {
            binding: &model,
            clusters: &clusters,
            peers: &self.known.peers(context, &model),
            accurate: None,
            assumed: &self.known.assumed(&options, now),
            options: &options,
            now,
        };
        let is_explained = context.explain.as_ref().is_some_and(|explained| *explained == model.key());
        let decide = if is_explained { schedule::decide_explained } else { schedule::decide };
        let plan = decide(snapshot, &inputs::policies(context));
        context.record_remarks(NAME, &subject(&*binding), None, &plan.remarks);
        let action = apply::apply(context, &self.known, &*binding, &plan, trigger).await?;
        let block_ends = schedule::blocked_until(&model, now).into_iter().filter_map(|(_, until)| until).min();
        Ok(match (&plan.outcome, block_ends) {
            // Nothing else would bring the binding back when a cluster that it left is open to it again.
            (Outcome::Clear(_), Some(until)) => sooner(action, until.millis_since(now)),
            _ => action,
        })
    }
}

/// The action, but no later than after that many milliseconds.
fn sooner(action: Action, ms: i64) -> Action {
    let latest = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    match action {
        Action::After(delay) => Action::After(delay.min(latest)),
        Action::Wait => Action::After(latest),
    }
}
