//! A storm: many Deployments of three replicas on two members, one of which is lost. The same work that Karmada was
//! measured with.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bulkhead_api::ResourceBinding;
use bulkhead_core::model::Health;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::federation::{Federation, Plan, Site};
use crate::{storm, wait};

/// How long each part may take.
const LIMIT: Duration = Duration::from_mins(10);

/// Default flags but for the switches that failover needs, and, as Karmada was measured, an eviction rate of 1000/s and
/// 400 writes a second for the scheduler.
const SETTINGS: &[&str] = &[
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--resource-eviction-rate=1000",
    "--kube-api-qps=400",
    "--kube-api-burst=800",
];

/// Runs the storm and prints what was measured.
pub(crate) async fn run(site: &Site, deployments: usize) -> anyhow::Result<()> {
    let mut federation =
        Box::pin(Federation::start(site, "bench", Plan { settings: SETTINGS, ..Plan::default() })).await?;
    federation.apply_example("nginx-divided", &["taint-policy.yaml"])?;
    federation.kubectl_with(&["apply", "-f", "-"], &policy().to_string())?;
    let api: Api<Deployment> = Api::namespaced(federation.client.clone(), "default");
    let started = Instant::now();
    for number in 0..deployments {
        let deployment = storm::deployment(number, 3, &json!({"requests": {"cpu": "10m"}}));
        api.create(&PostParams::default(), &serde_json::from_value(deployment)?).await?;
    }
    let all = async |moved: bool| check(&federation.client, deployments, moved).await;
    wait::until("everything is healthy on both members", LIMIT, async || all(false).await).await?;
    println!("create → all {deployments} healthy on both members: {:.1} s", started.elapsed().as_secs_f32());
    let before = counts(&federation.client).await?;
    let lost = Instant::now();
    federation.member("member1")?.kill_api_server();
    let mut first = None;
    let client = federation.client.clone();
    wait::until("everything moved", LIMIT, async || {
        let moved = moved(&client).await.map_err(|error| error.to_string())?;
        if moved > 0 {
            first.get_or_insert_with(Instant::now);
        }
        if moved == deployments { Ok(()) } else { Err(format!("{moved} of {deployments} moved")) }
    })
    .await?;
    let first = first.context("nothing moved")?;
    let last = Instant::now();
    wait::until("everything is healthy again", LIMIT, async || check(&client, deployments, true).await).await?;
    let after = counts(&client).await?;
    let seconds = (last - first).as_secs_f64().max(0.2);
    println!("loss → first binding moved: {:.1} s", (first - lost).as_secs_f32());
    println!("evictions per second: {:.1}", deployments as f64 / seconds);
    println!("first eviction → last new placement: {:.1} s", (last - first).as_secs_f32());
    println!("last placement → all healthy: {:.1} s", last.elapsed().as_secs_f32());
    let writes = after.writes - before.writes;
    println!("writes per eviction (bindings and Works, with status): {:.1}", writes / deployments as f64);
    println!("writes answered 409: {:.1} %", 100.0 * (after.conflicts - before.conflicts) / writes.max(1.0));
    println!("logs in {}", federation.logs().display());
    Ok(())
}

async fn bindings(client: &Client) -> kube::Result<Vec<ResourceBinding>> {
    let api: Api<ResourceBinding> = Api::namespaced(client.clone(), "default");
    Ok(api.list(&ListParams::default()).await?.items)
}

/// Whether all bindings are healthy where they should be.
async fn check(client: &Client, expected: usize, moved: bool) -> Result<(), String> {
    let bindings = bindings(client).await.map_err(|error| error.to_string())?;
    let healthy = |binding: &&ResourceBinding| {
        let targets = &binding.spec.clusters;
        let right = if moved { targets.len() == 1 } else { targets.len() == 2 };
        right
            && targets.iter().all(|target| {
                let items = &binding.status.aggregated_status;
                items.iter().any(|item| item.cluster_name == target.name && item.health == Some(Health::Healthy))
            })
    };
    let count = bindings.iter().filter(healthy).count();
    if count == expected { Ok(()) } else { Err(format!("{count} of {expected} are healthy")) }
}

async fn moved(client: &Client) -> kube::Result<usize> {
    let bindings = bindings(client).await?;
    let has_moved = |binding: &&ResourceBinding| matches!(binding.spec.clusters.as_slice(), [only] if only.name == "member2" && only.replicas == 3);
    Ok(bindings.iter().filter(has_moved).count())
}

struct Counts {
    writes: f64,
    conflicts: f64,
}

/// Writes of bindings and Works that the API server counted, status included.
async fn counts(client: &Client) -> anyhow::Result<Counts> {
    let text = client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut counts = Counts { writes: 0.0, conflicts: 0.0 };
    for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let says = |key: &str, values: &[&str]| values.iter().any(|value| line.contains(&format!("{key}=\"{value}\"")));
        if says("resource", &["resourcebindings", "works"])
            && says("verb", &["PUT", "PATCH", "POST", "DELETE", "APPLY"])
        {
            let value: f64 = line.rsplit(' ').next().unwrap_or_default().parse().unwrap_or(0.0);
            counts.writes += value;
            if says("code", &["409"]) {
                counts.conflicts += value;
            }
        }
    }
    Ok(counts)
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
