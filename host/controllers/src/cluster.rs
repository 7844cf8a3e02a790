//! Lifecycle of a Cluster object: execution namespace, finalizer, and the heartbeat of Pull clusters (Karmada:
//! `pkg/controllers/cluster/cluster_controller.go`). Its taints are in [`crate::cluster_taints`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bulkhead_api::{Cluster, Work};
use bulkhead_core::model::{Condition, ConditionStatus, SyncMode};
use bulkhead_core::names::{self, keys};
use bulkhead_core::time::Time;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::controller::{self, Action, Error, is_conflict, is_not_found};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Change;
use futures::FutureExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::contact::Contacts;
use crate::decision_log::DecisionLog;
use crate::flags::Flags;
use crate::heartbeat::{self, LEASE_NAMESPACE};
use crate::members::Scope;
use crate::readiness::Readiness;
use crate::stores::Stores;
use crate::subjects::about;
use crate::writers::Writers;

const NAME: &str = "cluster-controller";
const WORKERS: usize = 5;
/// Interval at which a waiting removal is checked (Karmada: `CleanupCheckInterval`).
const CLEANUP_RECHECK: Duration = Duration::from_secs(10);

/// Dependencies of the controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) clock: Clock,
    pub(crate) contacts: Arc<Contacts>,
    pub(crate) failures: Arc<Failures>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) hub: Client,
    pub(crate) log: DecisionLog,
    pub(crate) readiness: Readiness,
    pub(crate) scope: Scope,
    pub(crate) stores: Arc<Stores>,
    pub(crate) writers: Writers,
}

/// Runs the controller until the future is dropped.
pub(crate) async fn run(deps: Dependencies) {
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let clusters = Arc::clone(&queue);
    let _clusters = deps.stores.clusters.subscribe(move |change| {
        if !matches!(change, Change::Deleted(_)) {
            clusters.add(Key::of(change.object()));
        }
    });
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), key)
    };
    let reconciling = controller::run(
        queue,
        WORKERS,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("Cluster")),
    );
    futures::join!(monitor(deps), reconciling);
}

async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    let Some(cluster) = deps.stores.clusters.get(&key) else {
        return Ok(Action::Wait);
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return remove(&deps, &cluster).await;
    }
    ensure_execution_namespace(&deps, &cluster).await?;
    if !cluster
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == keys::CLUSTER_FINALIZER)
    {
        let mut finalizers = cluster.finalizers().to_vec();
        finalizers.push(keys::CLUSTER_FINALIZER.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let operation = Error::api(format!("adding the finalizer of Cluster {key}"));
        deps.writers
            .clusters()
            .patch_despite_status(&cluster, patch)
            .await
            .map_err(operation)?;
    }
    Ok(Action::Wait)
}

async fn ensure_execution_namespace(deps: &Dependencies, cluster: &Cluster) -> Result<(), Error> {
    let name = names::execution_namespace(&cluster.name_any());
    let api: Api<Namespace> = Api::all(deps.hub.clone());
    let existing = api
        .get_opt(&name)
        .await
        .map_err(Error::api(format!("reading namespace {name}")))?;
    if existing.is_some() {
        return Ok(());
    }
    let namespace = json!({"metadata": {"name": name, "labels": {keys::SYSTEM: "true"}}});
    let namespace = serde_json::from_value(namespace).unwrap_or_default();
    match api.create(&PostParams::default(), &namespace).await {
        Err(error) if !is_conflict(&error) => {
            let message = format!(
                "Failed to create execution space({name}) for cluster({}): {error}",
                cluster.name_any()
            );
            deps.log.events.emit(
                NAME,
                about(cluster),
                EventType::Warning,
                "CreateExecutionSpaceFailed",
                message,
            );
            Err(Error::api(format!("creating namespace {name}"))(error))
        }
        _ => {
            let message = format!("Created execution space({name}) for cluster({}).", cluster.name_any());
            deps.log.events.emit(
                NAME,
                about(cluster),
                EventType::Normal,
                "CreateExecutionSpaceSucceed",
                message,
            );
            Ok(())
        }
    }
}

