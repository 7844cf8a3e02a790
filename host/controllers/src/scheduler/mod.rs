//! Binding → target clusters (Karmada: `pkg/scheduler`).
//!
//! [`triggers`] maps changes to bindings, [`queue`] orders them, [`inputs`] holds the inputs of a decision besides
//! its binding, [`decide`] makes it, [`recorded`] records it, [`apply`] carries it out, and [`budget`] limits the rate
//! of writes.
//! [`estimators`] queries accurate estimators. [`eviction_write`] writes evictions, with placements that it computes
//! inline, and [`patch`] builds the patches of both. The decision itself is `bulkhead_core::decide::schedule`.
//!
//! Several workers take bindings from the queue, so that the writes of one overlap with the decisions about others. A
//! binding stays with its worker until its writes are done, so decisions about one binding are sequential.

mod apply;
mod budget;
mod decide;
mod estimators;
mod eviction_write;
mod inputs;
mod patch;
mod queue;
mod recorded;
mod triggers;

use std::sync::{Arc, Weak};
use std::time::Duration;

use bulkhead_api::{ClusterResourceBinding, ResourceBinding};
use bulkhead_core::decide::schedule::{self, Outcome, Retry};
use bulkhead_estimator::EstimatorPool;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{Action, Error, Observer as _, after_conflict};
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::{Change, Subscription};
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::binding_kind::{self, Binding, Bindings, Reconcile};
use crate::decision_log::DecisionLog;
use crate::evaluate::Decider;
use crate::flags::{FeatureGate, Flags};
use crate::metrics::{Ending, Incoming, Metrics};
use crate::pending_status::{PendingStatus, SchedulerFields};
use crate::stores::Stores;
pub use budget::{BudgetUsage, WriteBudget};
pub use estimators::estimator_pool;
pub use eviction_write::RunningScheduler;
pub(crate) use eviction_write::{Eviction, Evictions, Precondition};
use inputs::SchedulerCache;
pub(crate) use patch::{annotation, patch_of_ended_tasks};
use queue::{Requeue, SchedulingQueue};

const NAME: &str = "scheduler";
/// Maximum number of bindings with writes in flight. Karmada waits for each write before it decides again; eight
/// writes of 5 ms each fill the default budget of 40 writes per second many times over.
const IN_FLIGHT_MAX: usize = 8;

/// True if decisions depend on earlier results, so that every write has to be waited for.
fn is_one_at_a_time(flags: &Flags) -> bool {
    let remembers = [
        FeatureGate::SchedulingOvercommitProtection,
        FeatureGate::WorkloadAffinity,
    ];
    remembers.into_iter().any(|gate| flags.gate(gate))
}

type Queue = Arc<SchedulingQueue<Key>>;

/// Name of the active queue in metrics.
const ACTIVE_QUEUE: &str = "scheduler-active";

/// Time for which the scheduler's bookkeeping waits for another change of the status to be written with.
const BOOKKEEPING_DELAY: Duration = Duration::from_secs(10);
/// Time for which it waits during an eviction, which changes the status as it proceeds.
const BOOKKEEPING_DELAY_OF_EVICTIONS: Duration = Duration::from_mins(1);
/// Maximum number of bindings whose bookkeeping is written at the same time.
const BOOKKEEPING_WORKERS: usize = 2;

