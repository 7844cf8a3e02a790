//! `NoExecute` taints → evictions (Karmada: `pkg/controllers/cluster/taint_manager.go`, `eviction_worker.go`).
//!
//! Two things differ on purpose. The rate is that of the process: Karmada paces each of six workers, so that a
//! configured 0.5 per second is 3 per second in the worst case. And rate 0 stops eviction instead of letting one
//! item per worker through every half hour. An item that turns out to need no eviction costs no slot.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_core::decide::evict::{self, EvictPlan, NoAppliedPlacement};
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{self, GracefulEvictionTask, TaintEffect};
use kube::ResourceExt;
use kube::api::PostParams;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::binding_kind::{self, Binding, Reconcile};
use crate::context::{Context, Record, about, input, subject};
use crate::controller::{self, Action, Error};
use crate::events::EventType;
use crate::flags::FeatureGate;
use crate::graceful_eviction::template_of;
use crate::queue::WorkQueue;
use crate::store::Key;

const NAME: &str = "taint-manager";
const WORKERS: usize = 3;
/// How often a cluster with a `NoExecute` taint is looked at again (Karmada: `ClusterTaintEvictionRetryFrequency`).
const RESCAN: Duration = Duration::from_secs(10);

/// Hands out one slot per `1 / rate` seconds; the first one at once.
struct Pacer {
    interval: Option<Duration>,
    next: Mutex<Option<Instant>>,
}

impl Pacer {
    fn new(per_second: f64) -> Self {
        let interval = (per_second > 0.0).then(|| Duration::from_secs_f64((1.0 / per_second).min(86_400.0)));
        Self { interval, next: Mutex::default() }
    }

    /// Waits for a slot; for ever when the rate is 0.
    async fn slot(&self) {
        let Some(interval) = self.interval else { return std::future::pending().await };
        // Holding the lock while waiting is what makes the rate independent of the number of workers.
        let mut next = self.next.lock().await;
        if let Some(at) = *next {
            tokio::time::sleep_until(at).await;
        }
        *next = Some(Instant::now() + interval);
    }

    /// Gives a slot back that was not used.
    async fn give_back(&self) {
        if let Some(interval) = self.interval {
            let mut next = self.next.lock().await;
            *next = next.and_then(|at| at.checked_sub(interval));
        }
    }
}

struct TaintManager {
    context: Context,
    pacer: Pacer,
}

/// One binding on one cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Eviction {
    cluster: String,
    binding: Key,
}

/// Runs the taint manager, for ever; does nothing when a gate or a flag says so.
pub(crate) async fn run(context: Context) {
    let flags = &context.flags;
    let enabled =
        flags.gate(FeatureGate::Failover) && flags.enable_taint_manager && flags.enable_no_execute_taint_eviction;
    if !enabled {
        return std::future::pending().await;
    }
    let clusters: Arc<WorkQueue<Key>> = Arc::default();
    let evictions: Arc<WorkQueue<Eviction>> = Arc::default();
    let changed = Arc::clone(&clusters);
    let _clusters = context.stores.clusters.subscribe(move |change| changed.add(Key::of(change.object())));
    let scan = {
        let (context, evictions) = (context.clone(), Arc::clone(&evictions));
        move |key| {
            let action = scan(&context, &evictions, &key);
            std::future::ready(Ok(action))
        }
    };
    let manager = Arc::new(TaintManager { pacer: Pacer::new(flags.resource_eviction_rate), context: context.clone() });
    let evict = move |eviction: Eviction| {
        let manager = Arc::clone(&manager);
        async move {
            let paced = Paced { manager: &manager, cluster: &eviction.cluster };
            binding_kind::dispatch(&paced, eviction.binding).await
        }
    };
    let scanning = controller::run(clusters, 1, scan, context.failed(NAME));
    let evicting = controller::run(evictions, WORKERS, evict, context.failed(NAME));
    futures::join!(scanning, evicting);
}

/// Puts every binding on a tainted cluster into the eviction queue, with a delay if it tolerates the taint for a
/// time, and comes back later.
fn scan(context: &Context, evictions: &WorkQueue<Eviction>, key: &Key) -> Action {
    let Some(cluster) = context.stores.clusters.get(key) else { return Action::Wait };
    if !cluster.spec.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute) {
        return Action::Wait;
    }
    let cluster = cluster.to_model();
    enqueue::<bulkhead_api::ResourceBinding>(context, evictions, &cluster);
    enqueue::<bulkhead_api::ClusterResourceBinding>(context, evictions, &cluster);
    Action::After(RESCAN)
}

