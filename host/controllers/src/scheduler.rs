//! Binding → target clusters (Karmada: `pkg/scheduler`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::{AnyBinding, Cluster};
use bulkhead_core::combine::Because;
use bulkhead_core::decide::affinity;
use bulkhead_core::decide::schedule::{self, ScheduleError, SchedulePlan, SchedulingSnapshot};
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{self, TargetCluster, set_condition};
use bulkhead_core::names::keys;
use kube::ResourceExt;
use serde_json::json;

use crate::binding_kind::{self, Binding, Reconcile};
use crate::context::{Context, Record, about, input, subject};
use crate::controller::{self, Action, Error};
use crate::events::EventType;
use crate::queue::WorkQueue;
use crate::store::{Change, Key};
use crate::write::{patch_if_unchanged, update_status};

const NAME: &str = "scheduler";
/// Karmada schedules one binding at a time, and so decisions never race each other.
const WORKERS: usize = 1;
/// Retries of what could not be scheduled (Karmada: `backoffQ`).
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

struct Scheduler {
    context: Context,
    clusters: Arc<ClusterModels>,
}

/// The clusters as decisions see them, converted once per change and shared.
#[derive(Default)]
struct ClusterModels(Mutex<BTreeMap<String, Arc<model::Cluster>>>);

impl ClusterModels {
    fn apply(&self, change: &Change<'_, Cluster>) {
        let mut clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Deleted(cluster) => drop(clusters.remove(&cluster.name_any())),
            Change::Added(_) | Change::Updated { .. } => {
                clusters.insert(change.object().name_any(), Arc::new(change.object().to_model()));
            }
        }
    }

    fn snapshot(&self) -> Vec<Arc<model::Cluster>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Runs the scheduler, for ever.
pub(crate) async fn run(context: Context) {
    let queue = Arc::new(WorkQueue::with_backoff(BACKOFF.0, BACKOFF.1));
    let clusters = Arc::new(ClusterModels::default());
    let models = Arc::clone(&clusters);
    let _models = context.stores.clusters.subscribe(move |change| models.apply(change));
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
    let scheduler = Arc::new(Scheduler { context: context.clone(), clusters });
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
    if let Some(terms) = placement.cluster_affinities.as_deref().filter(|terms| !terms.is_empty()) {
        let observed = terms.iter().find(|term| term.affinity_name == status.scheduler_observed_affinity_name);
        return Some(status.scheduler_observed_generation) != binding.meta().generation
            || affinity::matches(&observed.unwrap_or(&terms[0]).affinity, cluster);
    }
    placement.cluster_affinity.as_ref().is_none_or(|affinity| affinity::matches(affinity, cluster))
}

impl Reconcile for Scheduler {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(&key) else { return Ok(Action::Wait) };
        if binding.meta().deletion_timestamp.is_some() {
            return Ok(Action::Wait);
        }
        let (snapshot, clusters) = (binding.to_model(), self.clusters.snapshot());
        let Some(placement) = &snapshot.spec.placement else {
            return Err(Error::Undecided(format!("{} {key} has no placement", B::kind(&()))));
        };
        let Some(trigger) = schedule::trigger(&snapshot, placement, &clusters) else {
            return self.note_observed(&*binding).await;
        };
        let now = context.clock.now();
        let policies = context.policies();
        let plan = schedule::decide(SchedulingSnapshot { binding: &snapshot, clusters: &clusters, now }, &policies);
        context.record_remarks(NAME, &subject(&*binding), None, &plan.remarks);
        match &plan.result {
            Ok(targets) => self.place(&*binding, targets, &plan, trigger.describe()).await,
            Err(error) => self.give_up(&*binding, error, &plan).await,
        }
    }
}

impl Scheduler {
    /// Nothing to schedule: the scheduler has seen this generation through.
    async fn note_observed<B: Binding>(&self, binding: &B) -> Result<Action, Error> {
        let generation = binding.meta().generation.unwrap_or_default();
        let api = B::api(self.context.hub.clone(), &binding.namespace().unwrap_or_default());
        update_status(&api, binding, |binding| {
            let status = binding.status_mut();
            let changed = status.scheduler_observed_generation != generation;
            status.scheduler_observed_generation = generation;
            changed
        })
        .await?;
        Ok(Action::Wait)
    }

