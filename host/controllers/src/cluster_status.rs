//! Probes of member clusters → Cluster status (Karmada: `cluster_status_controller.go`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_api::Cluster;
use bulkhead_core::decide::cluster_ready::{Probe, ReadyDebounce, Thresholds};
use bulkhead_core::model::{
    ApiEnablement, Condition, ConditionStatus, NodeSummary, ResourceSummary, SyncMode, set_condition,
};
use bulkhead_core::names::keys;
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use http::Request;
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::api_enablements::{ApiEnablements, Discovery};
use crate::contact::Contacts;
use crate::flags::Flags;
use crate::member_resources::MemberResources;
use crate::members::{MemberError, Members, ReplacedHandler, Scope};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::stores::Stores;

const NAME: &str = "cluster-status-controller";
/// First pause after a probe whose outcome could not be written; never longer than the probe interval.
const RETRY_BASE: Duration = Duration::from_millis(5);
/// Timeout of a probe: a server that accepts connections and does not respond is not reachable.
const PROBE_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum number of clusters whose kinds, nodes and pods are read at the same time. Probes have no such limit:
/// failures that happen together must be noticed together.
const COLLECTIONS_MAX: usize = 8;
/// Time that a cluster waits for its turn to be listed before the previous data is kept, and timeout of the listing.
/// The cluster is not probed meanwhile.
const COLLECTION_WAIT_MAX: Duration = Duration::from_secs(5);
const COLLECTION_TIME_MAX: Duration = Duration::from_mins(1);

/// Minimum pause between extra probes of all clusters.
const PROBE_ALL_INTERVAL_MIN: Duration = Duration::from_secs(5);

struct ClusterStatusController {
    deps: Dependencies,
    queue: Arc<WorkQueue<Key>>,
    debounce: Mutex<ReadyDebounce>,
    collections: Semaphore,
    /// Nodes and pods of each member.
    resources: MemberResources,
    /// Discovery of each member at its last listing.
    discoveries: Mutex<BTreeMap<String, Discovery>>,
    /// Time of the last extra probe of all clusters.
    last_probe_of_all: Mutex<Option<Instant>>,
    start: Instant,
}

/// Data collected from a ready member cluster.
struct Collected {
    kubernetes_version: String,
    api_enablements: Vec<ApiEnablement>,
    enablements: Condition,
    /// `None` if they could not be collected, or are disabled: the previous data is kept.
    resources: Option<(NodeSummary, ResourceSummary)>,
}

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) member_objects: Arc<DynamicStores>,
    pub(crate) members: Arc<dyn Members>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    if deps.scope == Scope::Push {
        deps.contacts.expect_probes();
    }
    // An outcome that could not be written is outdated by the next probe.
    let queue = WorkQueue::with_backoff(RETRY_BASE, deps.flags.cluster_status_update_frequency.0);
    let queue: Arc<WorkQueue<Key>> = Arc::new(queue);
    let (clusters, served) = (Arc::clone(&queue), deps.clone());
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        if change.is_generation_change() && served.scope.serves(change.object()) {
            // A change of the spec needs no extra probe, unless the cluster could not be probed before.
            let is_as_before = |old, new| has_finalizer(old) == has_finalizer(new) && served.can_probe(old);
            if !matches!(change, Change::Updated { old, new } if is_as_before(old, new)) {
                clusters.add(Key::of(change.object()));
            }
        }
    });
    let controller = Arc::new(ClusterStatusController::new(deps.clone(), Arc::clone(&queue)));
    // A cut connection triggers a probe at once, so that the loss of a cluster is dated correctly.
    let suspecting = Arc::clone(&controller);
    let _silence = deps.member_objects.subscribe_silence(move |cluster| {
        if suspecting.debounce().was_ready(cluster) {
            suspecting.queue.add(Key::new("", cluster));
            suspecting.probe_all();
        }
    });
    // A watch through the previous client may go on at another cluster, which had the name before.
    let replaced = Arc::clone(&controller);
    let forget: Arc<ReplacedHandler> = Arc::new(move |cluster, _| replaced.resources.forget(cluster));
    deps.members.on_replaced(&forget);
    let reconcile = move |key| {
        let controller = Arc::clone(&controller);
        async move { controller.reconcile(key).await }
    };
    controller::run_per_key(
        queue,
        1,
        Key::clone,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("Cluster")),
    )
    .await;
}