fn enqueue<B: Binding>(context: &Context, evictions: &WorkQueue<Eviction>, cluster: &model::Cluster) {
    let now = context.clock.now();
    for binding in B::store(&context.stores).by_index(&cluster.name) {
        let eviction = Eviction { cluster: cluster.name.clone(), binding: Key::of(&*binding) };
        let purge_mode = context.flags.no_execute_taint_eviction_purge_mode;
        match evict::decide(&binding.to_model(), Some(cluster), purge_mode, now) {
            Ok(EvictPlan::Keep) => {}
            Ok(EvictPlan::KeepFor { remaining_ms }) => evictions.add_after(eviction, millis(remaining_ms)),
            // The worker reports what cannot be read, and retries.
            Ok(EvictPlan::Evict { .. }) | Err(NoAppliedPlacement { .. }) => evictions.add(eviction),
        }
    }
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

struct Paced<'a> {
    manager: &'a TaintManager,
    cluster: &'a str,
}

impl Reconcile for Paced<'_> {
    async fn reconcile<B: Binding>(&self, key: Key) -> Result<Action, Error> {
        if !matches!(self.manager.plan::<B>(self.cluster, &key)?, Some((_, EvictPlan::Evict { .. }))) {
            return self.manager.later::<B>(self.cluster, &key);
        }
        self.manager.pacer.slot().await;
        // The cluster may have recovered, or the binding moved, while this waited for its slot.
        let evicted = match self.manager.plan::<B>(self.cluster, &key)? {
            Some((binding, EvictPlan::Evict { spec, task, because })) => {
                self.manager.evict(&*binding, self.cluster, *spec, &task, because).await
            }
            _ => Err(Error::NotYet(format!("{} {key} need not be evicted any more", B::kind(&())))),
        };
        match evicted {
            Ok(()) => Ok(Action::Wait),
            Err(error) => {
                self.manager.pacer.give_back().await;
                if matches!(error, Error::NotYet(_)) { self.manager.later::<B>(self.cluster, &key) } else { Err(error) }
            }
        }
    }
}

impl TaintManager {
    fn plan<B: Binding>(&self, cluster: &str, key: &Key) -> Result<Option<(Arc<B>, EvictPlan)>, Error> {
        let context = &self.context;
        let Some(binding) = B::store(&context.stores).get(key) else { return Ok(None) };
        let cluster = context.stores.cluster(cluster).map(|cluster| cluster.to_model());
        let purge_mode = context.flags.no_execute_taint_eviction_purge_mode;
        let plan = evict::decide(&binding.to_model(), cluster.as_ref(), purge_mode, context.clock.now())
            .map_err(|error| Error::Undecided(error.to_string()))?;
        Ok(Some((binding, plan)))
    }

    fn later<B: Binding>(&self, cluster: &str, key: &Key) -> Result<Action, Error> {
        Ok(match self.plan::<B>(cluster, key)? {
            Some((_, EvictPlan::KeepFor { remaining_ms })) => Action::After(millis(remaining_ms)),
            _ => Action::Wait,
        })
    }

    async fn evict<B: Binding>(
        &self,
        binding: &B,
        cluster: &str,
        spec: model::BindingSpec,
        task: &GracefulEvictionTask,
        because: bulkhead_core::combine::Because,
    ) -> Result<(), Error> {
        let context = &self.context;
        let purge_mode = task.purge_mode.unwrap_or_default();
        let record = context.record(Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::Evicted,
            because,
            effect: format!(
                "{} replicas to be placed elsewhere, purge mode {purge_mode:?}",
                task.replicas.unwrap_or(0)
            ),
            inputs: vec![input(binding)],
        });
        let mut evicted = binding.clone();
        *evicted.spec_mut() = spec;
        let api = B::api(context.hub.clone(), &binding.namespace().unwrap_or_default());
        let written = api.replace(&binding.name_any(), &PostParams::default(), &evicted).await;
        if let Err(error) = &written
            && !controller::is_conflict(error)
        {
            let message = format!("Evict from cluster {cluster} failed.");
            for about in [about(binding), template_of(binding)] {
                let reason = "EvictWorkloadFromClusterFailed";
                context.events.emit(NAME, about, EventType::Warning, reason, message.clone());
            }
        }
        let operation = Error::api(format!("evicting {} {} from {cluster}", B::kind(&()), binding.name_any()));
        context.settle(&[record], written.map(drop).map_err(operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_does_not_depend_on_the_number_of_workers() {
        let (pacer, start) = (Arc::new(Pacer::new(0.5)), Instant::now());
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let pacer = Arc::clone(&pacer);
            workers.spawn(async move {
                pacer.slot().await;
                start.elapsed().as_secs()
            });
        }
        let mut slots = workers.join_all().await;
        slots.sort_unstable();
        assert_eq!(slots, [0, 2, 4, 6, 8, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_zero_stops() {
        let pacer = Pacer::new(0.0);
        let waited = tokio::time::timeout(Duration::from_secs(1_000_000), pacer.slot()).await;
        assert!(waited.is_err());
    }
}
