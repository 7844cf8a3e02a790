//! A quarrelsome neighbour: a program that writes the same objects as Karmada, at the same moments.
//!
//! It answers each write of another program to a binding, a Work or a Cluster with a write of its status, evicts at
//! the rate of Karmada's default flags, and places bindings without a target. Its own user in the audit log separates
//! its requests from those of Bulkhead.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use bulkhead_api::{Cluster, ResourceBinding, Work};
use bulkhead_core::model::TaintEffect;
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::control_plane::{Audited, NEIGHBOUR};
use crate::federation::{Federation, Plan};
use crate::modes::{STAND_IN, nothing_refused};
use crate::site::Site;
use crate::{storm, wait};

/// Number of Deployments to evict.
const DEPLOYMENTS: usize = 30;
/// Interval at which bindings are looked at and written.
const PASS: Duration = Duration::from_millis(100);
/// Interval of its evictions: 1.44 a second with Karmada's default flags.
const EVICTION: Duration = Duration::from_millis(694);
/// Pause before an interrupted watch restarts.
const AGAIN: Duration = Duration::from_millis(200);
/// Type of the condition that it writes.
const CONDITION: &str = "Neighbour";
/// Number of tasks that the recorder has to see from beginning to end. The end of others may fall into one change.
const TASKS_SEEN: usize = DEPLOYMENTS / 2;

/// A storm beside the neighbour: conflicts occur, no request is forbidden, each binding leaves once, and every
/// Deployment is healthy in its new member.
pub(crate) async fn storm(site: &Site, mode: &str, stand_in: &str) -> anyhow::Result<()> {
    let first = [stand_in, STAND_IN];
    let name = format!("neighbour-{mode}");
    let plan = Plan {
        first: &first,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, &name, plan)).await?;
    let user = federation.start_bulkhead_in(mode, &[]).await?;
    storm::prepare(&federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    let neighbour = Neighbour::start(federation.hub.client_of(NEIGHBOUR).await?);
    federation.member("member1")?.kill_api_server();
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    recorder.check(DEPLOYMENTS, TASKS_SEEN).await?;
    let evicted = neighbour.evicted();
    drop(neighbour);
    for number in 0..DEPLOYMENTS {
        federation
            .wait_deployed("member2", &format!("app-{number}"), Some(1))
            .await?;
    }
    nothing_refused(&federation, &user)?;
    let conflicts = conflicts(&federation, &user)?;
    let of_neighbour = conflicts_of(&federation, NEIGHBOUR)?;
    ensure!(
        conflicts + of_neighbour > 0,
        "neither Bulkhead nor the neighbour met a conflict: the test shows nothing"
    );
    ensure!(
        mode != "evict" || evicted < u64::try_from(DEPLOYMENTS)?,
        "the neighbour made all {evicted} evictions"
    );
    // The bindings are left alone, and Bulkhead has nothing more to write.
    settled(&federation, &user).await
}

/// Returns the number of conflicts of Bulkhead on bindings, each of which is followed by a read that is permitted.
fn conflicts(federation: &Federation<'_>, user: &str) -> anyhow::Result<usize> {
    let requests = federation.hub.requests_of(user)?;
    let reads = requests.iter().any(|request| request == "get resourcebindings 200");
    let conflicts = conflicts_of(federation, user)?;
    ensure!(
        conflicts == 0 || reads,
        "no fresh copy was read after {conflicts} conflicts"
    );
    Ok(conflicts)
}

fn conflicts_of(federation: &Federation<'_>, user: &str) -> anyhow::Result<usize> {
    let writes = writes(federation, user)?;
    Ok(writes.iter().filter(|request| request.code == 409).count())
}

/// Returns the requests of the user that write bindings.
fn writes(federation: &Federation<'_>, user: &str) -> anyhow::Result<Vec<Audited>> {
    let mut requests = federation.hub.audited(user)?;
    requests.retain(|request| request.is_write() && request.resource == "resourcebindings");
    Ok(requests)
}

/// Waits until the user writes no binding for two seconds.
async fn settled(federation: &Federation<'_>, user: &str) -> anyhow::Result<()> {
    let quiet = Duration::from_secs(2);
    let (mut seen, mut since) = (0, Instant::now());
    wait::until("Bulkhead writes nothing more", Duration::from_secs(30), async || {
        let writes = writes(federation, user).map_err(|error| error.to_string())?.len();
        if writes > seen {
            (seen, since) = (writes, Instant::now());
        }
        if since.elapsed() >= quiet {
            Ok(())
        } else {
            Err(format!("{writes} writes"))
        }
    })
    .await
    .map(drop)
}

