//! Alerts about the number of processes and their leader.

use anyhow::ensure;
use rustix::process::Signal;

use super::trial::Trial;
use crate::faults::LEASE;
use crate::federation::{Plan, QUICK};
use crate::site::Site;
use crate::soundness::wait_for_line;

/// Alerts of this group.
pub(super) const ALERTS: &[&str] = &[
    "BulkheadNoStandby",
    "BulkheadDown",
    "BulkheadNotWorking",
    "BulkheadTwoLeaders",
];
/// Lease of a process on a node that is gone. It ends 40 s after a candidate has seen it.
const OF_A_LOST_NODE: &str = r#"{"spec": {"holderIdentity": "on-a-lost-node", "leaseDurationSeconds": 40}}"#;
/// Name of the Lease of a second installation.
const SECOND: &str = "bulkhead-second";

/// Processes end, cannot start, do not get the Lease, and lead at the same time.
pub(super) async fn run(site: &Site) -> anyhow::Result<()> {
    let settings = [QUICK, LEASE].concat();
    let plan = Plan {
        members: 1,
        settings: &settings,
        ..Plan::default()
    };
    let mut trial = Box::pin(Trial::start(site, "alerts-processes", ALERTS, plan)).await?;
    trial.federation.start_bulkhead(&[])?;
    trial.scrape(&[0, 1]).await?;
    trial.silent(ALERTS).await?;
    no_standby(&mut trial).await?;
    down(&mut trial).await?;
    not_working(&mut trial).await?;
    two_leaders(&mut trial).await?;
    trial.finish()
}

/// Stops a process as a Deployment does.
async fn stop(trial: &mut Trial<'_>, process: usize) -> anyhow::Result<()> {
    trial.federation.signal(process, Signal::TERM)?;
    trial.federation.wait_ended(process).await
}

/// The second process has no room until another node has some.
async fn no_standby(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    stop(trial, 1).await?;
    let section = trial.fires("BulkheadNoStandby").await?;
    section.says("Make room")?;
    trial.federation.start_bulkhead(&[])?;
    trial.scrape(&[0, 2]).await?;
    trial.end(&["BulkheadNoStandby"]).await
}

/// A rollout has a setting that no process can start with. The log names the cause that the runbook lists.
async fn down(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const CAUSE: &str = "is not a duration";
    stop(trial, 0).await?;
    stop(trial, 2).await?;
    trial.federation.start_bulkhead(&["--graceful-eviction-timeout=soon"])?;
    trial.federation.wait_ended(3).await?;
    let section = trial.fires("BulkheadDown").await?;
    section.says(&format!("`{CAUSE}`"))?;
    wait_for_line(&mut trial.federation, 3, CAUSE).await?;
    trial.federation.start_bulkhead(&[])?;
    trial.federation.start_bulkhead(&[])?;
    trial.scrape(&[4, 5]).await?;
    trial.end(&["BulkheadDown"]).await
}

/// The Lease belongs to a process that is gone. The new ones wait for one lease duration.
async fn not_working(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const WAITS: &str = "holds the lease";
    stop(trial, 4).await?;
    stop(trial, 5).await?;
    trial.federation.patch_lease(OF_A_LOST_NODE)?;
    trial.federation.start_bulkhead(&[])?;
    trial.federation.start_bulkhead(&[])?;
    trial.scrape(&[6, 7]).await?;
    let section = trial.fires("BulkheadNotWorking").await?;
    section.says(&format!("`{WAITS}`"))?;
    wait_for_line(&mut trial.federation, 6, WAITS).await?;
    let lease = trial.run(
        &section,
        "kubectl --kubeconfig KARMADA -n karmada-system get lease",
        &[],
    )?;
    ensure!(
        lease.contains("on-a-lost-node"),
        "the holder of the Lease is not shown: {lease}"
    );
    let clusters = trial.run(&section, "kubectl --kubeconfig KARMADA get clusters", &[])?;
    ensure!(clusters.contains("member1"), "no cluster is shown: {clusters}");
    section.says("wait for one lease duration")?;
    trial.end(&["BulkheadNotWorking"]).await
}

/// A second installation has a Lease of its own.
async fn two_leaders(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    let lease = format!("--leader-elect-resource-name={SECOND}");
    trial.federation.start_bulkhead(&[&lease])?;
    trial.scrape(&[6, 7, 8]).await?;
    let section = trial.fires("BulkheadTwoLeaders").await?;
    let leases = trial.run(&section, "kubectl --kubeconfig KARMADA get leases", &[])?;
    ensure!(leases.contains(SECOND), "the second Lease is not shown: {leases}");
    section.says("EvictionPause")?;
    let introduction = trial.runbook.introduction();
    trial.run(&introduction, "bulkhead pause", &[])?;
    stop(trial, 8).await?;
    trial.end(&["BulkheadTwoLeaders"]).await?;
    // The registration of the removed installation outlives it.
    let policy = ["taint-policy.yaml"];
    ensure!(
        trial.federation.apply_example("nginx-divided", &policy).is_err(),
        "the webhook of the removed installation does not block changes"
    );
    let remove = "kubectl --kubeconfig KARMADA delete mutatingwebhookconfiguration";
    trial.run(&section, remove, &[("LEASE", SECOND)])?;
    trial
        .federation
        .apply_example_when_admitted("nginx-divided", &policy)
        .await?;
    trial.run(&introduction, "bulkhead resume", &[])?;
    let pauses = trial.federation.kubectl(&["get", "evictionpauses", "-o", "name"])?;
    ensure!(pauses.is_empty(), "a pause is left: {pauses}");
    Ok(())
}