struct Scheduler {
    deps: Dependencies,
    cache: Arc<SchedulerCache>,
    budget: Arc<WriteBudget>,
    /// Bindings whose bookkeeping may need a write of its own.
    unwritten: Arc<WorkQueue<Key>>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) decider: Decider,
    pub(crate) estimators: Option<Arc<EstimatorPool>>,
    pub(crate) explain: Option<String>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) log: DecisionLog,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) pending_status: Arc<PendingStatus>,
    pub(crate) scheduler: Arc<RunningScheduler>,
    pub(crate) scheduler_budget: Arc<WriteBudget>,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the scheduler until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Queue = Arc::new(SchedulingQueue::new());
    let active: Weak<SchedulingQueue<Key>> = Arc::downgrade(&queue);
    deps.failures.observe(ACTIVE_QUEUE, active);
    let cache = Arc::new(SchedulerCache::default());
    let _subscriptions = cache.subscribe(&deps);
    let _bindings = subscribe::<ResourceBinding>(&deps, &queue);
    let _cluster_bindings = subscribe::<ClusterResourceBinding>(&deps, &queue);
    let (affected, bindings) = (Arc::clone(&queue), deps.clone());
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        if let Some(clusters) = triggers::changed_cluster(change) {
            enqueue(&bindings, &affected, |binding: &ResourceBinding| {
                triggers::is_affected(binding, &clusters)
            });
            enqueue(&bindings, &affected, |binding: &ClusterResourceBinding| {
                triggers::is_affected(binding, &clusters)
            });
        }
        let kinds = triggers::new_apis(change);
        if !kinds.is_empty() {
            enqueue(&bindings, &affected, |binding: &ResourceBinding| {
                triggers::is_of_kind(binding, &kinds)
            });
            enqueue(&bindings, &affected, |binding: &ClusterResourceBinding| {
                triggers::is_of_kind(binding, &kinds)
            });
        }
    });
    let budget = Arc::clone(&deps.scheduler_budget);
    let unwritten = Arc::default();
    let scheduler = Arc::new(Scheduler {
        deps: deps.clone(),
        cache,
        budget,
        unwritten,
    });
    deps.scheduler.started(&scheduler);
    let bookkeeping = flush_bookkeeping(Arc::clone(&scheduler));
    futures::join!(estimators::run(deps), work(scheduler, queue), bookkeeping);
}

