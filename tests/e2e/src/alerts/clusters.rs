//! Alerts about member clusters and about what is written to them.

use std::time::Duration;

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::trial::Trial;
use crate::federation::Plan;
use crate::policies::to_member2;
use crate::site::Site;
use crate::wait;

/// Alerts of this group.
pub(super) const ALERTS: &[&str] = &[
    "BulkheadClusterFlapping",
    "BulkheadClusterNotReady",
    "BulkheadManyClustersNotReady",
    "BulkheadNodesNotReady",
    "BulkheadReconcileErrors",
];
/// Number of objects that a member has already. Their retries are more than one per second for longer than the alert
/// needs.
const TAKEN: usize = 150;
/// Number of requests at the same time.
const WRITERS: usize = 8;
/// Longest flapping. The shortened range of the rule is three minutes.
const FLAPS_MAX: usize = 12;

/// A member flaps, all are lost, nodes stop their heartbeats, and a member has objects of other owners.
pub(super) async fn run(site: &Site) -> anyhow::Result<()> {
    const NAME: &str = "alerts-clusters";
    let journal = site.logs().join(NAME).join("journal").display().to_string();
    let recorded = format!("--journal={journal}");
    let first = [recorded.as_str()];
    let plan = Plan {
        first: &first,
        ..Plan::default()
    };
    let mut trial = Box::pin(Trial::start(site, NAME, ALERTS, plan)).await?;
    trial.scrape(&[0]).await?;
    trial.silent(ALERTS).await?;
    flapping(&mut trial, &journal).await?;
    lost(&mut trial).await?;
    nodes(&mut trial).await?;
    errors(&mut trial).await?;
    // The range of its rule is three minutes.
    trial.end(&["BulkheadClusterFlapping"]).await?;
    trial.finish()
}

/// The API server of a member hangs again and again.
async fn flapping(trial: &mut Trial<'_>, journal: &str) -> anyhow::Result<()> {
    for _ in 0..FLAPS_MAX {
        trial.federation.member("member1")?.pause_api_server()?;
        trial.federation.wait_ready("member1", false).await?;
        trial.federation.member("member1")?.resume_api_server()?;
        trial.federation.wait_ready("member1", true).await?;
        let alerts = trial.prometheus.alerts().await?;
        if alerts
            .iter()
            .any(|alert| alert.is_firing && alert.name == "BulkheadClusterFlapping")
        {
            break;
        }
    }
    let labels = [("member_cluster", "member1")];
    let section = trial.fires_with("BulkheadClusterFlapping", &labels).await?;
    let history = section.code("bulkhead history")?.replace("CLUSTER", "member1");
    let (code, said) = trial.federation.shell(&format!("{history} --journal {journal}"))?;
    ensure!(
        code == Some(0) && said.matches("ReadyChanged").count() > 6,
        "{history}: exit code {code:?}: {said}"
    );
    Ok(())
}

/// The API servers of both members are lost.
async fn lost(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const REASON: &str = "ClusterNotReachable";
    // A loss before may have raised it.
    trial.silent(&["BulkheadClusterNotReady"]).await?;
    trial.federation.member("member1")?.kill_api_server();
    let labels = [("member_cluster", "member1")];
    let one = trial.fires_with("BulkheadClusterNotReady", &labels).await?;
    one.says(&format!("`{REASON}`"))?;
    let show = "kubectl --kubeconfig KARMADA get cluster NAME";
    let cluster = trial.run(&one, show, &[("NAME", "member1")])?;
    ensure!(cluster.contains(REASON), "the reason is not shown: {cluster}");
    trial.federation.member("member2")?.kill_api_server();
    let many = trial.fires("BulkheadManyClustersNotReady").await?;
    let member = trial.federation.member("member2")?.kubeconfig().display().to_string();
    let probe = ("kubectl --kubeconfig MEMBER get --raw", [("MEMBER", member.as_str())]);
    let (code, said) = trial.try_run(&many, probe.0, &probe.1)?;
    ensure!(code != Some(0), "a lost member answers: {said}");
    for member in ["member1", "member2"] {
        trial.federation.member(member)?.start_api_server().await?;
    }
    trial.run(&many, probe.0, &probe.1)?;
    trial
        .end(&["BulkheadClusterNotReady", "BulkheadManyClustersNotReady"])
        .await
}