fn has_finalizer(cluster: &Cluster) -> bool {
    cluster
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == keys::CLUSTER_FINALIZER)
}

impl Dependencies {
    /// True if the cluster can be probed. A Push cluster without credentials is managed elsewhere.
    fn can_probe(&self, cluster: &Cluster) -> bool {
        self.scope.serves(cluster) && (cluster.spec.sync_mode == SyncMode::Pull || cluster.spec.secret_ref.is_some())
    }
}

impl ClusterStatusController {
    fn new(deps: Dependencies, queue: Arc<WorkQueue<Key>>) -> Self {
        Self {
            deps,
            queue,
            debounce: Mutex::default(),
            collections: Semaphore::new(COLLECTIONS_MAX),
            resources: MemberResources::default(),
            discoveries: Mutex::default(),
            last_probe_of_all: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn debounce(&self) -> MutexGuard<'_, ReadyDebounce> {
        self.debounce.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discoveries(&self) -> MutexGuard<'_, BTreeMap<String, Discovery>> {
        self.discoveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes all clusters. A lost cluster may not be the only one, and the eviction of its workloads depends on the
    /// state of the others: failures that happen together must be noticed together.
    fn probe_all(&self) {
        let mut last_probe_of_all = self.last_probe_of_all.lock().unwrap_or_else(PoisonError::into_inner);
        if last_probe_of_all.is_some_and(|at| at.elapsed() < PROBE_ALL_INTERVAL_MIN) {
            return;
        }
        *last_probe_of_all = Some(Instant::now());
        for cluster in self
            .deps
            .stores
            .clusters
            .list()
            .iter()
            .filter(|cluster| self.deps.scope.serves(cluster))
        {
            self.queue.add(Key::of(&**cluster));
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Action, Error> {
        let deps = &self.deps;
        let Some(cluster) = deps.stores.clusters.get(&key) else {
            self.debounce().forget(&key.name);
            self.discoveries().remove(&key.name);
            self.resources.forget(&key.name);
            deps.contacts.forget(&key.name);
            deps.metrics.forget_cluster(&key.name);
            return Ok(Action::Wait);
        };
        if !has_finalizer(&cluster) {
            return Err(Error::NotYet(format!("Cluster {key} has no finalizer yet")));
        }
        if !deps.can_probe(&cluster) {
            self.resources.forget(&key.name);
            return Ok(Action::Wait);
        }
        self.sync(&cluster).await?;
        Ok(Action::After(deps.flags.cluster_status_update_frequency.0))
    }

    async fn sync(&self, cluster: &Cluster) -> Result<(), Error> {
        let deps = &self.deps;
        let name = cluster.name_any();
        let client = match deps.members.client(&name) {
            Ok(client) => client,
            Err(MemberError::NotYet(error)) => return Err(Error::NotYet(error)),
            Err(MemberError::Broken(error)) => {
                deps.contacts.probed(&name, false);
                let message = format!("failed to create a ClusterClient: {error}");
                let now = deps.clock.now();
                let observed = Condition::new("Ready", ConditionStatus::False, "StatusCollectionFailed", message, now);
                return deps
                    .readiness
                    .write(NAME, cluster, self.debounced(cluster, observed), |_| {})
                    .await;
            }
        };
        let start = Instant::now();
        let probe = probe(&client).await;
        deps.metrics.clusters.probed(&name, probe, start.elapsed());
        deps.contacts.probed(&name, probe == Probe::Ready);
        if probe != Probe::Ready && self.debounce().was_ready(&name) {
            self.probe_all();
        }
        let ready = self.debounced(cluster, probe.condition(deps.clock.now()));
        if probe != Probe::Ready || ready.status != ConditionStatus::True {
            return deps.readiness.write(NAME, cluster, ready, |_| {}).await;
        }
        let Some(collected) = self.collected(&name, &client, &cluster.spec.resource_models).await else {
            return deps.readiness.write(NAME, cluster, ready, |_| {}).await;
        };
        deps.metrics
            .nodes(&name, collected.resources.as_ref().map(|(nodes, _)| nodes));
        deps.readiness
            .write(NAME, cluster, ready, |cluster| {
                cluster
                    .status
                    .kubernetes_version
                    .clone_from(&collected.kubernetes_version);
                cluster.status.api_enablements.clone_from(&collected.api_enablements);
                if let Some((nodes, resources)) = collected.resources.clone() {
                    cluster.status.node_summary = Some(nodes);
                    cluster.status.resource_summary = Some(resources);
                }
                set_condition(&mut cluster.status.conditions, collected.enablements.clone());
            })
            .await
    }

    fn debounced(&self, cluster: &Cluster, observed: Condition) -> Condition {
        let flags = &self.deps.flags;
        let thresholds = Thresholds {
            success_s: flags.cluster_success_threshold.as_secs(),
            failure_s: flags.cluster_failure_threshold.as_secs(),
        };
        let current = Condition::find(&cluster.status.conditions, "Ready");
        // Thresholds are durations, which steps of the wall clock must not change.
        let now = Time::from_millis(i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX));
        self.debounce()
            .adjust(&cluster.name_any(), observed, current, thresholds, now)
    }

    /// Collects data from the cluster; `None` if its turn or its responses do not come in time.
    async fn collected(&self, name: &str, client: &Client, models: &[Value]) -> Option<Collected> {
        let permit = tokio::time::timeout(COLLECTION_WAIT_MAX, self.collections.acquire()).await;
        let _permit = permit.ok()?.ok()?;
        tokio::time::timeout(COLLECTION_TIME_MAX, self.collect(name, client, models))
            .await
            .ok()
    }

    async fn collect(&self, name: &str, client: &Client, models: &[Value]) -> Collected {
        let mut discovery = self.discoveries().remove(name).unwrap_or_default();
        let ApiEnablements {
            found: api_enablements,
            is_complete,
        } = discovery.read(client).await;
        self.discoveries().insert(name.to_owned(), discovery);
        let count = api_enablements.len();
        let (status, reason, message) = if count == 0 {
            let message = "collected empty APIEnablements from the cluster".to_owned();
            (ConditionStatus::False, "Empty", message)
        } else if is_complete {
            let message = "collected complete APIEnablements from the cluster".to_owned();
            (ConditionStatus::True, "Complete", message)
        } else {
            let message = format!("might collect partial APIEnablements({count}) from the cluster");
            (ConditionStatus::False, "Partial", message)
        };
        let enablements = Condition::new("CompleteAPIEnablements", status, reason, message, self.deps.clock.now());
        let kubernetes_version = client
            .apiserver_version()
            .await
            .map(|info| info.git_version)
            .unwrap_or_default();
        let resources = if self.deps.flags.enable_cluster_resource_modeling {
            self.resources.sums(name, client, models).await
        } else {
            None
        };
        Collected {
            kubernetes_version,
            api_enablements,
            enablements,
            resources,
        }
    }
}

/// Probes `/readyz`, or `/healthz` if there is no `/readyz`.
async fn probe(client: &Client) -> Probe {
    match status_of(client, "/readyz").await {
        Some(404) => status_of(client, "/healthz")
            .await
            .map_or(Probe::Unreachable, Probe::from_http_status),
        Some(status) => Probe::from_http_status(status),
        None => Probe::Unreachable,
    }
}

async fn status_of(client: &Client, path: &str) -> Option<u16> {
    let request = Request::get(path).body(Body::empty()).ok()?;
    let answer = tokio::time::timeout(PROBE_TIME_MAX, client.send(request)).await;
    answer.ok()?.ok().map(|response| response.status().as_u16())
}

#[cfg(test)]
mod tests;
