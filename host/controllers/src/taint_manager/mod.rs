//! Taints that evict → evictions (Karmada: `pkg/controllers/cluster/taint_manager.go`, `eviction_worker.go`).
//!
//! There are three deliberate differences. One queue and one rate serve the whole process: Karmada limits each of six
//! workers, so that a configured 0.5 per second is 3 per second in the worst case. Only real evictions are charged.
//! And rate 0 stops evictions, instead of letting one item per worker through every half hour.
//!
//! [`scan`] queues due evictions. [`evict`] takes each one out when its slot opens, and checks again before it acts: the cluster may have recovered, or the binding moved, meanwhile. Returns
//! to the home cluster take the same way ([`failback`]).

mod announce;
mod clusters;
mod count;
mod evict;
mod failback;
mod ordering;
mod queued;
mod records;
mod scan;
mod stays;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::decide::eviction::taint_based::{EvictOptions, Evictable};
use bulkhead_core::decide::eviction::{BrakeState, EvictionQueue};
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use kube::ResourceExt;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{Span, error_span};

use self::clusters::Clusters;
use self::count::Counts;
use self::failback::Failback;
pub use self::queued::{EvictionsQueued, IN_PROGRESS, NOT_DUE, QueuedEviction, RATE};
use crate::binding_kind::{Binding, Bindings};
use crate::contact::Contacts;
use crate::decision_log::DecisionLog;
use crate::evaluate::Decider;
use crate::flags::Flags;
use crate::metrics::Metrics;
use crate::scheduler::Evictions;
use crate::stores::Stores;
use crate::templates::Templates;
use crate::writers::Writers;

const NAME: &str = "taint-manager";
/// Name of the queue of evictions in metrics.
const EVICTION_QUEUE: &str = "eviction";
/// Interval at which a tainted cluster is scanned again (Karmada: `ClusterTaintEvictionRetryFrequency`).
const RESCAN: Duration = Duration::from_secs(10);

/// Eviction of one binding from one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Eviction {
    cluster: String,
    /// Key of the binding; without a namespace it is a ClusterResourceBinding.
    binding: Key,
    cause: Cause,
}

/// Reason why a binding has to leave a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A taint that it does not tolerate.
    Taint,
    /// The cluster is only a stand-in, and the home cluster has recovered.
    Failback,
}

impl Eviction {
    /// Returns the name of the queue that it would be in in Karmada.
    fn queue_name(&self) -> &'static str {
        if self.binding.namespace.is_empty() {
            "cluster-binding-eviction"
        } else {
            "binding-eviction"
        }
    }

    fn binding_kind(&self) -> &'static str {
        if self.binding.namespace.is_empty() {
            "ClusterResourceBinding"
        } else {
            "ResourceBinding"
        }
    }

    /// Returns the span of the decision about the eviction and of its write.
    fn span(&self) -> Span {
        let (kind, object, cluster) = (self.binding_kind(), &self.binding, self.cluster.as_str());
        error_span!(target: controller::TARGET, "reconcile", controller = NAME, kind, %object, cluster)
    }
}

struct TaintManager {
    deps: Dependencies,
    options: EvictOptions,
    clusters: Clusters,
    queue: Mutex<EvictionQueue<Eviction>>,
    changed: Notify,
    /// Reasons why evictions wait, so that the journal gets each one once and not at every check.
    waits: Mutex<BTreeMap<Eviction, String>>,
    /// Reason codes of bindings that stay on a tainted cluster without end, so that the journal gets each one once.
    stays: Mutex<BTreeMap<Eviction, String>>,
    /// States of the brake by cluster, so that the journal gets each change once.
    braked: Mutex<BTreeMap<String, BrakeState>>,
    /// Clusters with an event that their queue is filled, and none yet that it is empty.
    filled: Mutex<BTreeSet<String>>,
    counts: Mutex<Counts>,
    failback: Failback,
    start: Instant,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) bindings: Bindings,
    pub(crate) clock: Clock,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) decider: Decider,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) log: DecisionLog,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) evictions: Evictions,
    pub(crate) queued: Arc<EvictionsQueued>,
    pub(crate) stores: Arc<Stores>,
    pub(crate) templates: Templates,
    pub(crate) writers: Writers,
}

