//! What has to hold on real control planes.

use std::pin::Pin;
use std::time::Duration;

use rustix::process::Signal;

use crate::federation::{Federation, QUICK, Site};
use crate::wait;

type Outcome<'s> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 's>>;
type Scenario = for<'s> fn(&'s Site) -> Outcome<'s>;

/// Every scenario with its name.
pub(crate) fn all() -> Vec<(&'static str, Scenario)> {
    vec![
        ("divided, the member is killed", |site| Box::pin(divided(site, Loss::Killed))),
        ("divided, the member hangs", |site| Box::pin(divided(site, Loss::Hangs))),
        ("duplicated, the member is killed", |site| Box::pin(duplicated(site))),
        ("the leader is killed, paused and stopped", |site| Box::pin(leaders(site))),
    ]
}

/// How a member is lost.
#[derive(Clone, Copy)]
enum Loss {
    /// Connections are refused.
    Killed,
    /// Connections are accepted and nothing answers.
    Hangs,
}

const DIVIDED: &[&str] = &["taint-policy.yaml", "health.yaml", "policy.yaml", "nginx.yaml"];
const DUPLICATED: &[&str] = &["taint-policy.yaml", "policy.yaml", "nginx.yaml"];
const BINDING: &str = "nginx-deployment";

/// The document's example: replicas are divided, move when a member is lost, and do not move back.
async fn divided(site: &Site, loss: Loss) -> anyhow::Result<()> {
    let name = match loss {
        Loss::Killed => "divided-killed",
        Loss::Hangs => "divided-hangs",
    };
    let mut federation = Box::pin(Federation::start(site, name, QUICK)).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation.wait_placed(BINDING, &[("member1", 1), ("member2", 2)]).await?;
    federation.wait_deployed("member1", "nginx", Some(1)).await?;
    federation.wait_deployed("member2", "nginx", Some(2)).await?;
    match loss {
        Loss::Killed => federation.member("member1")?.kill_api_server(),
        Loss::Hangs => federation.member("member1")?.pause_api_server()?,
    }
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    federation.wait_deployed("member2", "nginx", Some(3)).await?;
    match loss {
        Loss::Killed => federation.member("member1")?.start_api_server().await?,
        Loss::Hangs => federation.member("member1")?.resume_api_server()?,
    }
    federation.wait_ready("member1", true).await?;
    federation.wait_deployed("member1", "nginx", None).await?;
    wait::stays("nothing moves back", Duration::from_secs(10), async || {
        federation.placed(BINDING, &[("member2", 3)]).await
    })
    .await
}

/// A full copy on each member: the one that is left is not touched.
async fn duplicated(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(site, "duplicated", QUICK)).await?;
    federation.apply_example("nginx-duplicated", DUPLICATED)?;
    federation.wait_deployed("member2", "nginx", Some(2)).await?;
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 2)]).await?;
    federation.wait_deployed("member2", "nginx", Some(2)).await
}

/// One process works and the others wait; the next one goes on where the one before was.
async fn leaders(site: &Site) -> anyhow::Result<()> {
    let settings: Vec<_> = QUICK
        .iter()
        .copied()
        .chain([
            "--leader-elect-lease-duration=6s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=1s",
        ])
        .collect();
    let mut federation = Box::pin(Federation::start(site, "leaders", &settings)).await?;
    federation.start_bulkhead()?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation.wait_placed(BINDING, &[("member1", 1), ("member2", 2)]).await?;
    // Killed in the middle of a failover: the second one finishes it.
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    if let Some(leader) = federation.processes().first_mut() {
        leader.kill();
    }
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    // Paused for longer than its lease: the third one takes over, and the second one ends when it wakes.
    federation.start_bulkhead()?;
    let holder = holder(&federation)?;
    federation.processes().get(1).map(|leader| leader.signal(Signal::STOP)).transpose()?;
    wait::until("another process holds the lease", Duration::from_secs(30), async || {
        let now = self::holder(&federation).map_err(|error| error.to_string())?;
        if now == holder || now.is_empty() { Err(now) } else { Ok(()) }
    })
    .await?;
    federation.processes().get(1).map(|leader| leader.signal(Signal::CONT)).transpose()?;
    wait::until("the paused process ends", Duration::from_secs(30), async || {
        let ended = federation.processes().get_mut(1).is_some_and(crate::process::Process::ended);
        if ended { Ok(()) } else { Err("it runs".to_owned()) }
    })
    .await?;
    federation.member("member1")?.start_api_server().await?;
    federation.wait_ready("member1", true).await?;
    // Stopped in order: the lease is given up at once.
    federation.processes().get(2).map(|leader| leader.signal(Signal::TERM)).transpose()?;
    wait::until("the lease is free", Duration::from_secs(10), async || {
        let holder = self::holder(&federation).map_err(|error| error.to_string())?;
        if holder.is_empty() { Ok(()) } else { Err(holder) }
    })
    .await?;
    Ok(())
}

fn holder(federation: &Federation<'_>) -> anyhow::Result<String> {
    let path = "jsonpath={.spec.holderIdentity}";
    federation.kubectl(&["get", "lease", "bulkhead", "--namespace", "karmada-system", "-o", path])
}
