//! Alerts about the permissions of the account, and about evictions that it cannot write.

use std::time::Duration;

use anyhow::ensure;
use rustix::process::Signal;

use super::trial::Trial;
use crate::faults::{LEASE, some_left};
use crate::federation::{Plan, QUICK};
use crate::site::Site;
use crate::{storm, wait};

/// Alerts of this group.
pub(super) const ALERTS: &[&str] = &[
    "BulkheadCannotRead",
    "BulkheadMissingPermissions",
    "BulkheadForbidden",
    "BulkheadEvictionsFail",
    "BulkheadEvicting",
];
/// Number of Deployments to evict. With [`RATE`], they leave for longer than the alert needs.
const DEPLOYMENTS: usize = 60;
const RATE: &str = "--resource-eviction-rate=1";
/// Evictions that a pause does not stop, because they are being written.
const IN_FLIGHT: usize = 2;
/// Arguments of each process in mode `all`.
const WEBHOOK: &[&str] = &["--webhook-bind-address=127.0.0.1:0"];
/// Command that applies the role of the mode.
const APPLY_ROLE: &str = "bulkhead account";

/// The role of a process lacks a verb at its start, and loses one in the middle of a storm.
pub(super) async fn run(site: &Site) -> anyhow::Result<()> {
    let settings = [&QUICK[..QUICK.len() - 1], LEASE, &[RATE]].concat();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let mut trial = Box::pin(Trial::start(site, "alerts-permissions", ALERTS, plan)).await?;
    trial.federation.signal(0, Signal::TERM)?;
    trial.federation.wait_ended(0).await?;
    trial.federation.start_bulkhead_in("all", WEBHOOK).await?;
    trial.scrape(&[1]).await?;
    trial.silent(ALERTS).await?;
    unreadable(&mut trial).await?;
    forbidden(&mut trial).await?;
    evicting(&mut trial).await?;
    trial.finish()
}

/// A process takes over with a role that has no right to list clusters. It reads them once it leads.
async fn unreadable(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const LIST: (&str, &str) = ("clusters", "cluster.karmada.io");
    let resource = format!("{}.{}", LIST.0, LIST.1);
    take_verb(trial, LIST, "list")?;
    trial.federation.signal(1, Signal::TERM)?;
    trial.federation.wait_ended(1).await?;
    trial.federation.start_bulkhead_as_account("all", WEBHOOK).await?;
    trial.scrape(&[2]).await?;
    let labels = [("resource", resource.as_str())];
    let cannot_read = trial.fires_with("BulkheadCannotRead", &labels).await?;
    cannot_read.says("`/readyz` of the pod")?;
    let ready = trial.federation.readiness(2).await?;
    ensure!(
        ready.contains("not ready") && ready.contains(LIST.0),
        "/readyz does not name the kind: {ready}"
    );
    cannot_read.says("`is forbidden`: apply the role of the mode.")?;
    let missing = trial.fires("BulkheadMissingPermissions").await?;
    let lines = trial.logged(&missing, 2, &[])?;
    ensure!(
        lines.contains(&format!("list {resource}")),
        "the log does not name the verb: {lines}"
    );
    trial.run(&missing, APPLY_ROLE, &[("MODE", "all")])?;
    trial.end(&["BulkheadCannotRead", "BulkheadMissingPermissions"]).await
}

/// Takes a verb on a resource from the role, and from its rule for the templates of any kind, which would allow it too.
fn take_verb(trial: &Trial<'_>, (resource, group): (&str, &str), verb: &str) -> anyhow::Result<()> {
    trial.federation.take_verb("all", resource, group, verb)?;
    trial.federation.take_verb("all", "*", "*", verb)
}

/// The role loses the right to patch bindings, and a member is lost.
async fn forbidden(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const PATCH: (&str, &str) = ("resourcebindings", "work.karmada.io");
    let resource = format!("{}.{}", PATCH.0, PATCH.1);
    storm::prepare(&trial.federation, DEPLOYMENTS).await?;
    take_verb(trial, PATCH, "patch")?;
    trial.federation.member("member1")?.kill_api_server();
    let labels = [("controller", "taint-manager")];
    let forbidden = trial.fires_with("BulkheadForbidden", &labels).await?;
    let fail = trial.fires("BulkheadEvictionsFail").await?;
    let errors = trial.prometheus.query(fail.code("sum by (error)")?).await?;
    ensure!(
        errors
            .iter()
            .any(|labels| labels.get("error").is_some_and(|error| error == "forbidden")),
        "the expression of the runbook does not show the error: {errors:?}"
    );
    let lines = trial.logged(&forbidden, 2, &[])?;
    ensure!(lines.contains(PATCH.0), "the log does not name the resource: {lines}");
    let values = [("MODE", "all"), ("VERB", "patch"), ("RESOURCE", resource.as_str())];
    let (code, said) = trial.try_run(&forbidden, "bulkhead doctor", &values)?;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        code == Some(1) && words.contains(&format!("patch {resource}")),
        "doctor does not name the verb: {code:?}: {said}"
    );
    trial.run(&forbidden, APPLY_ROLE, &values)?;
    let allowed = trial.run(&forbidden, "kubectl --kubeconfig KARMADA auth can-i", &values)?;
    ensure!(allowed.trim() == "yes", "the role is not applied: {allowed}");
    some_left(&trial.federation, 3).await
}

/// The evictions of the storm are stopped and continue.
async fn evicting(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    let section = trial.fires("BulkheadEvicting").await?;
    let taints = "kubectl --kubeconfig KARMADA get clusters -o custom-columns";
    let taints = trial.run(&section, taints, &[])?;
    ensure!(taints.contains("NoExecute"), "no taint is shown: {taints}");
    trial.run(&section, "kubectl --kubeconfig KARMADA get clusterdrains", &[])?;
    let leaving = "kubectl --kubeconfig KARMADA get resourcebindings,clusterresourcebindings";
    let leaving = trial.run(&section, leaving, &[])?;
    ensure!(leaving.contains("app-0-deployment"), "no binding is shown: {leaving}");
    section.says("create an EvictionPause first")?;
    let introduction = trial.runbook.introduction();
    trial.run(&introduction, "bulkhead pause", &[])?;
    let client = trial.federation.client.clone();
    let before = storm::left(&client, "member1").await?;
    ensure!(before < DEPLOYMENTS, "the storm was over before the pause");
    wait::stays("the pause holds", Duration::from_secs(5), async || {
        let left = storm::left(&client, "member1")
            .await
            .map_err(|error| error.to_string())?;
        if left <= before + IN_FLIGHT {
            Ok(())
        } else {
            Err(format!("{before} had left at the pause, and {left} now"))
        }
    })
    .await?;
    trial.end(&["BulkheadEvicting"]).await?;
    trial.run(&introduction, "bulkhead resume", &[])?;
    storm::everything_on(&client, DEPLOYMENTS, "member2").await?;
    trial.end(&["BulkheadForbidden", "BulkheadEvictionsFail"]).await
}
