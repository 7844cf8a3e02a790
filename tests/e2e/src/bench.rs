//! Eviction storm benchmark: many Deployments of three replicas on two members, one of which is lost. Karmada was
//! measured with the same workload.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bulkhead_api::ResourceBinding;
use bulkhead_core::model::{AggregatedStatusItem, Health, TargetCluster};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::PostParams;
use kube::runtime::reflector::{self, Store, reflector};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;

use crate::comparison::{Figures, compared};
use crate::federation::Federation;
use crate::requests::Writes;
use crate::site::Site;
use crate::telemetry::{Choice, Telemetry};
use crate::{storm, wait};

/// Time limit of each phase.
const LIMIT: Duration = Duration::from_mins(10);
/// Required time without writes until the system counts as settled.
const SETTLE: Duration = Duration::from_secs(5);
/// Resources whose writes are attributed to the evictions.
const COUNTED: &[&str] = &["resourcebindings", "works"];

/// Default flags except for the switches that failover needs. As in the measurement of Karmada, the eviction rate is
/// 1000/s and the scheduler may write 400 times a second.
const SETTINGS: &[&str] = &[
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--resource-eviction-rate=1000",
    "--kube-api-qps=400",
    "--kube-api-burst=800",
];

/// Name of the log folder.
const NAME: &str = "bench";

/// Runs the storm and prints the measurements, or the medians of pairs of runs.
pub(crate) async fn run(site: &Site, deployments: usize, choice: &Choice) -> anyhow::Result<()> {
    let measure = async |telemetry: Telemetry<'_>| Box::pin(measure(site, deployments, telemetry)).await;
    match choice.compare {
        Some(pairs) => print!("\n{}", compared(choice, pairs, measure).await?),
        None => drop(measure(choice.single()).await?),
    }
    Ok(())
}

async fn measure(site: &Site, deployments: usize, telemetry: Telemetry<'_>) -> anyhow::Result<Figures> {
    let (mut federation, consumers) = telemetry.start(site, NAME, SETTINGS).await?;
    federation.apply_example("nginx-divided", &["taint-policy.yaml"])?;
    federation.kubectl_with(&["apply", "-f", "-"], &policy().to_string())?;
    let api: Api<Deployment> = Api::namespaced(federation.client.clone(), "default");
    let started = Instant::now();
    for number in 0..deployments {
        let deployment = storm::deployment(number, 3, &json!({"requests": {"cpu": "10m"}}));
        api.create(&PostParams::default(), &serde_json::from_value(deployment)?)
            .await?;
    }
    let bindings = Bindings::watch(&federation.client);
    wait::until("everything is healthy on both members", LIMIT, async || {
        bindings.check(deployments, false)
    })
    .await?;
    println!(
        "create → all {deployments} healthy on both members: {:.1} s",
        started.elapsed().as_secs_f32()
    );
    // Writes caused by the creation are not attributed to the evictions.
    let before = Writes::settled(&federation.client, COUNTED, SETTLE, LIMIT).await?;
    let (lost, spent) = (Instant::now(), spent(&mut federation)?);
    federation.member("member1")?.kill_api_server();
    let mut first = None;
    wait::until("everything moved", LIMIT, async || {
        let moved = bindings.moved();
        if moved > 0 {
            first.get_or_insert_with(Instant::now);
        }
        if moved == deployments {
            Ok(())
        } else {
            Err(format!("{moved} of {deployments} moved"))
        }
    })
    .await?;
    let first = first.context("nothing moved")?;
    let last = Instant::now();
    wait::until("everything is healthy again", LIMIT, async || {
        bindings.check(deployments, true)
    })
    .await?;
    println!("last placement → all healthy: {:.1} s", last.elapsed().as_secs_f32());
    let writes = Writes::settled(&federation.client, COUNTED, SETTLE, LIMIT)
        .await?
        .since(&before);
    let seconds = (last - first).as_secs_f64().max(0.2);
    println!("loss → first binding moved: {:.1} s", (first - lost).as_secs_f32());
    println!("evictions per second: {:.1}", deployments as f64 / seconds);
    println!(
        "first eviction → last new placement: {:.1} s",
        (last - first).as_secs_f32()
    );
    let (all, conflicts) = (writes.total(COUNTED), writes.conflicts(COUNTED));
    println!(
        "writes per eviction (bindings and Works, with status): {:.1}",
        all / deployments as f64
    );
    println!("writes answered 409: {:.1} %", 100.0 * conflicts / all.max(1.0));
    for (resource, count) in writes.by_resource() {
        println!("  {resource}: {:.1} per eviction", count / deployments as f64);
    }
    let spent_s = self::spent(&mut federation)?.saturating_sub(spent).as_secs_f64();
    println!("processor time of Bulkhead, from the loss on: {spent_s:.1} s");
    consumers.check()?;
    println!("logs in {}", federation.logs().display());
    Ok(vec![
        ("processor time of the storm, s", spent_s),
        ("evictions per second", deployments as f64 / seconds),
        ("writes per eviction", all / deployments as f64),
    ])
}

/// Returns the processor time of the first process.
fn spent(federation: &mut Federation<'_>) -> anyhow::Result<Duration> {
    let process = federation.processes().first().context("there is no process")?;
    Ok(process.usage()?.spent)
}

/// Bindings in a watch cache. Repeated lists would use CPU time of the API server under measurement.
struct Bindings {
    known: Store<ResourceBinding>,
    _watching: JoinSet<()>,
}

impl Bindings {
    fn watch(client: &Client) -> Self {
        let api: Api<ResourceBinding> = Api::namespaced(client.clone(), "default");
        let (known, writer) = reflector::store();
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut watching = JoinSet::new();
        watching.spawn(reflector(writer, events).for_each(|_| std::future::ready(())));
        Self {
            known,
            _watching: watching,
        }
    }

    /// Fails unless all bindings are healthy where expected, with all replicas and without an old copy.
    fn check(&self, expected: usize, moved: bool) -> Result<(), String> {
        let is_healthy = |binding: &Arc<ResourceBinding>| {
            let targets = &binding.spec.clusters;
            let items = &binding.status.aggregated_status;
            let ready = |item: &AggregatedStatusItem| item.status.as_ref()?.get("readyReplicas")?.as_i64();
            let healthy = |target: &TargetCluster| {
                items.iter().any(|item| {
                    item.cluster_name == target.name
                        && item.health == Some(Health::Healthy)
                        && ready(item) == Some(target.replicas.into())
                })
            };
            let whole = targets.len() == if moved { 1 } else { 2 } && targets.iter().all(healthy);
            whole && binding.spec.graceful_eviction_tasks.is_empty()
        };
        let count = self.known.state().iter().filter(|binding| is_healthy(binding)).count();
        if count == expected {
            Ok(())
        } else {
            Err(format!("{count} of {expected} are healthy"))
        }
    }

    fn moved(&self) -> usize {
        let has_moved = |binding: &&Arc<ResourceBinding>| matches!(binding.spec.clusters.as_slice(), [only] if only.name == "member2" && only.replicas == 3);
        self.known.state().iter().filter(has_moved).count()
    }
}

fn policy() -> serde_json::Value {
    let weight = |cluster: &str, weight: i64| json!({"targetCluster": {"clusterNames": [cluster]}, "weight": weight});
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
            "placement": {
                "clusterAffinity": {"clusterNames": ["member1", "member2"]},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"staticWeightList": [weight("member1", 1), weight("member2", 2)]},
                },
            },
        },
    })
}
