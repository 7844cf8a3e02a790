//! Idle cost benchmark: resource usage during one minute with many healthy bindings and no changes.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::comparison::{Figures, compared};
use crate::federation::Federation;
use crate::policies::to_member2;
use crate::requests::Writes;
use crate::site::Site;
use crate::telemetry::{Choice, Telemetry};

/// Time limit for the creation of the bindings.
const LIMIT: Duration = Duration::from_mins(20);
/// Required time without writes before the measurement begins.
const QUIET: Duration = Duration::from_secs(15);
/// Duration of the measurement.
const TIME: Duration = Duration::from_mins(1);
/// Number of concurrent creations.
const CREATORS: usize = 8;
/// Resources that are written for bindings.
const FEDERATED: &[&str] = &["resourcebindings", "works", "configmaps", "events"];

/// Default settings, except for a larger write budget of the scheduler so that it becomes idle sooner.
const SETTINGS: &[&str] = &[
    "--feature-gates=Failover=true",
    "--kube-api-qps=400",
    "--kube-api-burst=800",
];

/// Name of the log folder, of the policy and of the label.
const NAME: &str = "idle";

/// Creates the bindings and prints the resource usage of a minute without changes, or the medians of pairs of runs.
pub(crate) async fn run(site: &Site, bindings: usize, choice: &Choice) -> anyhow::Result<()> {
    let measure = async |telemetry: Telemetry<'_>| Box::pin(measure(site, bindings, telemetry)).await;
    match choice.compare {
        Some(pairs) => print!("\n{}", compared(choice, pairs, measure).await?),
        None => drop(measure(choice.single()).await?),
    }
    Ok(())
}

async fn measure(site: &Site, bindings: usize, telemetry: Telemetry<'_>) -> anyhow::Result<Figures> {
    let (mut federation, consumers) = telemetry.start(site, NAME, SETTINGS).await?;
    federation.kubectl_with(&["apply", "-f", "-"], &to_member2(NAME, "v1", "ConfigMap").to_string())?;
    let api: Api<ConfigMap> = Api::namespaced(federation.client.clone(), "default");
    let created = stream::iter(0..bindings).map(|number| {
        let api = api.clone();
        async move {
            let object =
                json!({"metadata": {"name": format!("c-{number}"), "labels": {NAME: "yes"}}, "data": {"a": "b"}});
            api.create(&PostParams::default(), &serde_json::from_value(object)?)
                .await?;
            anyhow::Ok(())
        }
    });
    created.buffer_unordered(CREATORS).try_collect::<()>().await?;
    let client = federation.client.clone();
    let written = Writes::settled(&client, FEDERATED, QUIET, LIMIT)
        .await?
        .total(FEDERATED);
    println!(
        "writes until all {bindings} bindings rest: {:.1} for each",
        written / bindings as f64
    );
    let usage = |federation: &mut Federation<'_>| federation.processes()[0].usage();
    let (before, first) = (Writes::of(&client).await?, usage(&mut federation)?);
    tokio::time::sleep(TIME).await;
    let (writes, last) = (Writes::of(&client).await?.since(&before), usage(&mut federation)?);
    let share = 100.0 * last.spent.saturating_sub(first.spent).as_secs_f64() / TIME.as_secs_f64();
    let (resident, program) = (last.resident as f64 / 1e6, last.program as f64 / 1e6);
    println!(
        "idle with {bindings} bindings: {share:.2} % of a core, {resident:.0} MB resident, {program:.0} of them the \
         program itself"
    );
    println!("write requests to the hub in {} s, of all programs:", TIME.as_secs());
    for (resource, count) in writes.by_resource() {
        println!("  {resource}: {count:.0}");
    }
    consumers.check()?;
    Ok(vec![
        ("share of a core, %", share),
        ("resident memory, MB", resident),
        ("writes of a minute, without Leases", writes.total(FEDERATED)),
    ])
}
