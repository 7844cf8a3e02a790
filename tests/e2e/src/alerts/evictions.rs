//! Alerts about evictions that wait. The other alerts that need a leader without restarts are raised meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::Signal;

use super::trial::Trial;
use super::{certificate, conflicts, plugins};
use crate::faults::some_left;
use crate::federation::{Plan, QUICK};
use crate::site::Site;
use crate::soundness::wait_for_line;
use crate::{storm, wait};

/// Alerts of this group.
pub(super) const ALERTS: &[&str] = &[
    "BulkheadEvictionsStuck",
    "BulkheadCertificateEnds",
    "BulkheadWriteConflicts",
    "BulkheadPluginFaults",
    "BulkheadPluginSlow",
    "BulkheadQueueOld",
    "BulkheadEvictionsSlow",
];
/// Number of Deployments to evict. At the default rate of 0.5 per second they leave in two minutes.
const DEPLOYMENTS: usize = 60;
/// Time for which the evictions wait. The buckets of the metric double: a wait of more than 512 s counts as one of up
/// to 1,024 s, and its estimate is above the threshold of 900 s.
const WAIT: Duration = Duration::from_mins(9);
/// Number of the first process, which leads, and of the second one, whose certificate ends.
const LEADER: usize = 0;
const STANDBY: usize = 1;

/// Evictions wait behind a forgotten pause, and then behind their rate.
pub(super) async fn run(site: &Site) -> anyhow::Result<()> {
    // The Lease has its default duration: a plugin uses all processors for minutes.
    let plan = Plan {
        settings: &QUICK[..QUICK.len() - 1],
        ..Plan::default()
    };
    let mut trial = Box::pin(Trial::start(site, "alerts-evictions", ALERTS, plan)).await?;
    trial.scrape(&[LEADER]).await?;
    trial.silent(ALERTS).await?;
    storm::prepare(&trial.federation, DEPLOYMENTS).await?;
    trial.federation.kubectl_with(&["apply", "-f", "-"], FORGOTTEN)?;
    trial.federation.member("member1")?.kill_api_server();
    trial.federation.wait_ready("member1", false).await?;
    let since = Instant::now();
    let labels = [("cluster_name", "member1")];
    let stuck = trial.fires_with("BulkheadEvictionsStuck", &labels).await?;

    let renewal = certificate::near_its_end(&mut trial, STANDBY).await?;
    trial.scrape(&[LEADER, STANDBY]).await?;
    renewal.raise(&mut trial).await?;
    conflicts::run(&mut trial).await?;
    plugins::faults(&mut trial).await?;
    plugins::slow(&mut trial).await?;
    // The metric is read from the new certificate within five minutes, which the waiting time includes.
    trial.end(&["BulkheadCertificateEnds"]).await?;
    trial.federation.signal(STANDBY, Signal::TERM)?;
    trial.federation.wait_ended(STANDBY).await?;
    tokio::time::sleep(WAIT.saturating_sub(since.elapsed())).await;

    let client = trial.federation.client.clone();
    // The bindings of the other trials are deleted by now or soon.
    wait::until(
        "no binding is elsewhere",
        Duration::from_mins(1),
        async || match storm::left(&client, "member1").await {
            Ok(0) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await
    .context("the pause did not hold")?;
    let pauses = "kubectl --kubeconfig KARMADA get evictionpauses";
    let pauses = trial.run(&stuck, pauses, &[])?;
    ensure!(pauses.contains("forgotten"), "the pause is not shown: {pauses}");
    stuck.says("Delete the pause")?;
    trial.federation.kubectl(&["delete", "evictionpause", "forgotten"])?;
    some_left(&trial.federation, 2).await?;
    trial.end(&["BulkheadEvictionsStuck"]).await?;

    let slow = trial.fires_with("BulkheadEvictionsSlow", &labels).await?;
    slow.says("Raise `resource-eviction-rate`")?;
    trial.federation.signal(LEADER, Signal::TERM)?;
    trial.federation.wait_ended(LEADER).await?;
    trial.federation.start_bulkhead(&["--resource-eviction-rate=100"])?;
    wait_for_line(&mut trial.federation, 2, "elected").await?;
    trial.scrape(&[2]).await?;
    storm::everything_on(&client, DEPLOYMENTS, "member2").await?;
    trial.end(&["BulkheadEvictionsSlow"]).await?;
    trial.finish()
}

const FORGOTTEN: &str = "\
apiVersion: bulkhead.dev/v1alpha1
kind: EvictionPause
metadata: {name: forgotten}
spec: {clusters: [member1], reason: maintenance of last month}
";
