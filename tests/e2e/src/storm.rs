//! Storm: many small Deployments on one of two members, which is lost while other faults occur.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use bulkhead_api::ResourceBinding;
use bulkhead_core::model::Health;
use bulkhead_core::names::keys;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use crate::federation::Federation;
use crate::wait;

/// Time limit of each phase of a storm.
const LIMIT: Duration = Duration::from_mins(3);
/// Maximum lag of a watch behind the API server.
const CATCHES_UP: Duration = Duration::from_secs(10);
/// Pause before an interrupted watch restarts.
const AGAIN: Duration = Duration::from_millis(200);

/// Creates the policies and the Deployments, and waits until all of them run on `member1`.
pub(crate) async fn prepare(federation: &Federation<'_>, deployments: usize) -> anyhow::Result<()> {
    prepare_with(federation, deployments, |number| deployment(number, 1, &json!({}))).await
}

/// Like [`prepare`], with the Deployment of each number.
pub(crate) async fn prepare_with(
    federation: &Federation<'_>,
    deployments: usize,
    deployment: impl Fn(usize) -> serde_json::Value,
) -> anyhow::Result<()> {
    federation.apply_example("nginx-divided", &["taint-policy.yaml"])?;
    federation.kubectl_with(&["apply", "-f", "-"], &policy().to_string())?;
    let api: Api<Deployment> = Api::namespaced(federation.client.clone(), "default");
    for number in 0..deployments {
        api.create(&PostParams::default(), &serde_json::from_value(deployment(number))?)
            .await?;
    }
    everything_on(&federation.client, deployments, "member1").await
}

/// Waits until every Deployment is healthy on a member and no eviction task remains.
pub(crate) async fn everything_on(client: &Client, deployments: usize, member: &str) -> anyhow::Result<()> {
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), "default");
    wait::until(
        &format!("all {deployments} are healthy on {member}"),
        LIMIT,
        async || {
            let bindings = api
                .list(&Default::default())
                .await
                .map_err(|error| error.to_string())?
                .items;
            let is_moved = |binding: &&ResourceBinding| {
                let placed = matches!(binding.spec.clusters.as_slice(), [only] if only.name == member);
                placed && is_healthy(binding) && binding.spec.graceful_eviction_tasks.is_empty()
            };
            let count = bindings.iter().filter(is_moved).count();
            if count == deployments {
                Ok(())
            } else {
                Err(format!("{count} are"))
            }
        },
    )
    .await
    .map(drop)
}

/// Returns the number of bindings that are not placed on `member`.
pub(crate) async fn left(client: &Client, member: &str) -> anyhow::Result<usize> {
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), "default");
    let bindings = api.list(&Default::default()).await?.items;
    let has_left = |binding: &&ResourceBinding| !binding.spec.clusters.iter().any(|target| target.name == member);
    Ok(bindings.iter().filter(has_left).count())
}

/// Creation time of a task that has none yet.
const UNDATED: &str = "an unknown time";

/// History of bindings, as observed by a watch.
#[derive(Default)]
pub(crate) struct Seen {
    bindings: BTreeMap<String, BindingMove>,
    /// Observed violations.
    wrong: Vec<String>,
    /// Tasks that ended before the binding was healthy elsewhere.
    early: Vec<String>,
    /// Key and decision of each change.
    decisions: BTreeSet<(String, String)>,
}

/// Move of one binding away from its first member.
#[derive(Default)]
struct BindingMove {
    /// Creation time of its task.
    task: Option<String>,
    /// Time at which the task was first seen.
    evicted: Option<Instant>,
    ended: bool,
    /// True once the binding was placed only on other members.
    left: bool,
    back: bool,
}

/// Watches all bindings until it is dropped.
pub(crate) struct Recorder {
    seen: Arc<Mutex<Seen>>,
    _watching: JoinSet<()>,
}