/// The nodes of a member stop their heartbeats. Its API server is ready.
async fn nodes(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    trial.federation.member("member2")?.pause_nodes()?;
    let labels = [("member_cluster", "member2")];
    let section = trial.fires_with("BulkheadNodesNotReady", &labels).await?;
    section.says("The API server of the member may be ready")?;
    trial
        .federation
        .is_ready("member2", true)
        .await
        .map_err(anyhow::Error::msg)?;
    let member = trial.federation.member("member2")?.kubeconfig().display().to_string();
    let values = [("MEMBER", member.as_str())];
    let nodes = trial.run(&section, "kubectl --kubeconfig MEMBER get nodes", &values)?;
    ensure!(nodes.contains("NotReady"), "no node is shown as not ready: {nodes}");
    trial.federation.member("member2")?.resume_nodes()?;
    trial.end(&["BulkheadNodesNotReady"]).await
}

/// A member has objects that Bulkhead does not manage, with the names of those that it has to create.
async fn errors(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    const CAUSE: &str = "already exists in the cluster";
    let mut policy = to_member2("taken", "v1", "ConfigMap");
    policy["spec"]["conflictResolution"] = json!("Abort");
    let member = trial.federation.member("member2")?.client().await?;
    create(&member, "member").await?;
    create(&trial.federation.client, "hub").await?;
    trial
        .federation
        .kubectl_with(&["apply", "-f", "-"], &policy.to_string())?;
    let labels = [("controller", "execution-controller")];
    let section = trial.fires_with("BulkheadReconcileErrors", &labels).await?;
    let most = trial.prometheus.query(section.code("topk(")?).await?;
    ensure!(
        most.iter().any(|labels| labels
            .get("controller")
            .is_some_and(|name| name == "execution-controller")),
        "the expression of the runbook does not show the controller: {most:?}"
    );
    let lines = trial.logged(&section, 0, &[("CONTROLLER", "execution-controller")])?;
    ensure!(lines.contains(CAUSE), "the log does not have the cause: {lines}");
    section.says(&format!("`{CAUSE}"))?;
    section.says("`conflictResolution: Overwrite`")?;
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    trial
        .federation
        .kubectl_with(&["apply", "-f", "-"], &policy.to_string())?;
    let api: Api<ConfigMap> = Api::namespaced(member, "default");
    wait::until(
        "the member has the objects of the hub",
        Duration::from_mins(3),
        async || {
            let listed = api.list(&ListParams::default().labels("taken=yes")).await;
            let items = listed.map_err(|error| error.to_string())?.items;
            let is_ours = |object: &&ConfigMap| {
                let data = object.data.as_ref().and_then(|data| data.get("from"));
                data.is_some_and(|from| from == "hub")
            };
            let ours = items.iter().filter(is_ours).count();
            if ours == TAKEN {
                Ok(())
            } else {
                Err(format!("{ours} of {TAKEN}"))
            }
        },
    )
    .await?;
    trial.end(&["BulkheadReconcileErrors"]).await
}

/// Creates the objects.
async fn create(client: &Client, from: &str) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let created = stream::iter(0..TAKEN).map(|number| {
        let (api, from) = (api.clone(), from.to_owned());
        async move {
            let object =
                json!({"metadata": {"name": format!("taken-{number}"), "labels": {"taken": "yes"}}, "data": {"from": from}});
            api.create(&PostParams::default(), &serde_json::from_value(object)?)
                .await?;
            anyhow::Ok(())
        }
    });
    created.buffer_unordered(WRITERS).try_collect().await
}
