//! Scenarios that lose a member, a leader or an agent, and names that other scenarios share.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bulkhead_core::model::FailoverState;
use rustix::process::Signal;

use crate::federation::{Federation, Plan, QUICK};
use crate::site::Site;
use crate::wait;

/// Kind of member loss.
#[derive(Clone, Copy)]
pub(crate) enum Loss {
    /// Connections are refused.
    Killed,
    /// Connections are accepted but get no response.
    Hangs,
}

pub(crate) const DIVIDED: &[&str] = &["taint-policy.yaml", "health.yaml", "policy.yaml", "nginx.yaml"];
const DUPLICATED: &[&str] = &["taint-policy.yaml", "policy.yaml", "nginx.yaml"];
pub(crate) const BINDING: &str = "nginx-deployment";

/// Divided replicas move when a member is lost, and do not move back.
pub(crate) async fn divided(site: &Site, loss: Loss) -> anyhow::Result<()> {
    let name = match loss {
        Loss::Killed => "divided-killed",
        Loss::Hangs => "divided-hangs",
    };
    let mut federation = Box::pin(Federation::start(site, name, Plan::default())).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.wait_deployed("member1", "nginx", Some(1)).await?;
    federation.wait_deployed("member2", "nginx", Some(2)).await?;
    federation.wait_summed("member2").await?;
    match loss {
        Loss::Killed => federation.member("member1")?.kill_api_server(),
        Loss::Hangs => federation.member("member1")?.pause_api_server()?,
    }
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    federation.wait_deployed("member2", "nginx", Some(3)).await?;
    federation.wait_summed("member2").await?;
    match loss {
        Loss::Killed => federation.member("member1")?.start_api_server().await?,
        Loss::Hangs => federation.member("member1")?.resume_api_server()?,
    }
    federation.wait_ready("member1", true).await?;
    federation.wait_deployed("member1", "nginx", None).await?;
    federation.wait_summed("member1").await?;
    nothing_moves_back(&federation, &[("member2", 3)]).await?;
    let steps = [
        (FailoverState::Evicted, "member1"),
        (FailoverState::Released, "member1"),
    ];
    federation.wait_recorded(BINDING, &steps).await
}

async fn nothing_moves_back(federation: &Federation<'_>, expected: &[(&str, i32)]) -> anyhow::Result<()> {
    wait::stays("nothing moves back", Duration::from_secs(10), async || {
        federation.placed(BINDING, expected).await
    })
    .await
}

/// With a full copy on two of three members, the lost copy is recreated on the third member, the remaining copy stays
/// unchanged, and nothing moves back.
pub(crate) async fn duplicated(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        "duplicated",
        Plan {
            members: 3,
            ..Plan::default()
        },
    ))
    .await?;
    federation.apply_example("nginx-duplicated", DUPLICATED)?;
    federation
        .wait_placed(BINDING, &[("member1", 2), ("member2", 2)])
        .await?;
    federation.wait_deployed("member2", "nginx", Some(2)).await?;
    let left = federation.deployment_uid("member2", "nginx").await?;
    federation.member("member1")?.pause_api_server()?;
    federation.wait_ready("member1", false).await?;
    federation
        .wait_placed(BINDING, &[("member2", 2), ("member3", 2)])
        .await?;
    federation.wait_deployed("member3", "nginx", Some(2)).await?;
    federation.member("member1")?.resume_api_server()?;
    federation.wait_ready("member1", true).await?;
    federation.wait_deployed("member1", "nginx", None).await?;
    nothing_moves_back(&federation, &[("member2", 2), ("member3", 2)]).await?;
    ensure!(
        federation.deployment_uid("member2", "nginx").await? == left,
        "the copy on member2 was made anew"
    );
    Ok(())
}

/// Runs `helm lint` and `helm template`, the alert tests, and a server-side dry run of every object in `host/deploy`.
pub(crate) async fn manifests(site: &Site) -> anyhow::Result<()> {
    let federation = Box::pin(Federation::start(
        site,
        "manifests",
        Plan {
            members: 1,
            ..Plan::default()
        },
    ))
    .await?;
    let output = Command::new(site.root.join("host/deploy/check.sh"))
        .arg("--server")
        .env("HELM", site.servers.programs.join("helm"))
        .env("PROMTOOL", site.servers.programs.join("promtool"))
        .env("KUBECONFIG", federation.hub.kubeconfig())
        .output()
        .context("starting host/deploy/check.sh")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let summary = said.lines().last().unwrap_or_default();
    ensure!(
        output.status.success() && summary.ends_with(" 0 failed, 0 skipped"),
        "{said}"
    );
    Ok(())
}

/// A Pull member is served by its agent with the permissions of an agent. Without the agent, the member becomes
/// Unknown.
pub(crate) async fn agent(site: &Site) -> anyhow::Result<()> {
    let settings: Vec<_> = QUICK
        .iter()
        .copied()
        .chain(["--cluster-monitor-grace-period=5s"])
        .collect();
    let plan = Plan {
        settings: &settings,
        pull: &["member1"],
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "agent", plan)).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.wait_deployed("member1", "nginx", Some(1)).await?;
    federation.kill_agent("member1");
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    federation.start_agent("member1")?;
    federation.wait_ready("member1", true).await?;
    federation.wait_deployed("member1", "nginx", None).await?;
    federation.wait_summed("member1").await
}

/// One process leads while the others wait, and each new leader continues the work of the previous one.
pub(crate) async fn leaders(site: &Site) -> anyhow::Result<()> {
    let settings: Vec<_> = QUICK
        .iter()
        .copied()
        .chain([
            "--leader-elect-lease-duration=6s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=1s",
        ])
        .collect();
    let mut federation = Box::pin(Federation::start(
        site,
        "leaders",
        Plan {
            settings: &settings,
            ..Plan::default()
        },
    ))
    .await?;
    federation.start_bulkhead(&[])?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    // The leader is killed in the middle of a failover: the second process completes it.
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    let first = holder(&federation)?;
    if let Some(leader) = federation.processes().first_mut() {
        leader.kill();
    }
    let second = next_holder(&federation, &first).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    // The leader is paused for longer than its lease: the third process takes over, and the second one exits when it
    // resumes.
    federation.start_bulkhead(&[])?;
    federation.signal(1, Signal::STOP)?;
    next_holder(&federation, &second).await?;
    federation.signal(1, Signal::CONT)?;
    federation.wait_ended(1).await?;
    federation.member("member1")?.start_api_server().await?;
    federation.wait_ready("member1", true).await?;
    // The leader shuts down gracefully: it releases the lease at once.
    federation.signal(2, Signal::TERM)?;
    wait::until("the lease is free", Duration::from_secs(10), async || {
        let holder = self::holder(&federation).map_err(|error| error.to_string())?;
        if holder.is_empty() { Ok(()) } else { Err(holder) }
    })
    .await?;
    Ok(())
}

/// Waits until the lease has another holder than `holder`, and returns that holder.
pub(crate) async fn next_holder(federation: &Federation<'_>, holder: &str) -> anyhow::Result<String> {
    wait::until("another process holds the lease", Duration::from_secs(30), async || {
        let now = self::holder(federation).map_err(|error| error.to_string())?;
        if now == holder || now.is_empty() {
            Err(now)
        } else {
            Ok(())
        }
    })
    .await?;
    self::holder(federation)
}

pub(crate) fn holder(federation: &Federation<'_>) -> anyhow::Result<String> {
    let path = "jsonpath={.spec.holderIdentity}";
    federation.kubectl(&["get", "lease", "bulkhead", "--namespace", "karmada-system", "-o", path])
}