/// Runs the taint manager until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let manager = Arc::new(TaintManager::new(deps.clone()));
    let evictions: Weak<TaintManager> = Arc::downgrade(&manager);
    deps.failures.observe(EVICTION_QUEUE, evictions);
    deps.queued.started(&manager);
    let scans: Arc<WorkQueue<Key>> = Arc::default();
    let (changed, watching) = (Arc::clone(&scans), Arc::clone(&manager));
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        watching.clusters.apply(change);
        if matches!(change, bulkhead_runtime::store::Change::Deleted(_)) {
            watching.deps.metrics.forget_cluster(&change.object().name_any());
        } else {
            let name = change.object().name_any();
            let is_ready = watching.clusters.get(&name).is_some_and(|cluster| cluster.is_ready());
            watching.deps.metrics.ready(&name, is_ready);
        }
        watching
            .deps
            .metrics
            .faults(watching.clusters.faulty(), watching.clusters.faulty_share());
        changed.add(Key::of(change.object()));
        watching.changed.notify_one();
    });
    let watching = Arc::clone(&manager);
    let _drains = deps.stores.cluster_drains.subscribe(move |change| {
        watching.clusters.apply_drain(change);
        watching.changed.notify_one();
    });
    let watching = Arc::clone(&manager);
    let _pauses = deps.stores.eviction_pauses.subscribe(move |_| {
        let now = watching.now();
        watching.queue().wake(now);
        watching.changed.notify_one();
    });
    let scan = {
        let manager = Arc::clone(&manager);
        move |key: Key| {
            let manager = Arc::clone(&manager);
            async move { Ok(manager.scan(&key.name).await) }
        }
    };
    let scanning = controller::run(
        scans,
        1,
        scan,
        deps.failures.counter(NAME, |key: &Key| key.named("Cluster")),
    );
    let pumping = async {
        // No eviction may start before pauses and drain rates are known.
        deps.stores.eviction_pauses.wait_for_cache_sync().await;
        deps.stores.cluster_drains.wait_for_cache_sync().await;
        manager.assume_recent_evictions();
        manager.pump().await;
    };
    futures::join!(scanning, pumping, manager.run_failback());
}

impl TaintManager {
    fn new(deps: Dependencies) -> Self {
        let aging = deps.flags.eviction_aging.0;
        let options = deps.flags.evict_options();
        Self {
            options,
            failback: Failback::new(&deps, options.no_execute || options.prefer_no_execute),
            clusters: Clusters::new(deps.flags.brake(), deps.flags.resource_eviction_rate_per_cluster),
            queue: Mutex::new(EvictionQueue::new((!aging.is_zero()).then_some(aging))),
            changed: Notify::new(),
            waits: Mutex::default(),
            stays: Mutex::default(),
            braked: Mutex::default(),
            filled: Mutex::default(),
            counts: Mutex::default(),
            start: Instant::now(),
            deps,
        }
    }

    /// Returns the monotonic time that rates are based on.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn queue(&self) -> MutexGuard<'_, EvictionQueue<Eviction>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges all rates as if an eviction had happened just now, so that they hold across a restart and a change of
    /// leader too. The task that would show the last eviction may have ended meanwhile.
    fn assume_recent_evictions(&self) {
        let now = self.now();
        for cluster in self.clusters.all() {
            let limit = self.clusters.limit(&cluster.name);
            self.queue().charge_conservatively(&cluster.name, &limit, now);
        }
    }
}

fn evictable<B: Binding>(binding: &B) -> Evictable<'_> {
    let is_terminating = binding.meta().deletion_timestamp.is_some();
    let observed = &binding.status().aggregated_status;
    Evictable {
        spec: binding.spec(),
        annotations: binding.annotations(),
        observed,
        is_terminating,
    }
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests;