async fn work(scheduler: Arc<Scheduler>, queue: Queue) {
    let mut tasks = JoinSet::new();
    let workers = if is_one_at_a_time(&scheduler.deps.flags) {
        // The first decision depends on the results of an earlier process.
        scheduler.deps.stores.bindings.wait_for_cache_sync().await;
        1
    } else {
        IN_FLIGHT_MAX
    };
    for _ in 0..workers {
        tasks.spawn(Arc::clone(&scheduler).worker(Arc::clone(&queue)));
    }
    // A worker ends only by a panic: a bug that must not go unnoticed.
    while let Some(ended) = tasks.join_next().await {
        let Err(error) = ended;
        if error.is_panic() {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn flush_bookkeeping(scheduler: Arc<Scheduler>) {
    let (queue, failed) = (
        Arc::clone(&scheduler.unwritten),
        scheduler.deps.failures.counter(NAME, binding_kind::named),
    );
    binding_kind::run(queue, BOOKKEEPING_WORKERS, scheduler, failed).await;
}

/// Writes bookkeeping that no other change of the status took along.
impl Reconcile for Scheduler {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        let pending_status = &self.deps.pending_status;
        // The bookkeeping that the timer was set for may be written already, and this be newer.
        let Some(age) = pending_status.age(&key) else {
            return Ok(Action::Wait);
        };
        if let Some(binding) = B::store(&self.deps.stores).get(&key) {
            let is_evicted = !binding.spec().graceful_eviction_tasks.is_empty();
            let delay = if is_evicted {
                BOOKKEEPING_DELAY_OF_EVICTIONS
            } else {
                BOOKKEEPING_DELAY
            };
            let remaining = delay.saturating_sub(age).min(BOOKKEEPING_DELAY);
            if !remaining.is_zero() {
                return Ok(Action::After(remaining));
            }
            self.budget.take().await;
        }
        let Some(fields) = pending_status.get(&key) else {
            return Ok(Action::Wait);
        };
        if let Some(binding) = B::store(&self.deps.stores).get(&key) {
            let change = |binding: &mut B| fields.merge_into(binding.status_mut());
            B::writer(&self.deps.bindings, &binding)
                .update_status(&binding, change)
                .await?;
        }
        pending_status.done(&key, fields);
        Ok(Action::Wait)
    }
}

fn subscribe<B: Binding>(deps: &Dependencies, queue: &Queue) -> Subscription<B> {
    let (queue, name) = (Arc::clone(queue), deps.flags.scheduler_name.clone());
    let (metrics, pending_status) = (Arc::clone(&deps.metrics), Arc::clone(&deps.pending_status));
    B::store(&deps.stores).subscribe(move |change| {
        if matches!(change, Change::Deleted(_)) {
            pending_status.forget(&Key::of(change.object()));
        }
        if triggers::brings_binding(change, &name) {
            let is_new = matches!(change, Change::Added(_));
            metrics.scheduler.incoming(if is_new {
                Incoming::BindingAdd
            } else {
                Incoming::BindingUpdate
            });
            push(&queue, change.object());
        }
    })
}

fn push<B: Binding>(queue: &Queue, binding: &B) {
    queue.push(Key::of(binding), binding.spec().schedule_priority());
}

/// Enqueues this scheduler's bindings that a change of a cluster concerns.
fn enqueue<B: Binding>(deps: &Dependencies, queue: &Queue, is_concerned: impl Fn(&B) -> bool) {
    for binding in B::store(&deps.stores).list() {
        let responsible = triggers::is_responsible(&*binding, &deps.flags.scheduler_name);
        if responsible && is_concerned(&binding) {
            deps.metrics.scheduler.incoming(Incoming::ClusterChanged);
            push(queue, &*binding);
        }
    }
}

impl Scheduler {
    /// Leaves bookkeeping to the next write of the status.
    fn note<B: Binding>(&self, binding: &B, fields: SchedulerFields) {
        let key = Key::of(binding);
        self.deps.pending_status.note(&key, fields);
        self.unwritten.add_after(key, BOOKKEEPING_DELAY);
    }

    /// Runs a worker that schedules one binding after the other.
    async fn worker(self: Arc<Self>, queue: Queue) -> std::convert::Infallible {
        let observer = self.deps.failures.counter(NAME, binding_kind::named);
        loop {
            let item = queue.next().await;
            let span = observer.span(&item.key);
            let outcome = self.schedule_key(&item.key).instrument(span.clone()).await;
            if let Err(error) = &outcome {
                span.in_scope(|| observer.failed(&item.key, error));
            }
            match outcome {
                // After a conflict the newer version may not have arrived yet.
                Err(error) if error.is_conflict() => {
                    let retry = Requeue::After(after_conflict(item.attempts()));
                    self.give_back(&queue, item, retry);
                }
                Ok(requeue) => self.give_back(&queue, item, requeue),
                Err(error) if error.is_withheld() => self.give_back(&queue, item, Requeue::Forget),
                Err(_) => self.give_back(&queue, item, Requeue::Backoff),
            }
            self.deps.metrics.scheduler.pending(queue.pending());
        }
    }

    fn give_back(&self, queue: &Queue, item: queue::Item<Key>, requeue: Requeue) {
        if matches!(requeue, Requeue::Backoff | Requeue::Unschedulable) {
            self.deps.metrics.scheduler.incoming(Incoming::ScheduleAttemptFailure);
        }
        queue.done(item, requeue);
    }

    async fn schedule_key(&self, key: &Key) -> Result<Requeue, Error> {
        if key.namespace.is_empty() {
            self.schedule::<ClusterResourceBinding>(key).await
        } else {
            self.schedule::<ResourceBinding>(key).await
        }
    }

    async fn schedule<B: Binding>(&self, key: &Key) -> Result<Requeue, Error> {
        let deps = &self.deps;
        let Some(binding) = B::latest(&deps.bindings, key) else {
            return Ok(Requeue::Forget);
        };
        let model = Arc::new(binding.to_model());
        if model.deletion_timestamp.is_some() {
            let deleting = schedule::deleting_event(&model);
            apply::emit(&deps.log.events, &deps.flags, &*binding, &deleting);
            return Ok(Requeue::Forget);
        }
        if model.spec.placement.is_none() {
            return Err(Error::Undecided(format!("{} {key} has no placement", B::kind(&()))));
        }
        let started = Instant::now();
        let Some(attempt) = self.attempt(Arc::clone(&model)) else {
            apply::note_processed(self, &*binding);
            return Ok(Requeue::Forget);
        };
        let accurate = attempt.ask(deps.estimators.as_deref()).await;
        let now = attempt.now();
        let recorded = attempt.decide(self, accurate).await.record(deps, &*binding);
        let applied = apply::apply(self, &*binding, &recorded).await;
        deps.metrics
            .scheduler
            .attempted(recorded.trigger, Ending::of(&applied), started.elapsed());
        let retry = applied?;
        let block_ends = schedule::blocked_until(&model, now)
            .into_iter()
            .filter_map(|(_, until)| until)
            .min();
        Ok(match (retry, &recorded.plan.outcome, block_ends) {
            // No event requeues the binding when a cluster that it left is open to it again.
            (Retry::Forget, Outcome::Clear(_) | Outcome::Keep(_), Some(until)) => Requeue::After(
                Duration::from_millis(u64::try_from(until.millis_since(now)).unwrap_or(0)),
            ),
            (Retry::Forget, ..) => Requeue::Forget,
            (Retry::Unschedulable, ..) => Requeue::Unschedulable,
            (Retry::Backoff, ..) => Requeue::Backoff,
        })
    }
}

#[cfg(test)]
mod tests;