    async fn place<B: Binding>(
        &self,
        binding: &B,
        targets: &[TargetCluster],
        plan: &SchedulePlan,
        why: &str,
    ) -> Result<Action, Error> {
        let context = &self.context;
        let effect = describe(targets);
        let mut records = Vec::new();
        if binding.spec().clusters != targets {
            let rejected = plan.explanation.rejections();
            let message = if rejected.is_empty() { why.to_owned() } else { format!("{why}; not {rejected}") };
            records.push(context.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: None,
                decision: Decision::Scheduled,
                because: Because::rule("Success", message),
                effect: effect.clone(),
                inputs: vec![input(binding)],
            }));
        }
        let written = context.settle(&records, self.write_spec(binding, targets).await)?;
        let generation = binding.meta().generation.unwrap_or_default();
        let now = context.clock.now();
        let api = B::api(context.hub.clone(), &binding.namespace().unwrap_or_default());
        update_status(&api, &written, |binding| {
            let status = binding.status_mut();
            status.scheduler_observed_generation = generation;
            status.last_scheduled_time = Some(now.truncated());
            if let Some(name) = &plan.affinity_name {
                status.scheduler_observed_affinity_name.clone_from(name);
            }
            set_condition(&mut status.conditions, schedule::success_condition(now));
            true
        })
        .await?;
        if !records.is_empty() {
            let message = format!("Binding has been scheduled successfully. Result: {{{effect}}}");
            context.events.emit(NAME, about(binding), EventType::Normal, "ScheduleBindingSucceed", message);
        }
        Ok(Action::Wait)
    }

    /// Karmada clears the result when no cluster fits, and does not try again until something changes.
    async fn give_up<B: Binding>(
        &self,
        binding: &B,
        error: &ScheduleError,
        plan: &SchedulePlan,
    ) -> Result<Action, Error> {
        let context = &self.context;
        let condition = error.condition(context.clock.now());
        let news = !binding.status().conditions.iter().any(|there| {
            there.type_ == condition.type_ && (&there.reason, &there.message) == (&condition.reason, &condition.message)
        });
        let mut records = Vec::new();
        if news {
            records.push(context.record(Record {
                controller: NAME,
                subject: subject(binding),
                cluster: None,
                decision: Decision::NotScheduled,
                because: Because::rule(&condition.reason, &condition.message),
                effect: plan.explanation.affinity_name.clone(),
                inputs: vec![input(binding)],
            }));
            let message = condition.message.clone();
            context.events.emit(NAME, about(binding), EventType::Warning, "ScheduleBindingFailed", message);
        }
        let no_fit = matches!(error, ScheduleError::NoClusterFit(_));
        let written = if no_fit { self.write_spec(binding, &[]).await } else { Ok(binding.clone()) };
        let written = context.settle(&records, written)?;
        let api = B::api(context.hub.clone(), &binding.namespace().unwrap_or_default());
        update_status(&api, &written, |binding| set_condition(&mut binding.status_mut().conditions, condition.clone()))
            .await?;
        if no_fit { Ok(Action::Wait) } else { Err(Error::Undecided(error.to_string())) }
    }

    /// Writes result and applied placement together. Unlike Karmada's, the write is refused if the binding was
    /// written since: a decision made from an old binding must not undo an eviction.
    async fn write_spec<B: Binding>(&self, binding: &B, targets: &[TargetCluster]) -> Result<B, Error> {
        let operation = format!("scheduling {} {}", B::kind(&()), binding.name_any());
        let placement = serde_json::to_string(&binding.spec().placement)
            .map_err(|error| Error::Undecided(format!("{operation}: {error}")))?;
        let applied = binding.annotations().get(keys::APPLIED_PLACEMENT);
        if binding.spec().clusters == targets && applied == Some(&placement) {
            return Ok(binding.clone());
        }
        let clusters = if targets.is_empty() { json!(null) } else { json!(targets) };
        let patch = json!({
            "metadata": {"annotations": {keys::APPLIED_PLACEMENT: placement}},
            "spec": {"clusters": clusters},
        });
        let api = B::api(self.context.hub.clone(), &binding.namespace().unwrap_or_default());
        patch_if_unchanged(&api, binding, patch).await.map_err(Error::api(operation))
    }
}

/// `member1:1, member2:2`.
fn describe(targets: &[TargetCluster]) -> String {
    if targets.is_empty() {
        return "nowhere".to_owned();
    }
    targets.iter().map(|target| format!("{}:{}", target.name, target.replicas)).collect::<Vec<_>>().join(", ")
}