/// Removes a cluster (Karmada: `cluster_controller.go:removeCluster`). The scheduler moves its bindings, not this
/// function.
async fn remove(deps: &Dependencies, cluster: &Cluster) -> Result<Action, Error> {
    let name = cluster.name_any();
    let namespace = names::execution_namespace(&name);
    // The cluster must stay until its remaining bindings and Works are known.
    if deps.stores.wait_for_cache_sync(&deps.scope).now_or_never().is_none() {
        return Err(Error::NotYet(format!(
            "the remaining bindings and Works of Cluster {name} are not known yet"
        )));
    }
    if cluster.spec.sync_mode == SyncMode::Pull && !cluster.is_ready() {
        for work in deps.stores.works.list_namespace(&namespace) {
            release_work(deps, &work).await?;
        }
    }
    let namespace_stays = remove_execution_namespace(deps, cluster).await?;
    let bound =
        !deps.stores.bindings.by_index(&name).is_empty() || !deps.stores.cluster_bindings.by_index(&name).is_empty();
    if namespace_stays || bound {
        return Ok(Action::After(CLEANUP_RECHECK));
    }
    let message = format!("Removed execution space for cluster({name}).");
    deps.log.events.emit(
        NAME,
        about(cluster),
        EventType::Normal,
        "RemoveExecutionSpaceSucceed",
        message,
    );
    let remaining: Vec<_> = cluster
        .finalizers()
        .iter()
        .filter(|f| *f != keys::CLUSTER_FINALIZER)
        .cloned()
        .collect();
    let patch = json!({"metadata": {"finalizers": remaining}});
    match deps.writers.clusters().patch_despite_status(cluster, patch).await {
        Err(error) if !is_not_found(&error) => Err(Error::api(format!("releasing Cluster {name}"))(error)),
        _ => Ok(Action::Wait),
    }
}

/// Deletes the execution namespace of a cluster that leaves. Returns true while the namespace exists.
///
/// A cluster that joins under the same name uses the same namespace. If the cached Cluster is outdated, the namespace
/// is that of the new one, and its Works must stay.
async fn remove_execution_namespace(deps: &Dependencies, cluster: &Cluster) -> Result<bool, Error> {
    let (name, namespace) = (cluster.name_any(), names::execution_namespace(&cluster.name_any()));
    let api: Api<Namespace> = Api::all(deps.hub.clone());
    let reading = || Error::api(format!("reading namespace {namespace}"));
    let Some(found) = api.get_opt(&namespace).await.map_err(reading())? else {
        return Ok(false);
    };
    let current = Api::<Cluster>::all(deps.hub.clone()).get_opt(&name).await;
    let current = current.map_err(Error::api(format!("reading Cluster {name}")))?;
    if current.is_none_or(|current| current.metadata.uid != cluster.metadata.uid) {
        return Err(Error::NotYet(format!(
            "namespace {namespace} stays: another Cluster {name} may use it"
        )));
    }
    let preconditions = Preconditions {
        uid: found.metadata.uid,
        resource_version: None,
    };
    match api
        .delete(&namespace, &DeleteParams::background().preconditions(preconditions))
        .await
    {
        Err(error) if !is_not_found(&error) => {
            let message = format!("Failed to remove execution space for cluster({name}): {error}");
            deps.log.events.emit(
                NAME,
                about(cluster),
                EventType::Warning,
                "RemoveExecutionSpaceFailed",
                message,
            );
            return Err(Error::api(format!("deleting namespace {namespace}"))(error));
        }
        _ => {}
    }
    Ok(api.get_opt(&namespace).await.map_err(reading())?.is_some())
}

async fn release_work(deps: &Dependencies, work: &Work) -> Result<(), Error> {
    let remaining: Vec<_> = work
        .finalizers()
        .iter()
        .filter(|f| *f != keys::EXECUTION_FINALIZER)
        .cloned()
        .collect();
    let patch = json!({"metadata": {"finalizers": remaining}});
    match deps
        .writers
        .works(&work.namespace().unwrap_or_default())
        .patch_despite_status(work, patch)
        .await
    {
        Err(error) if !is_not_found(&error) => Err(Error::api(format!("releasing Work {}", Key::of(work)))(error)),
        _ => Ok(()),
    }
}

/// State of a Pull cluster in the monitor.
struct Heartbeat {
    /// Uid of the Cluster. Another cluster of the same name starts anew.
    cluster: Option<String>,
    /// Monotonic time of the last change seen of it.
    seen: Instant,
    /// Time for which it had been silent by then.
    silent: Duration,
    ready: Option<Condition>,
    renewed: Option<Time>,
}

/// Sets a Pull cluster to Unknown when its agent stops reporting (Karmada:
/// `cluster_controller.go:monitorClusterHealth`).
async fn monitor(deps: Dependencies) {
    deps.contacts.expect_heartbeats();
    let heartbeats = Mutex::new(BTreeMap::<String, Heartbeat>::new());
    let mut ticks = tokio::time::interval(deps.flags.cluster_monitor_period.0);
    loop {
        ticks.tick().await;
        let exists = |name: &String| deps.stores.cluster(name).is_some();
        heartbeats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|name, _| exists(name));
        for cluster in deps.stores.clusters.list() {
            let pull = cluster.spec.sync_mode == SyncMode::Pull && cluster.metadata.deletion_timestamp.is_none();
            if pull && let Err(error) = watch_heartbeat(&deps, &heartbeats, &cluster).await {
                deps.failures.count(NAME, &error);
            }
        }
    }
}