impl Recorder {
    /// Starts to watch how bindings leave a member.
    pub(crate) fn start(client: &Client, member: &'static str) -> Self {
        let (seen, api) = (
            Arc::<Mutex<Seen>>::default(),
            Api::<ResourceBinding>::namespaced(client.clone(), "default"),
        );
        let (noted, mut watching) = (Arc::clone(&seen), JoinSet::new());
        watching.spawn(async move {
            // Fixed pause: with exponential backoff, the watch would miss most events after the control plane
            // restarts.
            loop {
                let mut objects = std::pin::pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
                while let Some(Ok(binding)) = objects.next().await {
                    noted
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .note(&binding, member);
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        Self {
            seen,
            _watching: watching,
        }
    }

    /// Checks that each of `deployments` bindings left once, with one task that ended once, and that none returned.
    /// An interrupted watch misses events, so at least `tasks` tasks must have been observed from start to end.
    pub(crate) async fn check(&self, deployments: usize, tasks: usize) -> anyhow::Result<()> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        wait::until(
            &format!("all {deployments} are seen to leave, and {tasks} tasks from beginning to end"),
            CATCHES_UP,
            async || {
                let seen = seen();
                let left = seen.bindings.values().filter(|passage| passage.left).count();
                // A task ends after its binding has left.
                let has_ended = |passage: &&BindingMove| passage.task.is_some() && passage.ended;
                let ended = seen.bindings.values().filter(has_ended).count();
                if left == deployments && ended >= tasks {
                    Ok(())
                } else {
                    Err(format!("{left} left, {ended} tasks were seen from beginning to end"))
                }
            },
        )
        .await?;
        let seen = seen();
        ensure!(seen.wrong.is_empty(), "{}", seen.wrong.join("; "));
        Ok(())
    }

    /// Returns the times at which evictions were first seen, in order.
    pub(crate) fn evictions(&self) -> Vec<Instant> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut times: Vec<_> = seen.bindings.values().filter_map(|passage| passage.evicted).collect();
        times.sort_unstable();
        times
    }

    /// Checks that no task ended while its binding was not healthy on the targets.
    pub(crate) fn check_replaced(&self) -> anyhow::Result<()> {
        let early = &self.seen.lock().unwrap_or_else(PoisonError::into_inner).early;
        ensure!(
            early.is_empty(),
            "tasks ended before a replacement was healthy: {early:?}"
        );
        Ok(())
    }

    /// Returns the key of each binding with each id that its annotation had.
    pub(crate) fn decisions(&self) -> BTreeSet<(String, String)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.decisions.clone()
    }
}

impl Seen {
    fn note(&mut self, binding: &ResourceBinding, member: &str) {
        let name = binding.name_any();
        if let Some(decision) = binding.annotations().get(keys::DECISION) {
            self.decisions.insert((format!("default/{name}"), decision.clone()));
        }
        let passage = self.bindings.entry(name.clone()).or_default();
        let tasks: Vec<_> = binding
            .spec
            .graceful_eviction_tasks
            .iter()
            .filter(|task| task.from_cluster == member)
            .collect();
        if tasks.len() > 1 {
            self.wrong
                .push(format!("{name} has {} tasks for {member}", tasks.len()));
        }
        // Karmada's taint manager leaves the time of a task to the controller that ends it.
        let made = tasks.first().map(|task| match task.creation_timestamp {
            Some(time) => time.to_string(),
            None => UNDATED.to_owned(),
        });
        match (&passage.task, made) {
            (None, Some(made)) => (passage.task, passage.evicted) = (Some(made), Some(Instant::now())),
            (Some(first), Some(made)) if first == UNDATED && !passage.ended => passage.task = Some(made),
            (Some(first), Some(made)) if *first != made => {
                self.wrong.push(format!(
                    "{name} was evicted from {member} at {first} and again at {made}"
                ));
            }
            (Some(_), Some(_)) if passage.ended => self.wrong.push(format!("the task of {name} ended and is back")),
            (Some(_), None) => {
                if !passage.ended && !is_healthy(binding) {
                    self.early.push(name.clone());
                }
                passage.ended = true;
            }
            _ => {}
        }
        let is_there = binding.spec.clusters.iter().any(|target| target.name == member);
        if is_there && passage.left && !passage.back {
            passage.back = true;
            self.wrong
                .push(format!("{name} left {member} and is placed there again"));
        }
        passage.left |= !is_there && !binding.spec.clusters.is_empty();
    }
}

/// Returns true if a binding is healthy on each of its targets.
fn is_healthy(binding: &ResourceBinding) -> bool {
    let healthy = |cluster: &str| {
        let items = &binding.status.aggregated_status;
        items
            .iter()
            .any(|item| item.cluster_name == cluster && item.health == Some(Health::Healthy))
    };
    let targets = &binding.spec.clusters;
    !targets.is_empty() && targets.iter().all(|target| healthy(&target.name))
}

/// Returns a Deployment of a storm.
pub(crate) fn deployment(number: usize, replicas: u32, resources: &serde_json::Value) -> serde_json::Value {
    let name = format!("app-{number}");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"storm": "yes"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "nginx", "resources": resources}]},
            },
        },
    })
}

/// The scheduler uses the first affinity group that fits: member1 while it is healthy, then member2.
fn policy() -> serde_json::Value {
    let group = |cluster: &str| json!({"affinityName": cluster, "clusterNames": [cluster]});
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "storm", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "labelSelector": {"matchLabels": {"storm": "yes"}},
            }],
            "failover": {"cluster": {"purgeMode": "Gracefully"}},
            "placement": {"clusterAffinities": [group("member1"), group("member2")]},
        },
    })
}