/// Running neighbour. Dropping it stops it.
struct Neighbour {
    evictions: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Neighbour {
    fn start(client: Client) -> Self {
        let (mut tasks, evictions) = (JoinSet::new(), Arc::<AtomicU64>::default());
        tasks.spawn(echo::<ResourceBinding>(client.clone()));
        tasks.spawn(echo::<Work>(client.clone()));
        tasks.spawn(echo::<Cluster>(client.clone()));
        tasks.spawn(act(client, Arc::clone(&evictions)));
        Self {
            evictions,
            _tasks: tasks,
        }
    }

    /// Returns the number of evictions that it made.
    fn evicted(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }
}

/// Versions of objects that the neighbour wrote, by uid.
type Own = Arc<Mutex<BTreeMap<String, String>>>;

/// Writes the status of an object after each write of another program.
async fn echo<K: Resource<DynamicType = ()>>(client: Client) {
    let resource = ApiResource::erase::<K>(&());
    let (api, own) = (
        Api::<DynamicObject>::all_with(client.clone(), &resource),
        Own::default(),
    );
    loop {
        let mut objects = std::pin::pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
        while let Some(Ok(object)) = objects.next().await {
            touch(&client, &resource, &object, &own).await;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Writes the condition of the neighbour into the status that it read, as an update does: another version is a
/// conflict, and the next change is answered again.
async fn touch(client: &Client, resource: &ApiResource, object: &DynamicObject, own: &Own) {
    let written = || own.lock().unwrap_or_else(PoisonError::into_inner);
    let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version());
    if version.is_some() && written().get(&uid) == version.as_ref() {
        return;
    }
    let status = object.data.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions: Vec<Value> = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != CONDITION);
    conditions.push(json!({
        "type": CONDITION, "status": "True", "reason": "Seen", "message": version,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }));
    let patch = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let patched = api
        .patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await;
    if let Ok(patched) = patched
        && let Some(version) = patched.resource_version()
    {
        written().insert(uid, version);
    }
}

/// Evicts bindings from clusters with a NoExecute taint, and places bindings without a target, in the way of Karmada's
/// taint manager and scheduler.
async fn act(client: Client, evictions: Arc<AtomicU64>) {
    let all: Api<ResourceBinding> = Api::all(client.clone());
    let clusters: Api<Cluster> = Api::all(client.clone());
    let resource = ApiResource::erase::<ResourceBinding>(&());
    let dynamic: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut next = Instant::now();
    loop {
        tokio::time::sleep(PASS).await;
        let (Ok(bindings), Ok(known), Ok(objects)) = (
            all.list(&ListParams::default()).await,
            clusters.list(&ListParams::default()).await,
            dynamic.list(&ListParams::default()).await,
        ) else {
            continue;
        };
        let lost: Vec<_> = known.items.iter().filter(|cluster| evicts(cluster)).collect();
        let is_lost = |name: &str| lost.iter().any(|cluster| cluster.name_any() == name);
        let mut healthy = known
            .items
            .iter()
            .map(ResourceExt::name_any)
            .filter(|name| !is_lost(name));
        let Some(target) = healthy.next().filter(|_| !lost.is_empty()) else {
            continue;
        };
        for binding in bindings.items {
            let leaves = binding.spec.clusters.iter().find(|at| is_lost(&at.name)).cloned();
            if let Some(leaves) = leaves.filter(|_| Instant::now() >= next) {
                next = Instant::now() + EVICTION;
                if evict(&client, binding, &leaves.name).await {
                    evictions.fetch_add(1, Ordering::Relaxed);
                }
            } else if binding.spec.clusters.is_empty() && !binding.spec.graceful_eviction_tasks.is_empty() {
                place(&client, &binding, &target).await;
            }
        }
        // Every status of a binding that has to leave is written while it leaves.
        for object in objects.items {
            let targets = object.data["spec"]["clusters"].as_array().cloned().unwrap_or_default();
            if targets
                .iter()
                .any(|at| is_lost(at["name"].as_str().unwrap_or_default()))
            {
                touch(&client, &resource, &object, &Own::default()).await;
            }
        }
    }
}

fn evicts(cluster: &Cluster) -> bool {
    let taints = &cluster.spec.taints;
    taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
}

/// Replaces a binding by one without the target and with a task, which has no time: Karmada's graceful eviction
/// controller adds that later. Returns true if the API server stored it.
async fn evict(client: &Client, mut binding: ResourceBinding, from: &str) -> bool {
    let (namespace, name) = (binding.namespace().unwrap_or_default(), binding.name_any());
    binding.spec.clusters.retain(|target| target.name != from);
    let task = json!({
        "fromCluster": from, "replicas": 1, "reason": "TaintUntolerated", "producer": "TaintManager",
        "purgeMode": "Gracefully",
    });
    let Ok(task) = serde_json::from_value(task) else {
        return false;
    };
    binding.spec.graceful_eviction_tasks.push(task);
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), &namespace);
    api.replace(&name, &Default::default(), &binding).await.is_ok()
}

/// Patches the targets of a binding without a condition on its version, as Karmada's scheduler does.
async fn place(client: &Client, binding: &ResourceBinding, target: &str) {
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), &binding.namespace().unwrap_or_default());
    let clusters = json!([{"name": target, "replicas": binding.spec.replicas}]);
    let patch = Patch::Merge(json!({"spec": {"clusters": clusters}}));
    // A binding that is gone needs no target.
    let _ = api.patch(&binding.name_any(), &PatchParams::default(), &patch).await;
}