async fn watch_heartbeat(
    deps: &Dependencies,
    heartbeats: &Mutex<BTreeMap<String, Heartbeat>>,
    cluster: &Cluster,
) -> Result<(), Error> {
    let (name, now): (_, Time) = (cluster.name_any(), deps.clock.now());
    let model = cluster.to_model();
    let ready = model.ready().cloned();
    let leases: Api<Lease> = Api::namespaced(deps.hub.clone(), LEASE_NAMESPACE);
    let lease = leases
        .get_opt(&name)
        .await
        .map_err(Error::api(format!("reading lease {LEASE_NAMESPACE}/{name}")))?;
    if lease.is_none() {
        make_lease(&leases, cluster).await?;
    }
    let unreported = lease.as_ref().map(heartbeat::marked).unwrap_or_default();
    let renewed = lease
        .and_then(|lease| lease.spec?.renew_time)
        .map(|renewed| Time::new(renewed.0));
    let grace = if ready.is_some() {
        deps.flags.cluster_monitor_grace_period
    } else {
        deps.flags.cluster_startup_grace_period
    };
    let stale = {
        let mut heartbeats = heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |silent| Heartbeat {
            cluster: cluster.uid(),
            seen: Instant::now(),
            silent,
            ready: ready.clone(),
            renewed: None,
        };
        // A cluster that never was ready has been silent since its creation.
        let silent = || {
            let since = model
                .creation_timestamp
                .filter(|_| ready.is_none())
                .map_or(0, |at| now.millis_since(at));
            Duration::from_millis(u64::try_from(since).unwrap_or(0))
        };
        let heartbeat = heartbeats.entry(name.clone()).or_insert_with(|| fresh(silent()));
        if heartbeat.cluster != cluster.uid() {
            *heartbeat = fresh(silent());
        } else if heartbeat.ready != ready {
            *heartbeat = fresh(Duration::ZERO);
        }
        // Any other time counts, earlier or later: the agent's clock may have been set back.
        if renewed.is_some() && renewed != heartbeat.renewed {
            // A renewal from before the start is no evidence of the present.
            if heartbeat.renewed.is_some() {
                deps.contacts.heard(cluster, unreported);
            }
            (heartbeat.renewed, heartbeat.seen, heartbeat.silent) = (renewed, Instant::now(), Duration::ZERO);
        }
        heartbeat.seen.elapsed() + heartbeat.silent > grace.0
    };
    if !stale
        || ready
            .as_ref()
            .is_some_and(|ready| ready.status == ConditionStatus::Unknown)
    {
        return Ok(());
    }
    let (reason, message) = if ready.is_some() {
        (
            "ClusterStatusUnknown",
            "Cluster status controller stopped posting cluster status.",
        )
    } else {
        (
            "ClusterStatusNeverUpdated",
            "Cluster status controller never posted cluster status.",
        )
    };
    let condition = Condition::new("Ready", ConditionStatus::Unknown, reason, message, now);
    deps.readiness.write(NAME, cluster, condition, |_| {}).await
}

/// Creates the Lease that the agent of a Pull cluster renews. The Cluster owns it.
async fn make_lease(leases: &Api<Lease>, cluster: &Cluster) -> Result<(), Error> {
    let name = cluster.name_any();
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(LEASE_NAMESPACE.to_owned()),
        owner_references: cluster.owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    match leases
        .create(&PostParams::default(), &Lease { metadata, spec: None })
        .await
    {
        Err(error) if !is_conflict(&error) => {
            Err(Error::api(format!("creating lease {LEASE_NAMESPACE}/{name}"))(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{components, hub_of_works, member};

    #[tokio::test]
    async fn a_cluster_that_joined_again_keeps_its_execution_namespace() {
        let hub = hub_of_works(1).client();
        let (components, _events) = components(hub.clone(), member().client());
        let deps = components.cluster();
        let (clusters, namespaces) = (Api::<Cluster>::all(hub.clone()), Api::<Namespace>::all(hub));
        let joining: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"},
        }))
        .unwrap();
        let left = clusters.create(&PostParams::default(), &joining).await.unwrap();
        ensure_execution_namespace(&deps, &left).await.unwrap();
        clusters.delete("m1", &DeleteParams::default()).await.unwrap();
        let refused = remove_execution_namespace(&deps, &left).await.unwrap_err().to_string();
        assert!(refused.contains("another Cluster m1 may use it"), "{refused}");
        let again = clusters.create(&PostParams::default(), &joining).await.unwrap();
        remove_execution_namespace(&deps, &left).await.unwrap_err();
        let kept = namespaces.get("karmada-es-m1").await.unwrap();
        assert_eq!(kept.metadata.deletion_timestamp, None);
        // The same cluster leaves.
        assert!(!remove_execution_namespace(&deps, &again).await.unwrap());
        assert!(namespaces.get_opt("karmada-es-m1").await.unwrap().is_none());
        assert!(!remove_execution_namespace(&deps, &again).await.unwrap());
    }
}
